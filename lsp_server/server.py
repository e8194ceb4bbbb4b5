"""The language server: its capabilities and a thin handler for each message."""

import asyncio
import gc
import logging
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec
from lsprotocol import types

from lsp_server.commands import COMMANDS
from lsp_server.connection import CONFIGURATION, SECTION, ForegramServer
from lsp_server.documents.document import Snapshot
from lsp_server.edits.code_actions import KINDS, code_actions
from lsp_server.edits.messages import InlineEditParams
from lsp_server.feedback import ItemParams, PlaceParams, read
from lsp_server.setting_layers import Layer


async def initialized(server: ForegramServer, _params: types.InitializedParams) -> None:
    """Fetch the client's settings, then connect to the host."""
    if not gc.isenabled():  # the first client of this process
        gc.freeze()  # objects created so far are permanent: no collection needs to scan them
        gc.enable()
    server.begin()
    with suppress(asyncio.CancelledError):  # on Ctrl-C pygls would print a stack trace
        await server.pull_settings()
        await server.session.connect()
        await server.session.files.begin()
        server.watch_files()


def notebook_changed(server: ForegramServer, params: types.DidChangeNotebookDocumentParams) -> None:
    """Handle added, removed, moved and edited cells."""
    cells = params.change.cells
    if cells is None:
        return
    for content in cells.text_content or ():
        server.session.changed(content.document.uri, content.changes)
    if cells.structure is not None:
        for added in cells.structure.did_open or ():
            server.session.opened([added.uri])
        server.session.closed(*(one.uri for one in cells.structure.did_close or ()))


async def configured(server: ForegramServer, params: types.DidChangeConfigurationParams) -> None:
    """Apply the changed settings that the client sends, or request them."""
    given = msgspec.to_builtins(params.settings) if params.settings is not None else None
    if isinstance(given, dict) and SECTION in given:
        server.configure(given[SECTION], CONFIGURATION)
    else:
        await server.pull_settings()
    await server.session.connect()


async def leaves(server: ForegramServer, _params: None) -> None:
    """End the session when the client sends `shutdown`."""
    await server.session.leave()


def shown(server: ForegramServer, params: object) -> None:
    """Record that a completion is on the screen."""
    if completion_id := read(params, ItemParams).item.completion_id:
        server.session.shown(completion_id)


def partly_accepted(server: ForegramServer, params: object) -> None:
    """Record a partial acceptance, whose length the client counts in UTF-16 units."""
    message = read(params, ItemParams)
    if completion_id := message.item.completion_id:
        end = message.item.end_of(message.accepted_length)
        server.session.accepted(completion_id, end, "partly_accepted", begun=message.item.begun)


async def focused(server: ForegramServer, params: object) -> None:
    """Record which document the user looks at, if any."""
    document = read(params, PlaceParams).text_document
    if document is None:
        server.session.focus("")
    else:
        await server.session.looked_at(document.uri)


def cursor_rests(server: ForegramServer, params: object) -> None:
    """Prepare for a request where the cursor has come to rest."""
    place = read(params, PlaceParams)
    if place.text_document is not None and place.position is not None:
        server.session.rested(place.text_document.uri, place.position)


async def next_edit(server: ForegramServer, params: object) -> dict[str, Any]:
    """Return the next edit, if one is likely."""
    return await server.session.next_edits.answer(read(params, InlineEditParams))


def next_edit_shown(server: ForegramServer, params: object) -> None:
    """Record that a next edit is on the screen."""
    if proposal_id := read(params, ItemParams).item.completion_id:
        server.session.next_edits.shown(proposal_id)


def offered_actions(
    server: ForegramServer, params: types.CodeActionParams
) -> list[types.CodeAction]:
    """Return the edits that a menu offers for a selection and its diagnostics."""
    document = server.documents.snapshot(params.text_document.uri)
    if isinstance(document, Snapshot) and (actions := code_actions(params, document)):
        return actions if server.session.asked_edits.may_offer(document) else []
    return []


_HANDLERS: dict[str, Callable[..., object]] = {
    types.INITIALIZED: initialized,
    types.SHUTDOWN: leaves,
    types.TEXT_DOCUMENT_DID_CHANGE: lambda ls, params: ls.session.changed(
        params.text_document.uri, params.content_changes
    ),
    types.TEXT_DOCUMENT_DID_CLOSE: lambda ls, params: ls.session.closed(params.text_document.uri),
    types.TEXT_DOCUMENT_DID_OPEN: lambda ls, params: ls.session.opened([params.text_document.uri]),
    types.TEXT_DOCUMENT_DID_SAVE: lambda ls, params: ls.session.files_changed(
        [params.text_document.uri]
    ),
    types.NOTEBOOK_DOCUMENT_DID_CHANGE: notebook_changed,
    types.NOTEBOOK_DOCUMENT_DID_CLOSE: lambda ls, params: ls.session.closed(
        *(cell.uri for cell in params.cell_text_documents)
    ),
    types.NOTEBOOK_DOCUMENT_DID_OPEN: lambda ls, params: ls.session.opened(
        cell.uri for cell in params.cell_text_documents
    ),
    types.WORKSPACE_DID_CHANGE_CONFIGURATION: configured,
    types.WORKSPACE_DID_CHANGE_WATCHED_FILES: lambda ls, params: ls.session.files_changed(
        [change.uri for change in params.changes]
    ),
    types.WORKSPACE_DID_CHANGE_WORKSPACE_FOLDERS: lambda ls, params: ls.session.move(
        added=[folder.uri for folder in params.event.added],
        removed=[folder.uri for folder in params.event.removed],
    ),
    types.WINDOW_WORK_DONE_PROGRESS_CANCEL: lambda ls, params: ls.edit_command.cancel(params.token),
    "foregram/cursor": cursor_rests,
    "textDocument/copilotInlineEdit": next_edit,
    "textDocument/didFocus": focused,
    "textDocument/didPartiallyAcceptCompletion": partly_accepted,
    "textDocument/didShowCompletion": shown,
    "textDocument/didShowInlineEdit": next_edit_shown,
}


def create_server(command_line: Layer) -> ForegramServer:
    """Build the server for one connection."""
    # pygls logs whole messages, including the user's text.
    logging.getLogger("pygls").setLevel(logging.CRITICAL)
    server = ForegramServer(command_line)
    complete = partial(server.session.complete)  # pygls sets attributes, which methods do not allow
    options = types.InlineCompletionOptions()
    server.feature(types.TEXT_DOCUMENT_INLINE_COMPLETION, options)(complete)
    actions = types.CodeActionOptions(code_action_kinds=list(KINDS))
    server.feature(types.TEXT_DOCUMENT_CODE_ACTION, actions)(offered_actions)
    for method, handler in _HANDLERS.items():
        server.feature(method)(handler)
    for name, handler in COMMANDS.items():
        server.command(name)(handler)
    return server
