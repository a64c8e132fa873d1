"""Programs that must type-check; `make check` runs mypy over this file."""

from fairlead import Event, HookContext, HookManager, HookOutput, PostToolUse, PreToolUse, Stop

hooks = HookManager()


@hooks.on(PreToolUse, matcher="Bash|Write", priority=100, timeout=2)
def plain(event: PreToolUse, ctx: HookContext) -> HookOutput | None:
    return HookOutput.block(f"{event.tool_name} in {ctx.session_id}")


@hooks.on(PreToolUse)
async def asynchronous(event: PreToolUse, _ctx: HookContext) -> HookOutput | None:
    return None if event.tool_input else HookOutput.allow()


@hooks.on(PreToolUse)
def without_context(event: PreToolUse) -> HookOutput | None:
    return HookOutput.ask(event.tool_name)


@hooks.on(PreToolUse, PostToolUse)
def two_events(event: PreToolUse | PostToolUse) -> None:
    print(event.tool_name)


@hooks.on(PreToolUse, PostToolUse, Stop, phase="observe")
def three_events(event: PreToolUse | PostToolUse | Stop) -> None:
    print(event.session_id)


@hooks.on(Event, phase="observe")
def every_event(event: Event) -> None:
    print(event.event_name)


@hooks.on(PreToolUse, name="wider")
def handler_of_a_wider_type(event: Event) -> None:
    print(event.event_name)


def decorated_functions_keep_their_type() -> HookOutput | None:
    return plain(PreToolUse(session_id="s", tool_name="Bash", tool_input={}), HookContext("s"))
