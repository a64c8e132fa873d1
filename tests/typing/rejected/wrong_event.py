from fairlead import HookManager, PreToolUse, Stop

hooks = HookManager()


@hooks.on(PreToolUse)
def wrong(event: Stop) -> None: ...
