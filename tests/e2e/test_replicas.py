"""Two replicas on Ray Serve, under people who type, while one after the other is killed.

`make replicas` is the long form: five minutes with the engine on a tiny model. `ROLLING=1` replaces
all replicas once in the end, as an upgrade does; `SCALING=1` has a second one added by load.
"""

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import aclosing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from statistics import fmean
from typing import NamedTuple, Self

import pytest
from lsprotocol import types

from engine.config import StopRules
from engine.host.protocol import Failed, Position
from engine.request import Done
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host import search as host_search
from lsp_server.host.address import HostAddress
from lsp_server.host.client import HostClient, HostGoneError, HostRefusedError
from tests.support.held_engine import digest
from tests.support.ports import free_port
from tests.support.served_host import secret_file
from tests.support.tiny_models import save_model, tiny_model
from tests.support.workspaces import link_of, sit_during, workspace_of

NUM_KILLS = int(os.environ.get("KILLS", "1"))
KILL_S = float(os.environ.get("KILL_S", "0"))
NUM_PEOPLE = int(os.environ.get("PEOPLE", "6"))
TYPING_S = float(os.environ.get("TYPING_S", "0"))
MODEL = os.environ.get("REPLICA_MODEL", "")  # a folder, or `tiny`; without one, hosts that echo
IS_ROLLING = bool(os.environ.get("ROLLING"))
A_LINE = StopRules(max_tokens=16)  # a random model does not end lines
TOKEN = "a-token-for-all-of-these-people"

pytest.importorskip("ray.serve", reason="the extra `scale` is not installed")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(240 + 4 * int(NUM_KILLS * max(KILL_S, 30))),
]


class Served(NamedTuple):
    home: str  # the replica
    at: float
    is_cached: bool  # the prompt's beginning


@dataclass
class Person:
    """Types in one of two open files, and asks; repeats a request that failed once."""

    number: int
    address: HostAddress
    documents: Documents = field(default_factory=Documents)
    outcomes: Counter[str] = field(default_factory=Counter)
    served: list[Served] = field(default_factory=list)
    slowest_s: float = 0.0
    version: int = 1

    def __post_init__(self) -> None:
        self.chance = random.Random(self.number)  # noqa: S311 - the same in every run
        root = f"file:///shop-{self.number}"
        self.link = link_of(workspace_of(self.documents, root), self._find)
        self.uri = f"{root}/a.py"
        text = "".join(f"price_{line} = {line} * {self.number}\n" for line in range(40))
        self.documents.open(types.TextDocumentItem(self.uri, "python", 1, text))
        other = f"{root}/b.py"
        self.documents.open(types.TextDocumentItem(other, "python", 1, "total = 0\n"))
        self.link.search.begin()

    async def _find(self) -> HostAddress:
        return self.address

    def type(self) -> None:
        self.version += 1
        at = types.Position(30 + self.chance.randrange(8), 0)
        change = types.TextDocumentContentChangePartial(types.Range(at, at), "x")
        assert self.documents.change(self.uri, self.version, [change]) is None

    async def ask(self) -> None:
        """Ask, and once more after a failure; the answer has to be of the current text."""
        began = time.monotonic()
        for attempt in ("served", "served when repeated"):
            if done := await self._asked():
                self.outcomes[attempt] += 1
                self.slowest_s = max(self.slowest_s, time.monotonic() - began)
                self._note(done)
                return
            while self.link.search.state == "unreachable":  # an editor is told when to ask again
                await asyncio.sleep(0.001)
        self.outcomes["failed"] += 1

    async def _asked(self) -> Done | None:
        snapshot = self.documents.snapshot(self.uri)
        assert isinstance(snapshot, Snapshot)
        anchor = Anchor.of(snapshot, Position(35, 4))
        try:
            async with aclosing(self.link.complete(anchor, A_LINE)) as events:
                last = [event async for event in events][-1]
        except (HostGoneError, HostRefusedError) as error:
            self.outcomes[f"not at once: {type(error).__name__}"] += 1
            return None
        if isinstance(last, Failed):
            self.outcomes[f"not at once: {last.code}"] += 1
            return None
        assert isinstance(last, Done)
        if not MODEL:
            prefix = "\n".join([*snapshot.lines[:35], snapshot.lines[35][:4]])
            suffix = "\n".join([snapshot.lines[35][4:], *snapshot.lines[36:]])
            assert last.text == digest(prefix, suffix), "the replica holds another text"
        return last

    def _note(self, done: Done) -> None:
        if (client := self.link.search.client) is not None:
            self.served.append(
                Served(client.replica, time.monotonic(), done.cost.reused_tokens > 0)
            )

    async def sit(self, is_over: asyncio.Event) -> None:
        while not is_over.is_set():
            self.type()
            await self.ask()
            await asyncio.sleep(TYPING_S * self.chance.uniform(0.5, 1.5))


