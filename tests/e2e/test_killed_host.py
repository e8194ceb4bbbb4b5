"""A host that is killed at any moment: each next request is served, from the text as it is now.

`make soak` kills it 50 times under 8 clients.
"""

import asyncio
import os
import random
import signal
import sys
from collections import Counter
from contextlib import aclosing, suppress
from dataclasses import dataclass, field

import pytest
from lsprotocol import types

from engine.host.protocol import Failed, Position
from engine.host.runtime import HostRecord, RuntimeFolder
from engine.request import Done
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host import search as host_search
from lsp_server.host.client import HostGoneError
from lsp_server.host.daemon import ensure_host, stop_host
from lsp_server.host.failures import boot_s
from lsp_server.settings import Settings
from tests.support.held_engine import digest
from tests.support.workspaces import link_of, sit_during, workspace_of

NUM_KILLS = int(os.environ.get("KILLS", "1"))
NUM_CLIENTS = int(os.environ.get("CLIENTS", "2"))
URI = "file:///shop/a.py"

pytestmark = pytest.mark.timeout(60 + 20 * NUM_KILLS)


@dataclass
class Typist:
    """A client that types and asks, without an end."""

    settings: Settings
    chance: random.Random
    num_kills: list[int]
    documents: Documents = field(default_factory=Documents)
    outcomes: Counter[str] = field(default_factory=Counter)
    in_vain: int = 0  # requests in a row that no kill explains
    version: int = 1

    def __post_init__(self) -> None:
        command = [sys.executable, "-m", "tests.support.held_host", "echo"]
        folder = RuntimeFolder.open(self.settings.runtime_folder)
        command += ["--socket", str(folder.socket_path), "--token-file", str(folder.token_path)]

        async def find():
            # As a person who wants a host now, whatever failed before.
            return await ensure_host(self.settings, command, wanted_at=boot_s())

        self.link = link_of(workspace_of(self.documents), find)
        self.documents.open(types.TextDocumentItem(URI, "python", 1, "first\nsecond\n"))
        self.link.search.begin()

    def type(self) -> None:
        """Insert a text, and now and then delete the rest of its line."""
        self.version += 1
        snapshot = self._snapshot()
        line = self.chance.randrange(len(snapshot.lines))
        start = types.Position(line, self.chance.randint(0, len(snapshot.lines[line])))
        end = types.Position(line + 1, 0) if self.chance.random() < 0.2 else start
        text = self.chance.choice(["x", "def ", "\n", "é🎉\n    ", "", "one\ntwo\nthree\n"])
        change = types.TextDocumentContentChangePartial(types.Range(start, end), text)
        assert self.documents.change(URI, self.version, [change]) is None

    async def ask(self) -> None:
        """Ask; the answer has to be of the current text, unless the host was killed."""
        snapshot, before = self._snapshot(), self.num_kills[0]
        line = self.chance.randrange(len(snapshot.lines))
        character = self.chance.randint(0, len(snapshot.lines[line]))
        anchor = Anchor.of(snapshot, Position(line, character))
        try:
            async with aclosing(self.link.complete(anchor)) as events:
                last = [event async for event in events][-1]
        except HostGoneError:
            self.outcomes["gone"] += 1
            self.in_vain = self.in_vain + 1 if self.num_kills[0] == before else 0
            assert self.in_vain < 2, "no host was killed, and a second request was not served"
            while self.link.search.state == "unreachable":  # an editor is told when to ask again
                await asyncio.sleep(0.001)
            return
        assert not isinstance(last, Failed), last
        assert isinstance(last, Done)
        above, below = snapshot.lines[:line], snapshot.lines[line + 1 :]
        prefix = "\n".join([*above, snapshot.lines[line][:character]])
        suffix = "\n".join([snapshot.lines[line][character:], *below])
        assert last.text == digest(prefix, suffix), "the host holds another text"
        self.outcomes["served"] += 1
        self.in_vain = 0

    async def sit(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            self.type()
            await self.ask()

    def _snapshot(self) -> Snapshot:
        snapshot = self.documents.snapshot(URI)
        assert isinstance(snapshot, Snapshot)
        return snapshot


async def kill_all(
    folder: RuntimeFolder, typists: list[Typist], num_kills: list[int], chance: random.Random
) -> None:
    """Kill the host at random moments, and now and then its successor while it starts."""

    def kill(record: HostRecord) -> None:
        with suppress(ProcessLookupError):
            os.kill(record.pid, signal.SIGKILL)
        num_kills[0] += 1

    while num_kills[0] < NUM_KILLS:
        await all_served(typists, chance.randint(0, 20))
        record = folder.read_record()
        if record is None or not folder.host_is_alive():
            continue
        kill(record)
        if chance.random() < 0.3:
            while (successor := folder.read_record()) in (None, record):
                await asyncio.sleep(0.001)
            await asyncio.sleep(chance.uniform(0, 0.5))
            kill(successor)
    await all_served(typists, 2)


async def all_served(typists: list[Typist], more: int) -> None:
    """Wait until each client got `more` answers."""
    wanted = [typist.outcomes["served"] + more for typist in typists]
    while any(one.outcomes["served"] < least for one, least in zip(typists, wanted, strict=True)):
        await asyncio.sleep(0.001)


async def test_each_next_request_is_served_and_no_buffer_is_out_of_step(monkeypatch, short_folder):
    monkeypatch.setattr(host_search, "_RETRY_S", 0.05)
    settings = Settings(cache_folder=short_folder, runtime_folder=short_folder / "run")
    folder, num_kills = RuntimeFolder.open(settings.runtime_folder), [0]
    typists = [Typist(settings, _chance(number), num_kills) for number in range(NUM_CLIENTS)]
    await sit_during(kill_all(folder, typists, num_kills, _chance(-1)), typists)
    shown = [dict(typist.outcomes) for typist in typists]
    sys.stdout.write(f"{num_kills[0]} kills: {shown}\n")
    await stop_host(settings)


def _chance(seed: int) -> random.Random:
    return random.Random(seed)  # noqa: S311 - the same in every run
