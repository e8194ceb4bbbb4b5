"""The outcomes that a link notes for its requests."""

import tempfile
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from lsprotocol import types
from msgspec.structs import replace

from engine.config import StopRules
from engine.host.protocol import Position
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.documents import Documents
from lsp_server.host.address import HostAddress
from lsp_server.workspace_files import WorkspaceFiles
from tests.bench.simulated.load.host_requests import CountingLink, HostRequest
from tests.support.held_engine import HeldEngine
from tests.support.running_host import running_host
from tests.support.workspaces import nothing, workspace_of

pytestmark = pytest.mark.asyncio

URI = "file:///shop/a.py"


@asynccontextmanager
async def linked(engine):
    with tempfile.TemporaryDirectory(prefix="fg-", dir="/tmp") as name:
        async with running_host(Path(name), engine):
            documents, log = Documents(), list[HostRequest]()
            documents.open(types.TextDocumentItem(URI, "python", 1, "a = "))

            async def find():
                return HostAddress("", Path(name) / "host.sock")

            workspace = workspace_of(documents)
            files = WorkspaceFiles(workspace, nothing)
            link = CountingLink(log, workspace, files, find, nothing)
            link.search.begin()
            assert await link.search.ready() == "ready"
            snapshot: Any = documents.snapshot(URI)

            def complete(lookahead="auto", **how):
                workspace.settings = replace(workspace.settings, lookahead=lookahead)
                return link.complete(Anchor.of(snapshot, Position(0, 4)), **how)

            try:
                yield log, complete
            finally:
                await link.leave()


async def test_an_answer_is_noted_with_its_first_text_and_its_tokens():
    async with linked(HeldEngine()) as (log, complete):
        async for _event in complete():
            pass
    [noted] = log
    assert (noted.outcome, noted.tokens, noted.is_ahead) == ("answered", 3, False)
    assert 0 < noted.first_text_s <= noted.ended_s


async def test_what_reads_a_prompt_or_comes_next_is_computed_ahead():
    async with linked(HeldEngine()) as (log, complete):
        for how in ({"stop": StopRules(max_tokens=0)}, {"is_prefetch": True}):
            async for _event in complete(**how):
                pass
    assert [one.is_ahead for one in log] == [True, True]


async def test_an_error_is_noted_with_its_code():
    async with linked(HeldEngine()) as (log, complete):
        with pytest.raises(Exception, match="W,N,G"):
            async for _event in complete(lookahead="nonsense"):
                pass
    assert [(one.outcome, one.trouble) for one in log] == [("failed", "bad_request")]


@pytest.mark.parametrize(("code", "outcome"), [("quota", "refused"), ("internal_error", "failed")])
async def test_who_has_a_full_share_is_refused(code, outcome):
    noted = HostRequest(0.0, is_ahead=False)
    noted.refuse(code)
    assert (noted.outcome, noted.trouble) == (outcome, code)
