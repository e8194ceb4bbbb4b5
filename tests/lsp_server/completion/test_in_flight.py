"""Completions that the host is writing: whom they may serve, and when it is asked."""

import asyncio

import pytest
from lsprotocol import types

from engine.host.protocol import Failed, Position
from engine.request import Chunk
from lsp_server.completion.in_flight import InFlightCompletion
from lsp_server.completion.plan import Plan
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from tests.support.workspaces import workspace_of


class Events:
    """Notes when the host was asked; it has nothing to say."""

    def __init__(self):
        self.is_asked = asyncio.Event()

    async def __call__(self):
        self.is_asked.set()
        yield Failed("no_text", "nothing")


def at_end_of(line):
    documents = Documents()
    documents.open(types.TextDocumentItem("file:///a.py", "python", 1, line))
    snapshot = documents.snapshot("file:///a.py")
    assert isinstance(snapshot, Snapshot)
    return Anchor.of(snapshot, Position(0, len(line)))


@pytest.fixture
def anchor():
    return at_end_of("x")


@pytest.fixture
def begun(anchor):
    """Begin a completion of these events."""
    workspace = workspace_of(Documents())
    plan = Plan.at(anchor, Places(), workspace.settings)

    def begin(events, rest_s):
        return InFlightCompletion(plan, events(), lambda _: None, rest_s)

    return begin


async def test_the_host_is_asked_at_once_for_what_somebody_waits_for(anchor, begun):
    events = Events()
    running = begun(events, 600.0)
    await asyncio.sleep(0)
    assert not events.is_asked.is_set()
    assert await running.outcome(anchor) is Reason.HOST_FAILED


async def test_the_host_is_asked_after_a_rest_that_nobody_ended(begun):
    events = Events()
    begun(events, 0.01)
    await asyncio.wait_for(events.is_asked.wait(), 5)


async def test_what_is_cancelled_in_its_rest_is_never_asked_for(anchor, begun):
    events = Events()
    running = begun(events, 600.0)
    running.cancel()
    assert await running.outcome(anchor) is Reason.SUPERSEDED
    assert not events.is_asked.is_set()


async def test_what_is_written_serves_whoever_types_along_behind_it_or_ahead_of_it(begun):
    is_written = asyncio.Event()

    async def events():
        yield Chunk("return ")
        is_written.set()
        await asyncio.Event().wait()

    running = begun(events, 0.0)
    await is_written.wait()
    fits = [running.may_serve(at_end_of(f"x{typed}")) for typed in ("", "re", "return x", "ra")]
    assert fits == [True, True, True, False]
    joining = asyncio.create_task(running.outcome(at_end_of("xre")))
    await asyncio.sleep(0)
    assert not joining.done()
    running.cancel()
    assert await joining is Reason.SUPERSEDED
