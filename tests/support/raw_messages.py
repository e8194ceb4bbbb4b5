"""Messages of LSP, byte by byte, for tests that send what no editor would."""

import asyncio
import json
from typing import Any


def framed(**message: Any) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}).encode()
    return b"Content-Length: %d\r\n\r\n%s" % (len(body), body)


async def read_message(reader: asyncio.StreamReader) -> dict[str, Any]:
    num_bytes = 0
    while line := (await reader.readline()).strip():
        if line.startswith(b"Content-Length"):
            num_bytes = int(line.split(b":")[1])
    message: dict[str, Any] = json.loads(await reader.readexactly(num_bytes))
    return message
