"""A device that is lost ends its host: one answer is empty, and the next host is asked."""

import asyncio
import sys
from contextlib import asynccontextmanager
from functools import partial

import pytest
from lsprotocol import types

from engine.errors import DeviceLostError
from engine.host.protocol import Failed, Position
from engine.host.runtime import HostRecord
from engine.request import Done
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.address import HostError
from lsp_server.host.client import host_status
from lsp_server.host.daemon import ensure_host, serve_command
from tests.support.held_engine import DEVICE_FAULT as FAULT
from tests.support.workspaces import link_of, workspace_of

URI = "file:///shop/a.py"
LOST = Failed("device_lost", FAULT)


def command(stub, losses):
    """Start a host that loses its device if it is one of the first `losses`."""
    counting = ["--losses", str(losses), "--starts", str(stub.folder.path / "starts")]
    options = serve_command(stub.settings, stub.folder)[5:]
    return [sys.executable, "-m", "tests.support.held_host", "lose", *counting, *options]


@asynccontextmanager
async def linked(stub, losses):
    documents = Documents()
    documents.open(types.TextDocumentItem(URI, "python", 1, "x"))
    snapshot = documents.snapshot(URI)
    assert isinstance(snapshot, Snapshot)
    find = partial(ensure_host, stub.settings, command(stub, losses))
    link = link_of(workspace_of(documents), find)
    link.search.begin()

    async def ask():
        *_, last = [event async for event in link.complete(Anchor.of(snapshot, Position(0, 1)))]
        return last

    try:
        yield ask
    finally:
        await link.leave()


async def test_the_next_completion_comes_from_another_host(stub):
    async with linked(stub, losses=1) as ask:
        assert await ask() == LOST
        done = await ask()
    assert isinstance(done, Done)
    assert done.text == "one two three"
    status = (await host_status(stub.settings)).status
    assert [status.pid] == stub.starts[1:]
    assert stub.folder.read_record().failures == 1


async def test_a_device_that_is_lost_again_and_again_is_not_tried_for_ever(stub):
    async with linked(stub, losses=9) as ask:
        assert [await ask(), await ask()] == [LOST, LOST]
    with pytest.raises(HostError, match=rf"2 times in a row: .*{FAULT}"):
        await ensure_host(stub.settings, command(stub, losses=9))
    assert len(stub.starts) == 2


async def test_the_process_ends_with_a_status_of_its_own(stub):
    stub.folder.record_path.touch()
    stub.folder.write_record(HostRecord(1, started_at=0.0))
    stub.folder.token()
    process = await asyncio.create_subprocess_exec(*command(stub, losses=1))
    while (await host_status(stub.settings)).kind == "absent":
        await asyncio.sleep(0.05)
    async with linked(stub, losses=1) as ask:
        assert await ask() == LOST
    assert await process.wait() == DeviceLostError.exit_status
    record = stub.folder.read_record()
    assert record is not None, "a host that ended well leaves it empty"
    assert not record.has_served, "it counts as a failure, however long it had loaded"
    assert not stub.folder.socket_path.exists()
