"""Completions that the host is writing: whom they may serve."""

import asyncio

from lsprotocol import types

from engine.host.protocol import Position
from engine.request import Chunk
from lsp_server.completion.in_flight import InFlightCompletion
from lsp_server.completion.plan import Plan
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from tests.support.workspaces import workspace_of


def at_end_of(line):
    documents = Documents()
    documents.open(types.TextDocumentItem("file:///a.py", "python", 1, line))
    snapshot = documents.snapshot("file:///a.py")
    assert isinstance(snapshot, Snapshot)
    return Anchor.of(snapshot, Position(0, len(line)))


async def test_what_is_written_serves_whoever_types_along_behind_it_or_ahead_of_it():
    is_written = asyncio.Event()

    async def events():
        yield Chunk("return ")
        is_written.set()
        await asyncio.Event().wait()

    plan = Plan.at(at_end_of("x"), Places(), workspace_of(Documents()).settings)
    running = InFlightCompletion(plan, events(), lambda _: None)
    await is_written.wait()
    fits = [running.may_serve(at_end_of(f"x{typed}")) for typed in ("", "re", "return x", "ra")]
    assert fits == [True, True, True, False]
    joining = asyncio.create_task(running.outcome(at_end_of("xre")))
    await asyncio.sleep(0)
    assert not joining.done()
    running.cancel()
    assert await joining is Reason.SUPERSEDED
