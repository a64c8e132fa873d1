"""Makes the hook of a question wait until a person answers it outside of the client (`attention.answer`)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fairlead.daemon.events._extension import EventExtension
from fairlead.decide import Decision
from fairlead.errors import FairleadError
from fairlead.events import PermissionRequest
from fairlead.journal import DOCTOR_SESSION
from fairlead.policy import Attention, load_user_wide

if TYPE_CHECKING:
    from fairlead.daemon._error_log import ErrorLog
    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.answers._service import AnswerService
    from fairlead.daemon.events._extension import EventContext, ExtensionRegistry
    from fairlead.daemon.events._messages import HookReply
    from fairlead.events import Event
    from fairlead.journal import EventRecord


def create(daemon: Daemon) -> Answers:
    """Return the extension."""
    return Answers(daemon.answers, daemon.errors, daemon.version, daemon.extensions)


class Answers(EventExtension):
    """Makes the hook of a question wait, if no policy has decided it and the client asks the user at the same time."""

    kind = "contributor"
    events = frozenset({"PermissionRequest"})
    recorded_events: frozenset[str] | None = frozenset()

    def __init__(self, answers: AnswerService, errors: ErrorLog, version: str, extensions: ExtensionRegistry) -> None:
        self._answers = answers
        self._answers.on_change = self._observe
        self._extensions = extensions
        self._errors = errors
        self._version = version
        self._is_reported = False

    def needs_thread(self, context: EventContext) -> bool:
        """Return True: it reads the user-wide policy."""
        return True

    def before_reply(self, context: EventContext) -> Decision | None:
        """Make the hook wait if the settings say so; `None` if it does not wait.

        The hook of a headless client, which cannot ask the user, never waits.
        """
        event, request = context.event, context.request
        if not isinstance(event, PermissionRequest) or event.session_id == DOCTOR_SESSION:
            return None
        can_wait = request.launched and request.caller.version == self._version
        if not can_wait or not context.client.capabilities.asks_beside_hooks:
            return None
        settings = self._settings()
        if not settings.answer or context.client.is_headless(request.env):
            return None

        def start_wait(reply: HookReply) -> HookReply:
            is_decided = reply.verdict not in {"none", "said"} or reply.exit != 0
            return (
                reply if is_decided else self._answers.ask_user(event, request, settings.answer_timeout, reply.stdout)
            )

        context.start_wait = start_wait
        return Decision(waits=True)

    def _observe(self) -> None:
        """Observe all events as long as there are questions; without one, observe none."""
        self.recorded_events = None if self._answers.is_needed else frozenset()
        self._extensions.refresh()

    def after_record(self, record: EventRecord, event: Event | None) -> None:
        """Pass on an event, which may show that a question is over."""
        if event is not None:
            self._answers.observe(event)

    def _settings(self) -> Attention:
        try:
            settings = load_user_wide().attention
        except FairleadError as error:
            if not self._is_reported:
                self._errors.report(f"the user-wide policy cannot be read, so questions cannot be answered: {error}")
            self._is_reported = True
            return Attention()
        self._is_reported = False
        return settings
