"""A malicious client as a program: it does all that its token allows, again and again.

    python -m tests.support.hostile_client SOCKET NAME SECONDS [WAY ...]

Its attacks: new names with 32 MiB of text each, endless completions, streams that nobody reads,
requests that do not end, thousands of requests at once. Finally it prints the counts as JSON.
"""

import asyncio
import os
import sys
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial

import httpx2
import msgspec

from engine.config import StopRules
from engine.host.protocol import MAX_BODY_BYTES, MAX_TOKENS, BufferSync, SyncRequest
from tests.support.running_host import headers_with
from tests.support.served_host import request, token_of

_LINE = "the_name_of_a_thing = another_name_of_it(the_name_of_a_thing)"
_MANY_LINES = (_LINE,) * (MAX_BODY_BYTES // 80)
_NAME = b"a-name-to-be-replaced"
_PAUSE_S = 0.02
_UNREAD_S = 2.0
_NICE = 10  # leaves the processor to the host, as an attacker elsewhere would

Way = Callable[[str], Awaitable[object]]


class HostileClient:
    def __init__(self, socket: str, name: str) -> None:
        self.seen: Counter[str] = Counter()
        self._socket = socket
        self._headers = headers_with(token_of(name))
        # Made only once: building them would take the attacker's time, and spare the host.
        sync = BufferSync(f"file:///{_NAME.decode()}", "a.py", "python", 1, lines=_MANY_LINES)
        self._buffers = msgspec.json.encode(SyncRequest(_NAME.decode(), "file:///shop", (sync,)))
        self._file = msgspec.json.encode(request(*_MANY_LINES, client=_NAME.decode()))
        self._prompt = msgspec.json.encode({"prompt": "\n".join(_MANY_LINES) + _NAME.decode()})
        endless = msgspec.structs.replace(
            request("x = ", client=_NAME.decode()), stop=StopRules(max_tokens=MAX_TOKENS)
        )
        self._endless = msgspec.json.encode(endless)
        self._short = msgspec.json.encode(request("y = ", client=_NAME.decode()))

    @property
    def ways(self) -> dict[str, tuple[Way, int]]:
        """Return each attack, and how many run at once."""
        return {
            "new_names": (partial(self._post, "/v1/buffers", self._buffers), 2),
            "large_files": (partial(self._post, "/v1/complete", self._file), 1),
            "large_prompts": (partial(self._post, "/v1/completions", self._prompt), 1),
            "endless": (partial(self._post, "/v1/complete", self._endless), 10),
            "unread": (self._unread_streams, 20),
            "half_sent": (self._half_sent_bodies, 20),
            "at_once": (self._requests_at_once, 10),
            "long_heads": (self._long_heads, 10),
        }

    async def attack(self, seconds: float, ways: list[str]) -> None:
        """Run each attack alone, and finally all together."""
        for some in (*([one] for one in ways), ways):
            with suppress(TimeoutError):
                async with (
                    asyncio.timeout(seconds / (len(ways) + 1)),
                    asyncio.TaskGroup() as group,
                ):
                    for name in some:
                        way, times = self.ways[name]
                        for number in range(times):
                            group.create_task(self._again(name, way, number))

    async def _again(self, name: str, way: Way, number: int) -> None:
        round_number = 0
        while True:
            round_number += 1
            try:
                self.seen[f"{name} {await way(f'{number} {round_number}')}"] += 1
            except (OSError, httpx2.HTTPError) as error:
                self.seen[f"{name} {type(error).__name__}"] += 1
            await asyncio.sleep(_PAUSE_S)

    async def _post(self, path: str, body: bytes, name: str) -> int:
        transport = httpx2.AsyncHTTPTransport(uds=self._socket)
        async with httpx2.AsyncClient(
            base_url="http://host", transport=transport, headers=self._headers, timeout=60
        ) as http:
            return (await http.post(path, content=body.replace(_NAME, name.encode()))).status_code

    async def _unread_streams(self, name: str) -> str:
        body = self._short.replace(_NAME, name.encode())
        async with self._opened(len(body)) as writer:
            writer.write(body)
            await asyncio.sleep(_UNREAD_S)
        return "left"

    async def _half_sent_bodies(self, name: str) -> str:
        async with self._opened(MAX_BODY_BYTES) as writer:
            writer.write(name.encode())
            await asyncio.sleep(_UNREAD_S)
        return "left"

    async def _requests_at_once(self, name: str) -> str:
        head = f"GET /v1/status?{name.replace(' ', '-')} HTTP/1.1\r\nhost: x\r\n\r\n".encode()
        async with self._opened(0) as writer:
            with suppress(OSError):
                for _ in range(100):
                    writer.write(head * 1000)
                    await writer.drain()
        return "left"

    async def _long_heads(self, name: str) -> str:
        async with self._connected() as writer:
            writer.write(f"GET /v1/status HTTP/1.1\r\nhost: x\r\nx: {name}".encode())
            with suppress(OSError):
                for _ in range(1000):
                    writer.write(b"x" * 10_000)
                    await writer.drain()
        return "left"

    @asynccontextmanager
    async def _opened(self, length: int) -> AsyncIterator[asyncio.StreamWriter]:
        own = "".join(f"{name}: {value}\r\n" for name, value in self._headers.items())
        head = f"POST /v1/complete HTTP/1.1\r\nhost: x\r\n{own}content-length: {length}\r\n\r\n"
        async with self._connected() as writer:
            writer.write(head.encode())
            yield writer

    @asynccontextmanager
    async def _connected(self) -> AsyncIterator[asyncio.StreamWriter]:
        _, writer = await asyncio.open_unix_connection(self._socket)
        try:
            yield writer
        finally:
            writer.transport.abort()


def main() -> None:
    socket, name, seconds, *ways = sys.argv[1:]
    os.nice(_NICE)
    client = HostileClient(socket, name)
    asyncio.run(client.attack(float(seconds), ways or list(client.ways)))
    sys.stdout.write(msgspec.json.encode(client.seen).decode() + "\n")


if __name__ == "__main__":
    main()
