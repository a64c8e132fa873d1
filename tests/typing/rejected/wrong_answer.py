from fairlead import HookManager, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse)
def wrong(event: PreToolUse) -> str: ...
