from fairlead import HookContext, HookManager, HookOutput, PostToolUse, PreToolUse

hooks = HookManager()


@hooks.on(PostToolUse)
async def wrong(event: PreToolUse, ctx: HookContext) -> HookOutput | None: ...
