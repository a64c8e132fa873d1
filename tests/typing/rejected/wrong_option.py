from fairlead import HookManager, PreToolUse

hooks = HookManager()


@hooks.on(PreToolUse, phase="afterwards")
def wrong(event: PreToolUse) -> None: ...
