from fairlead import HookManager, PostToolUse, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, PostToolUse)
def wrong(event: PreToolUse) -> None: ...
