"""One who means no good beside one who types: what it is given stays within its quotas.

New names with 32 MiB of text each, completions without an end, streams that nobody reads, requests
that do not end. `make soak` goes on for minutes.
"""

import asyncio
import os
import sys
import tempfile
from collections import Counter
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import httpx2
import msgspec
import pytest

from engine.host.protocol import MAX_BODY_BYTES, MAX_TOKENS, Bounds, BufferSync, SyncRequest
from tests.support.tiny_host import completed, headers_of, request, tiny_host
from tests.support.tiny_models import save_model, tiny_model

SECONDS = float(os.environ.get("HOSTILE_SECONDS", "7"))
QUOTA_MB = 64  # of buffers; the default would only take longer to fill
BODIES = 4  # of 32 MiB at once on their way, each as bytes and as what they say
REQUESTS = 2000  # a second: far more than the default lets through
ADA, EVE = "ada", "eve"
LINE = "the_name_of_a_thing = another_name_of_it(the_name_of_a_thing)"
MANY_LINES = (LINE,) * (MAX_BODY_BYTES // 80)

pytestmark = [pytest.mark.e2e, pytest.mark.asyncio, pytest.mark.timeout(240 + 3 * SECONDS)]


class Eve:
    """Does all that she can, again and again; `seen` counts the answers."""

    def __init__(self, host):
        self.host = host
        self.seen: Counter[str] = Counter()

    async def attack(self, seconds):
        """Each way alone, and in the end all together."""
        ways = [
            *([self.new_names] * 2, [self.large_completions], [self.large_prompts]),
            *([self.endless] * 10, [self.unread] * 20, [self.half_a_request] * 20),
        ]
        for some in (*ways, [one for each in ways for one in each]):
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds / (len(ways) + 1)), asyncio.TaskGroup() as group:
                    for number, way in enumerate(some):
                        group.create_task(self._again(way, number))

    async def _again(self, way, number):
        round_number = 0
        while True:
            round_number += 1
            try:
                self.seen[f"{way.__name__} {await way(f'{number} {round_number}')}"] += 1
            except (OSError, httpx2.HTTPError) as error:
                self.seen[f"{way.__name__} {type(error).__name__}"] += 1
            await asyncio.sleep(0.02)

    @asynccontextmanager
    async def client(self):
        transport = httpx2.AsyncHTTPTransport(uds=str(self.host.socket))
        async with httpx2.AsyncClient(
            base_url="http://host", transport=transport, headers=headers_of(EVE), timeout=60
        ) as http:
            yield http

    async def post(self, path, message):
        async with self.client() as http:
            answer = await http.post(path, content=msgspec.json.encode(message))
            assert answer.status_code < 500, answer.text
            return answer.status_code

    async def new_names(self, name):
        sync = BufferSync(f"file:///{name}", "a.py", "python", 1, lines=MANY_LINES)
        return await self.post("/v1/buffers", SyncRequest(name, "file:///shop", (sync,)))

    async def large_completions(self, name):
        return await self.post("/v1/complete", request(*MANY_LINES, client=name))

    async def large_prompts(self, name):
        return await self.post("/v1/completions", {"prompt": "\n".join(MANY_LINES) + name})

    async def endless(self, name):
        asked = request("x = ", client=name)
        asked = msgspec.structs.replace(asked, bounds=Bounds(max_tokens=MAX_TOKENS))
        return await self.post("/v1/complete", asked)

    async def unread(self, name):
        body = msgspec.json.encode(request("y = ", client=name))
        async with self._opened(len(body)) as writer:
            writer.write(body)
            await asyncio.sleep(2)
        return "left"

    async def half_a_request(self, name):
        async with self._opened(MAX_BODY_BYTES) as writer:
            writer.write(name.encode())
            await asyncio.sleep(2)
        return "left"

    @asynccontextmanager
    async def _opened(self, length):
        _, writer = await asyncio.open_unix_connection(str(self.host.socket))
        try:
            head = "".join(f"{name}: {value}\r\n" for name, value in headers_of(EVE).items())
            head = (
                f"POST /v1/complete HTTP/1.1\r\nhost: x\r\n{head}content-length: {length}\r\n\r\n"
            )
            writer.write(head.encode())
            yield writer
        finally:
            writer.transport.abort()


async def served_for(http, seconds):
    """How often one who types was served."""
    loop = asyncio.get_running_loop()
    until, number = loop.time() + seconds, 0
    while loop.time() < until:
        number += 1
        done = await asyncio.to_thread(completed, http, request(f"total_{number} = "))
        assert done.tokens > 0
        await asyncio.sleep(0.05)
    return number


async def most_memory(host, mb):
    """Note the most that the host had."""
    while True:
        mb.append(host.memory_bytes() / 1e6)
        await asyncio.sleep(0.02)


async def test_what_it_takes_is_within_its_quotas_and_another_is_served():
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        folder = Path(name)
        model = save_model(tiny_model("qwen2"), folder / "tiny")
        options = ["--dtype", "float32", "--threads", "1", "--quota", f"megabytes={QUOTA_MB}"]
        options += ["--quota", f"requests={REQUESTS}"]
        with tiny_host(folder, model, [ADA, EVE], *options) as host, host.client(ADA) as http:
            http.timeout = 120.0
            before, eve = host.memory_bytes() / 1e6, Eve(host)
            mb: list[float] = []
            work = [
                asyncio.create_task(one) for one in (eve.attack(SECONDS), most_memory(host, mb))
            ]
            num_served = await served_for(http, SECONDS)
            for task in work:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
            said = host.said()
            sys.stdout.write(
                f"{before:.0f} MB, at most {max(mb):.0f} MB; {num_served} served; {eve.seen}\n"
            )
            assert "Traceback" not in said, said[-3000:]
            assert num_served > 0
            assert max(mb) - before < QUOTA_MB + 2 * BODIES * MAX_BODY_BYTES / 1e6
