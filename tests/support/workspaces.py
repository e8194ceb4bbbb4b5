"""A workspace without an editor, and a link from it to a host."""

import asyncio
from collections.abc import AsyncGenerator, Coroutine, Sequence
from pathlib import Path
from typing import Any

from engine.host.protocol import CompleteEvent, CompleteRequest
from lsp_server.documents.document import Snapshot
from lsp_server.documents.documents import Documents
from lsp_server.host.link import HostLink
from lsp_server.host.search import FindHost, Watch
from lsp_server.privacy.permissions import Permissions
from lsp_server.settings import Settings
from lsp_server.workspace import Workspace
from lsp_server.workspace_files import WorkspaceFiles


class HeldPermissions(Permissions):
    """Hides the URIs that a test chooses; sends the rest under its path below the root."""

    def __init__(self, settings: Settings, root: str) -> None:
        super().__init__([], settings)
        self._root = root
        self.hidden: set[str] = set()
        self.asked: list[str] = []

    def may_send(self, snapshot: Snapshot) -> bool:
        self.asked.append(snapshot.uri)
        return snapshot.uri not in self.hidden

    def path_of(self, uri: str) -> str:
        return uri.removeprefix(self._root)


def workspace_of(documents: Documents, root: str = "", **settings: Any) -> Workspace:
    """Return a workspace that hides nothing."""
    chosen = Settings(cache_folder=Path("/none"), runtime_folder=Path("/none"), **settings)
    return Workspace(documents, chosen, HeldPermissions(chosen, root), root)


def nothing(*_: object) -> None:
    """A watcher that never reports a change."""


def link_of(workspace: Workspace, find: FindHost, watch: Watch = nothing) -> HostLink:
    """Return a link that knows only open files."""
    return HostLink(workspace, WorkspaceFiles(workspace, nothing), find, watch)


def requests_of(link: HostLink) -> list[CompleteRequest]:
    """Return the list of requests that a link sends to its host from now on."""
    sent, client = list[CompleteRequest](), link.search.client
    assert client is not None
    complete = client.complete

    def noted(request: CompleteRequest) -> AsyncGenerator[CompleteEvent]:
        sent.append(request)
        return complete(request)

    client.complete = noted  # type: ignore[method-assign] # it notes, and goes on
    return sent


async def sit_during(work: Coroutine[Any, Any, None], people: Sequence[Any]) -> None:
    """Have people type until the work is done, then leave; a failure ends it early."""
    is_over = asyncio.Event()

    async def to_the_end() -> None:
        await work
        is_over.set()

    tasks = [asyncio.create_task(one) for one in (to_the_end(), *(p.sit(is_over) for p in people))]
    done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    for task in done:
        task.result()
    await asyncio.gather(*tasks)
    for person in people:
        await person.link.leave()
