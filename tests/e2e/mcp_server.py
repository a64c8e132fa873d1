"""An MCP server on stdio with one tool, `ask`, which asks the user for a consent and returns what came of it.

A program of its own, of the standard library alone: the client starts it.
"""

from __future__ import annotations

import json
import sys
from typing import Any

FORM = {"message": "May I paint it?", "requestedSchema": {"type": "object", "properties": {}}}


def main() -> None:
    """Answer what the client asks, one message a line."""
    call: Any = None
    for line in sys.stdin:
        message = json.loads(line)
        method = message.get("method")
        if method == "initialize":
            _result(
                message["id"],
                protocolVersion=message["params"]["protocolVersion"],
                capabilities={"tools": {}},
                serverInfo={"name": "form", "version": "1"},
            )
        elif method == "tools/list":
            tool = {"name": "ask", "description": "Asks.", "inputSchema": {"type": "object", "properties": {}}}
            _result(message["id"], tools=[tool])
        elif method == "tools/call":
            call = message["id"]
            _send(id="form-1", method="elicitation/create", params=FORM)
        elif message.get("id") == "form-1":
            told = message.get("result", message.get("error"))
            _result(call, content=[{"type": "text", "text": json.dumps(told, sort_keys=True)}])


def _result(number: Any, **result: Any) -> None:
    _send(id=number, result=result)


def _send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


if __name__ == "__main__":
    main()
