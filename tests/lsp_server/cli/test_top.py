"""`foregram top`: a host's figures once, for programs, and live on a terminal."""

import argparse
import asyncio
import json
import os
import pty
import re
import signal
import sys
import termios
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from engine.host.runtime import RuntimeFolder
from lsp_server.cli.top import show_top
from lsp_server.reasons import Reason
from lsp_server.saved import Day, add, today
from lsp_server.settings import Settings
from lsp_server.why import EmptyAnswer, Kept
from tests.support.held_engine import HeldEngine
from tests.support.running_host import TOKEN, ask, buffer, headers_with, running_host


@asynccontextmanager
async def local_host(tmp_path, **engine):
    """A host after one completion of three tokens, and settings that find it."""
    run = RuntimeFolder.open(tmp_path / "run")
    async with running_host(run.path, HeldEngine(**engine), token=run.token()) as host:
        await host.answered(ask(buffer("x = 1")))
        yield host, Settings(cache_folder=tmp_path, runtime_folder=run.path)


async def top(settings, capsys, *, once=True, as_json=False):
    words = argparse.Namespace(once=once, json=as_json)
    status = await asyncio.to_thread(show_top, words, settings)
    return status, capsys.readouterr()


async def told(settings, capsys):
    status, printed = await top(settings, capsys, as_json=True)
    assert status == 0
    return json.loads(printed.out)


async def test_programs_get_status_figures_reasons_and_what_was_saved(tmp_path, capsys):
    async with local_host(tmp_path) as (_, settings):
        add(tmp_path, {today(): Day(7, 1, 2)})
        Kept((EmptyAnswer(1.0, Reason.PROSE, "file:///a.md", 3),)).write(tmp_path / "run", "one")
        shown = await told(settings, capsys)
    figures = shown["figures"]["since_its_start"]
    assert shown["status"]["model"] == "fake-1b"
    assert (figures["tokens"], figures["tokens_per_step"]) == (3, 1)
    assert figures["tokens_per_second"] == pytest.approx(3 / 0.007)
    assert figures["plain_tokens_per_second"] == pytest.approx(250)
    assert [one["reason"] for one in shown["reasons"]] == ["prose"]
    assert shown["saved_today"]["keystrokes"] == 7


async def test_without_a_terminal_it_is_plain_text_and_ends(tmp_path, capsys):
    async with local_host(tmp_path) as (_, settings):
        Kept((EmptyAnswer(1.0, Reason.PROSE, "file:///a.md", 3),)).write(tmp_path / "run", "one")
        status, printed = await top(settings, capsys, once=False)
    assert status == 0
    rows = [" ".join(line.split()) for line in printed.out.splitlines()]
    assert {"state ready", "tokens per second 428.6", "without lookahead 250.0"} <= {*rows}
    assert {"tokens per step 1.00", "from model 1.00", "drafted tokens accepted 0%"} <= {*rows}
    (reason,) = (row for row in rows if "a.md:3" in row)
    assert reason.endswith("in `languages`"), "no line is cut"
    assert printed.out.replace("\n", "").isprintable()


async def test_a_remote_host_is_watched_by_its_address(tmp_path, capsys):
    async with running_host(None, HeldEngine(), token=TOKEN) as host:
        await host.answered(ask(buffer("x = 1")))
        settings = Settings(
            cache_folder=tmp_path, runtime_folder=tmp_path, host_url=host.url, token=TOKEN
        )
        shown = await told(settings, capsys)
    assert shown["figures"]["since_its_start"]["tokens"] == 3


async def test_who_may_not_see_all_sees_the_last_completion(tmp_path, capsys):
    names = tmp_path / "tokens"
    names.write_text(f"ada:{TOKEN}\n")
    names.chmod(0o600)
    async with running_host(None, HeldEngine(), token_file=names) as host:
        host.client.headers.update(headers_with(TOKEN))
        settings = Settings(
            cache_folder=tmp_path, runtime_folder=tmp_path, host_url=host.url, token=TOKEN
        )
        assert (await told(settings, capsys))["figures"] == {}
        await host.answered(ask(buffer("x = 1")))
        figures = (await told(settings, capsys))["figures"]
    assert [*figures] == ["last_completion"]
    assert figures["last_completion"]["tokens"] == 3


