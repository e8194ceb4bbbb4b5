"""Completions that the host is writing: whom they may serve, and when it is asked."""

import asyncio

import pytest
from lsprotocol import types

from engine.host.protocol import Failed, Position
from engine.request import Chunk, Done, FinishReason
from lsp_server.completion.in_flight import InFlightCompletion
from lsp_server.completion.plan import Plan
from lsp_server.completion.suggestions import Suggestion
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from tests.support.scripted_host import COST
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

    def begin(events, rest_s, news=lambda _: None, is_outdated=lambda _: False):
        return InFlightCompletion(plan, events(), news, is_outdated, rest_s)

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


@pytest.fixture
def script():
    return asyncio.Queue()


@pytest.fixture
async def scripted(begun, script):
    """A completion of the events that a test puts into `script`, and what it tells."""

    async def events():
        while True:
            yield await script.get()

    told = []

    def tell(one):
        told.append(one.part.suggestion.text if one.end is None else one.end)

    return begun(events, 0.0, tell), told


def done(text, reason=FinishReason.END_TOKEN):
    return Done(text, reason, COST, id="1")


async def test_what_is_sure_is_answered_at_once_and_the_rest_to_who_asks_again(scripted, script):
    running, told = scripted
    first = asyncio.create_task(running.outcome(at_end_of("x")))
    script.put_nowait(Chunk(" = so", id="1"))
    script.put_nowait(Chunk("me", id="1", is_sure=True, unsure="(y"))
    assert await first == Suggestion(" = some", 0, "1")
    script.put_nowait(done(" = some(y)"))
    assert await running.outcome(at_end_of("x = some")) == Suggestion("(y)", 0, "1", len(" = some"))
    assert await running.outcome(at_end_of("x")) == Suggestion(" = some(y)", 0, "1")
    assert told == [" = some", " = some(y)", running.end]


async def test_what_was_shown_is_only_lengthened(scripted, script):
    running, told = scripted
    script.put_nowait(Chunk(" = some", id="1", is_sure=True))
    script.put_nowait(done(" = other"))
    assert await running.outcome(at_end_of("x")) == Suggestion(" = some", 0, "1")
    while running.end is None:
        await asyncio.sleep(0)
    assert await running.outcome(at_end_of("x")) == Suggestion(" = some", 0, "1")
    assert told == [" = some", running.end]


async def test_a_part_that_cannot_stand_waits_for_the_rest(scripted, script):
    running, _ = scripted
    asked = asyncio.create_task(running.outcome(at_end_of("x")))
    for part in (" = ", "[", "1, "):
        script.put_nowait(Chunk(part, id="1", is_sure=True))
    while not script.empty():
        await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not asked.done()
    script.put_nowait(done(" = [1, 2]"))
    assert await asked == Suggestion(" = [1, 2]", 0, "1")


async def test_who_types_something_else_than_is_being_judged_is_not_kept_waiting(scripted, script):
    running, _ = scripted
    script.put_nowait(Chunk(" = some", id="1", is_sure=True, unsure="(y"))
    assert await running.outcome(at_end_of("x"))
    assert await running.outcome(at_end_of("x = some[")) is Reason.SUPERSEDED
    assert running.may_serve(at_end_of("x = some(y"))


async def test_it_goes_on_while_what_was_answered_is_the_document(begun, script):
    is_outdated, is_ended = False, asyncio.Event()

    async def events():
        try:
            while True:
                yield await script.get()
        finally:
            is_ended.set()

    running = begun(events, 0.0, is_outdated=lambda _: is_outdated)
    script.put_nowait(Chunk(" = some", id="1", is_sure=True))
    assert await running.outcome(at_end_of("x"))
    running.doubt()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(is_ended.wait(), 0.3)
    is_outdated = True
    running.doubt()
    await asyncio.wait_for(is_ended.wait(), 5)


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
