"""Requests to a running host, byte by byte, as none of our clients would send them."""

import asyncio
from pathlib import Path

from engine.host.protocol import PROTOCOL_HEADER, PROTOCOL_VERSION
from tests.support.running_host import RunningHost, ask, buffer

HEAD = (
    "{} /v1/{} HTTP/1.1\r\nhost: host\r\ncontent-type: application/json\r\n"
    f"{PROTOCOL_HEADER}: {PROTOCOL_VERSION}\r\n"
)


async def connected(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_unix_connection(str(folder / "host.sock"))


async def ended(caplog, reason: str) -> None:
    """Wait until a connection ends for that reason."""
    while not any(reason in message for message in caplog.messages):
        await asyncio.sleep(0.01)


async def is_served(host: RunningHost) -> bool:
    """Whether another client gets a completion of a HeldEngine."""
    events = [event async for event in host.complete(ask(buffer("x")))]
    return events[-1].text == "one two three"
