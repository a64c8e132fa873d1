"""Answers questions in the view: fetches the open questions from the daemon, shows one, and sends the answer."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec

from fairlead.errors import FairleadError
from fairlead.ipc import RequestRefused, request
from fairlead.tui.model._answering import AnswerForm, OpenQuestions, SendAnswer
from fairlead.tui.model._rows import display_name
from fairlead.tui.widgets._answer import AnswerScreen

if TYPE_CHECKING:
    from collections.abc import Callable

    from fairlead.sessions import Session
    from fairlead.tui._app import WatchApp
    from fairlead.tui.model._answering import Effect, OpenQuestion

_NOT_HERE = "there is nothing to answer here; Enter goes to its pane"
_OFF = "it can only be answered in its pane (Enter); see attention.answer"
_PATH = "/v1/answers"


class AnswerControl:
    """Answers the question of one session at a time."""

    def __init__(self, app: WatchApp, go: Callable[[], None]) -> None:
        self._app = app
        self._go = go
        """The function that goes to the pane of the selected session."""

    def open(self, session: Session | None) -> None:
        """Show the question of a session, or why none can be answered here. Does nothing for `None`."""
        if session is not None:
            self._app.run_worker(self._open(session), group="answer", exclusive=True)

    async def _open(self, session: Session) -> None:
        try:
            listed = await self._list()
        except (FairleadError, msgspec.ValidationError) as error:
            self._app.show_message(str(error))
            return
        question = next((candidate for candidate in listed.questions if candidate.session_id == session.id), None)
        if question is None:
            self._app.show_message(_refusal_text(session, listed))
        else:
            self.show(question, display_name(session))

    def show(self, question: OpenQuestion, name: str) -> None:
        """Show a question under the displayed name of its session, and send the answer that the user gives."""
        form, title = AnswerForm(question), f"{question.tool} · {name}"

        def on_result(effect: Effect | None) -> None:
            if effect == "go":
                self._go()
            elif isinstance(effect, SendAnswer):
                self._app.run_worker(self._send(question, effect), group="answer", exclusive=True)

        self._app.push_screen(AnswerScreen(self._app.palette, form, title), on_result)

    async def _send(self, question: OpenQuestion, answer: SendAnswer) -> None:
        try:
            await self._ask("POST", f"{_PATH}/{question.name}", {**answer.body, "by": "watch"})
        except RequestRefused as error:
            self._app.show_message(f"not answered: {error.text}")
        except FairleadError as error:
            self._app.show_message(f"not answered: {error}")
        else:
            is_denied = answer.body["decision"] == "deny"
            verb = "denied" if is_denied else "answered" if "choose" in answer.body else "allowed once"
            on = f" on {question.host}" if question.host else ""
            self._app.show_message(f"{verb}{on}: {question.tool}")

    async def _list(self) -> OpenQuestions:
        return msgspec.convert(await self._ask("GET", _PATH), OpenQuestions)

    async def _ask(self, method: str, path: str, body: object = None) -> object:
        source = self._app.source
        if source is None:
            return {}
        return await asyncio.to_thread(request, method, path, body, at=source.socket_path)


def _refusal_text(session: Session, listed: OpenQuestions) -> str:
    """Return the reason why no question of a session can be answered here, as a message."""
    if not session.host:
        return _NOT_HERE if listed.enabled else _OFF
    if listed.hosts.get(session.host):
        return f"there is nothing to answer here; see its pane on {session.host}"
    return f"{session.host} takes no answers from this host; see team.answers in its user-wide policy"