@dataclass(frozen=True)
class Stay:
    """How often workspaces stayed at their replica, by pairs of successive requests."""

    pairs: list[tuple[Served, Served]]

    @classmethod
    def of(cls, people: list[Person]) -> Self:
        return cls([pair for person in people for pair in pairwise(person.served)])

    @property
    def share(self) -> float:
        """The share of pairs that one replica served."""
        return fmean(one.home == other.home for one, other in self.pairs)

    @property
    def kept(self) -> float:
        """The same share, without pairs whose first replica was killed."""
        by_time = sorted((one for pair in self.pairs for one in pair), key=lambda one: one.at)
        seen = {one.home: one.at for one in by_time}
        lived = [(one, other) for one, other in self.pairs if seen[one.home] >= other.at]
        return Stay(lived).share

    @property
    def warm(self) -> float:
        """The share of later requests at a replica that found their prompt cached."""
        return fmean(other.is_cached for one, other in self.pairs if one.home == other.home)


@dataclass(frozen=True)
class Replicas:
    process: subprocess.Popen[bytes]
    address: HostAddress
    tokens: Path


@contextmanager
def replicas(count: str) -> Iterator[Replicas]:
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        folder, port = Path(name), free_port()
        tokens = secret_file(folder / "tokens", TOKEN)
        program = ["tests.support.held_host", "echo"]
        if MODEL:
            model = MODEL if MODEL != "tiny" else save_model(tiny_model("qwen2"), folder / "tiny")
            program = ["lsp_server", "serve", "--model", str(model)]
            program += ["--cache-folder", str(folder / "cache")]
            program += ["--prompt-tokens", "1024", "--threads", "1", "--device", "cpu"]
        command = [sys.executable, "-m", *program, "--replicas", count]
        command += ["--port", str(port), "--token-file", str(tokens)]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, stdout=log, stderr=log)
        try:
            yield Replicas(process, HostAddress(TOKEN, url=f"http://127.0.0.1:{port}"), tokens)
        finally:
            process.terminate()
            try:
                process.wait(60)
            finally:
                process.kill()
                sys.stdout.write((folder / "log").read_text("utf-8", "replace")[-4000:])


@pytest.fixture(scope="module")
def two() -> Iterator[Replicas]:
    with replicas("2") as started:
        yield started


async def serving(hosts: Replicas, count: int = 2, address: HostAddress | None = None) -> set[int]:
    """Wait until so many replicas serve; return their process ids."""
    pids: set[int] = set()
    number, address = 0, address or hosts.address
    while len(pids) < count:
        assert hosts.process.poll() is None, "the replicas have ended"
        number += 1
        http = address.client(session=address.session_of(str(number)))
        async with http:
            with suppress(HostGoneError, HostRefusedError):
                pids.add((await HostClient(http).status()).pid)
        await asyncio.sleep(0.05)
    return pids


async def all_served(people: list[Person], more: int) -> None:
    """Wait until each person got `more` answers."""
    wanted = [len(person.served) + more for person in people]
    while any(len(one.served) < least for one, least in zip(people, wanted, strict=True)):
        await asyncio.sleep(0.01)