@pytest.mark.parametrize("as_json", [False, True])
async def test_where_no_host_runs_it_says_so_in_a_sentence(tmp_path, capsys, as_json):
    settings = Settings(cache_folder=tmp_path, runtime_folder=tmp_path)
    status, printed = await top(settings, capsys, as_json=as_json)
    assert status == 1
    sentence = json.loads(printed.out)["reason"] if as_json else printed.err.strip()
    assert sentence.endswith("host.sock")
    assert "no completion host listens on" in sentence


async def test_on_a_terminal_it_follows_the_host_until_q(tmp_path):
    async with local_host(tmp_path) as (host, settings), live(settings) as terminal:
        await terminal.shows("428.6")
        await host.answered(ask(buffer("x = 2", version=2), version=2))
        await terminal.shows("last minute")
        os.write(terminal.ours, b"q")
        assert await terminal.process.wait() == 0
        assert termios.tcgetattr(terminal.ours)[3] & termios.ECHO, "it is as before"


async def test_80_columns_and_24_lines_have_room_for_all_that_people_watch(tmp_path):
    sources = ("edited_file", "previous_completion", "open_buffer", "recycler", "model")
    accepted = dict.fromkeys(sources, 1)
    async with local_host(tmp_path, accepted=accepted) as (_, settings):
        lines = range(10, 15)
        answers = (EmptyAnswer(1.0, Reason.PROSE, "file:///名前.md", line) for line in lines)
        Kept(tuple(answers)).write(tmp_path / "run", "one")
        async with live(settings, rows=24, columns=80) as terminal:
            screen = await terminal.shows("428.6(.|\n)*\x1b")
    watched = ["state", "requests", "clients", "memory", *(f"名前.md:{line}" for line in lines)]
    figures = ["tokens per second", "without lookahead", "accepted", "wait in the queue"]
    for text in (*watched, *figures, "tokens per step", *(f"from {name} " for name in sources)):
        assert text in screen
    assert "address" not in screen, "the rest is cut"


async def test_a_terminal_that_cannot_be_redrawn_gets_the_figures_once(tmp_path):
    async with local_host(tmp_path) as (_, settings), live(settings, term="dumb") as terminal:
        await terminal.shows("428.6")
        assert await terminal.process.wait() == 0


async def test_a_host_that_goes_is_waited_for_and_the_next_one_begins_anew(tmp_path):
    async with local_host(tmp_path) as (host, settings), live(settings) as terminal:
        await terminal.shows("428.6")
        host.server.stop()
        await terminal.shows("no completion host listens on")
        run = RuntimeFolder.open(settings.runtime_folder)
        async with running_host(run.path, HeldEngine(), token=run.token()) as other:
            await terminal.shows("completions +0 +0 ")
            await other.answered(ask(buffer("x = 1")))
            await terminal.shows("completions +1 +1 ")
            terminal.process.send_signal(signal.SIGINT)
            assert await terminal.process.wait() == 0


async def test_ctrl_c_ends_it_while_no_host_answers(tmp_path):
    async with local_host(tmp_path) as (host, settings), live(settings) as terminal:
        await terminal.shows("428.6")
        host.server.stop()
        await terminal.shows("no completion host listens on")
        terminal.process.send_signal(signal.SIGINT)
        assert await terminal.process.wait() == 0


@dataclass
class Terminal:
    """A terminal with the command on it."""

    process: asyncio.subprocess.Process
    ours: int  # where its keys are pressed, and what it draws is read
    drawn: bytearray = field(default_factory=bytearray)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def read(self):
        self.drawn.extend(os.read(self.ours, 65536))
        self.changed.set()

    async def shows(self, text):
        """Wait for a text, a pattern, that was not waited for yet; return what was drawn."""
        while not re.search(text.encode(), self.drawn):
            self.changed.clear()
            await self.changed.wait()
        drawn = self.drawn.decode(errors="replace")
        self.drawn.clear()
        return drawn


@asynccontextmanager
async def live(settings, *, rows=40, columns=120, term="xterm"):
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (rows, columns))
    environ = {
        "FOREGRAM_RUNTIME": str(settings.runtime_folder),
        "FOREGRAM_CACHE": str(settings.cache_folder),
        "HOME": str(settings.cache_folder),
        "TERM": term,
    }
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lsp_server", "top"),
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environ,
    )
    terminal, loop = Terminal(process, ours), asyncio.get_running_loop()
    loop.add_reader(ours, terminal.read)
    try:
        yield terminal
    finally:
        loop.remove_reader(ours)
        if process.returncode is None:
            process.kill()
            await process.wait()
        os.close(ours)
        os.close(theirs)
