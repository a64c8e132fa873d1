"""uvicorn configured as in the daemon, with an application that answers nothing. Run as a script."""

import os
import socket
import sys
from typing import Any

import uvicorn
import uvloop


async def app(scope: Any, receive: Any, send: Any) -> None:
    while (await receive()).get("more_body"):
        pass
    headers = [(b"fairlead-exit", b"0"), (b"fairlead-stdout", b"0"), (b"content-length", b"0")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b""})


if __name__ == "__main__":
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(sys.argv[1] + ".new")
    listener.listen(1024)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        date_header=False,
    )
    os.rename(sys.argv[1] + ".new", sys.argv[1])  # noqa: PTH104 - a client that finds the socket can connect
    uvloop.run(uvicorn.Server(config).serve([listener]))