async def kill_one_after_the_other(people: list[Person], hosts: Replicas) -> None:
    oldest: list[int] = []  # process ids, the oldest first
    for _ in range(NUM_KILLS):
        began = time.monotonic()
        pids = await serving(hosts)
        oldest = [pid for pid in oldest if pid in pids]
        oldest += sorted(pids.difference(oldest))
        await all_served(people, 5)
        await asyncio.sleep(
            max(0.0, KILL_S - (time.monotonic() - began))
        )  # at most one kill in this time
        os.kill(oldest[0], signal.SIGKILL)
    await all_served(people, 5)


async def test_figures_are_of_all_replicas_and_a_new_token_reaches_them(two):
    another = replace(two.address, token=f"another{TOKEN}")
    before = await serving(two)
    async with two.address.client() as http:
        page = (await http.get("/metrics")).text
    assert len(set(re.findall(r'replica="([^"]+)"', page))) == 2
    try:
        two.tokens.write_text(another.token)
        two.process.send_signal(signal.SIGHUP)
        assert await serving(two, address=another) == before  # the same processes
        while await is_let_in(two.address):
            await asyncio.sleep(0.05)
        two.tokens.write_text("short")
        await replaced(two, another)  # new replicas start with the tokens of the plan
    finally:
        two.tokens.write_text(TOKEN)  # which is read without a signal
    while await is_let_in(another):
        await asyncio.sleep(0.05)
    await serving(two)


async def test_no_request_fails_and_workspaces_stay_while_replicas_are_killed(monkeypatch, two):
    monkeypatch.setattr(host_search, "_RETRY_S", 0.05)
    before = await serving(two)
    people = [Person(number, two.address) for number in range(NUM_PEOPLE)]

    async def kill_and_replace() -> None:
        await all_served(people, 3)
        await kill_one_after_the_other(people, two)
        if IS_ROLLING:
            await replaced(two)
            await all_served(people, 5)

    await sit_during(kill_and_replace(), people)
    assert not before & await serving(two) or NUM_KILLS < 2
    tell_and_check(people)


async def replaced(hosts: Replicas, address: HostAddress | None = None) -> None:
    """Replace all replicas, and wait until the former ones have ended."""
    former = await serving(hosts, address=address)
    hosts.process.send_signal(signal.SIGUSR1)
    while former & await serving(hosts, address=address):
        await asyncio.sleep(0.2)


def tell_and_check(people: list[Person]) -> None:
    """Check the shares; those of all requests only in the long form, where few follow a kill."""
    outcomes = sum((person.outcomes for person in people), Counter[str]())
    stay = Stay.of(people)
    sys.stdout.write(
        f"{NUM_KILLS} kills, {NUM_PEOPLE} people: {dict(outcomes)}; on the replica of the request "
        f"before: {stay.share:.2%}, of those whose replica lived: {stay.kept:.2%}; prompts "
        f"cached behind the first: {stay.warm:.2%}; slowest answer: {max(one.slowest_s for one in people):.2f} s\n"
    )
    assert not outcomes["failed"]
    assert stay.kept > 0.95
    if KILL_S:
        assert stay.share > 0.95
        assert stay.warm > 0.95 or not MODEL


async def is_let_in(address: HostAddress) -> bool:
    """Whether any replica still accepts the token."""
    for number in range(20):
        async with address.client(session=address.session_of(str(number))) as http:
            with suppress(HostRefusedError):
                await HostClient(http).status()
                return True
    return False


@pytest.mark.skipif("SCALING" not in os.environ, reason="it takes a minute: SCALING=1 runs it")
async def test_a_replica_is_added_where_requests_wait():
    with replicas("1-2") as hosts:
        await serving(hosts, 1)
        people = [Person(number, hosts.address) for number in range(4 * NUM_PEOPLE)]

        async def wait_for_the_second() -> None:
            await all_served(people, 3)
            began = time.monotonic()
            await serving(hosts, 2)
            sys.stdout.write(f"a second replica serves after {time.monotonic() - began:.0f} s\n")
            await all_served(people, 5)

        await sit_during(wait_for_the_second(), people)
        outcomes = sum((person.outcomes for person in people), Counter[str]())
        sys.stdout.write(f"{len(people)} people: {dict(outcomes)}\n")
        assert not outcomes["failed"]
        assert len({person.served[-1].home for person in people}) == 2
