"""The HTTP routes that list open questions and take a person's answer to one of them."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal

import msgspec
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from fairlead.daemon.answers._answerer import NotAPerson, find_answerer
from fairlead.daemon.answers._questions import AnswerError, PersonAnswer, UnknownQuestion
from fairlead.daemon.http._responses import BAD_REQUEST, FORBIDDEN, NOT_FOUND, json_response
from fairlead.mail import MailError
from fairlead.policy import load_user_wide

if TYPE_CHECKING:
    from starlette.requests import Request

    from fairlead.daemon._runtime import Daemon
    from fairlead.daemon.answers._questions import Answerer, Question

_MAX_BODY = 256 * 1024


class AnswerBody(PersonAnswer, frozen=True, kw_only=True):
    """The body of a request with an answer."""

    by: Literal["command", "watch"] = "command"
    """Whether the person answers with a command or in `fairlead watch`."""


def answer_routes(daemon: Daemon) -> list[Route]:
    """Return the routes for questions and answers."""
    answers = daemon.answers

    async def questions(_: Request) -> Response:
        is_on = await asyncio.to_thread(_is_on)
        team = daemon.team.service
        remote = team.answers.questions() if team is not None else []
        document: dict[str, object] = {"enabled": is_on, "questions": [*answers.questions(), *remote]}
        if team is not None:
            document["hosts"] = team.answers.hosts()
        return json_response(document)

    async def answer(request: Request) -> Response:
        """Answer a question. The calling process, not the content of the request, shows whether a person answers."""
        try:
            body = msgspec.json.decode(await _body(request), type=AnswerBody)
        except (msgspec.DecodeError, ValueError) as error:
            return PlainTextResponse(str(error), BAD_REQUEST)
        peer = request.scope.get("state", {}).get("peer", 0)
        try:
            answerer = await asyncio.to_thread(find_answerer, peer, body.by)
            question = await _pass_on(daemon, request.path_params["id"], body, answerer)
        except NotAPerson as error:
            return PlainTextResponse(str(error), FORBIDDEN)
        except UnknownQuestion as error:
            return PlainTextResponse(str(error), NOT_FOUND)
        except (AnswerError, MailError) as error:
            return PlainTextResponse(str(error), BAD_REQUEST)
        return json_response({"question": question})

    return [
        Route("/v1/answers", questions),
        Route("/v1/answers/{id}", answer, methods=["POST"]),
    ]


async def _pass_on(daemon: Daemon, question_id: str, answer: PersonAnswer, answerer: Answerer) -> Question:
    """Pass an answer on to a session of this host, or send it to the host of the question. Return the question.

    The host of the question is the one in `ID@HOST`, or the only other host that has a question `ID`. Raise
    `AnswerError` or `MailError` if the answer is refused.
    """
    team = daemon.team.service
    if team is not None:
        question_id = question_id.removesuffix(f"@{team.own_name}")
    is_here = any(question.id == question_id for question in daemon.answers.questions())
    remote = None if team is None or is_here else team.answers.find(question_id)
    if team is None or remote is None:
        return await daemon.answers.answer(question_id, answer, answerer)
    return await team.answers.send(remote, answer, answerer)


def _is_on() -> bool:
    return load_user_wide().attention.answer


async def _body(request: Request) -> bytes:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _MAX_BODY:
            raise ValueError("larger than any answer")
    return content
