"""The server as an editor meets it, with a host that a test holds in its hands."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from lsprotocol import types

from tests.support.editor import editor
from tests.support.running_host import HeldEngine, running_host

pytestmark = pytest.mark.asyncio

SOURCE = "def total(items):\n    |\n"
WORDS = ("return ", "sum(", "items", ")")


@asynccontextmanager
async def served(tmp_path, engine, **options):
    """An editor whose server finds the engine where it expects its local host."""
    run = tmp_path / "run"
    run.mkdir(mode=0o700, exist_ok=True)
    (run / "token").write_text("right")
    (run / "token").chmod(0o600)
    environ = {
        "FOREGRAM_RUNTIME": str(run),
        "FOREGRAM_CACHE": str(tmp_path),
        "FOREGRAM_CONFIG": str(tmp_path / "foregram.toml"),
        "FOREGRAM_SPECULATE": "false",
    }
    async with (
        running_host(run, engine, token="right") as host,
        editor(environ=environ, **options) as shown,
    ):
        yield shown, host


async def test_says_what_it_can_do(tmp_path):
    notebooks = types.NotebookDocumentClientCapabilities(
        types.NotebookDocumentSyncClientCapabilities()
    )
    knows = types.ClientCapabilities(notebook_document=notebooks)
    async with served(tmp_path, HeldEngine(WORDS), capabilities=knows) as (shown, _):
        able = shown.capabilities
    assert able.inline_completion_provider == types.InlineCompletionOptions()
    assert able.position_encoding == types.PositionEncodingKind.Utf16
    assert able.text_document_sync.change is types.TextDocumentSyncKind.Incremental
    assert able.notebook_document_sync is not None
    assert able.completion_provider is None
    assert "foregram.accept" in able.execute_command_provider.commands


async def test_options_of_the_client_hold_and_wrong_ones_are_named(tmp_path):
    engine = HeldEngine(WORDS)
    options = {"foregram": {"languages": {"go": False}, "maxTokns": 3, "seed": -1}}
    async with served(tmp_path, engine, options=options) as (shown, _):
        shown.open(SOURCE, language="go")
        assert await shown.items() == []
        assert await shown.reasons() == ["disabled"]
    told = "; ".join(shown.messages)
    assert told.count("maxTokns") == 1
    assert "maxTokens" in told
    assert "seed" in told


async def test_an_editor_that_cannot_tell_its_settings_gets_completions_all_the_same(tmp_path):
    knows = types.ClientCapabilities(
        workspace=types.WorkspaceClientCapabilities(configuration=True)
    )
    options = {"settings": RuntimeError("no settings here"), "capabilities": knows}
    async with served(tmp_path, HeldEngine(WORDS), **options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items()


async def test_what_was_switched_off_is_not_said_any_more_once_it_is_on(tmp_path):
    options = {"foregram": {"languages": {"python": False}}, "editorInfo": {"name": "a"}}
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items() == []
        assert shown.statuses[-1]["kind"] == "Inactive"
        changed = {"foregram": {"languages": {"python": True}}}
        shown.client.workspace_did_change_configuration(types.DidChangeConfigurationParams(changed))
        await shown.run("foregram.why")
        assert shown.statuses[-1]["kind"] == "Normal"


async def test_settings_that_are_pulled_hold_beside_those_of_the_start(tmp_path):
    engine = HeldEngine(WORDS)
    able = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(configuration=True))
    async with served(
        tmp_path,
        engine,
        capabilities=able,
        options={"languages": {"go": False}},
        settings={"temperature": 0.5},
    ) as (shown, _):
        shown.open(SOURCE, language="go")
        assert await shown.items() == []
        shown.close()
        shown.open(SOURCE)
        assert await shown.items()
    assert engine.requests[0].sampling.temperature == 0.5


async def test_a_change_of_configuration_switches_it_off_and_on(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        for enable in (False, True):
            changed = types.DidChangeConfigurationParams({"foregram": {"enable": enable}})
            shown.client.workspace_did_change_configuration(changed)
            assert bool(await shown.items()) is enable


MENU = [
    pytest.param(SOURCE, ("return ", "sum(items)"), 4, "return sum(items)", id="no word"),
    pytest.param(SOURCE.replace("|", "ret|"), ("urn a", " * b"), 4, "return a * b", id="in a word"),
    pytest.param("x = '🙂'; ret|\n", ("urn_", "value"), 10, "return_value", id="emoji"),
]


@pytest.mark.parametrize(("source", "words", "start", "text"), MENU)
async def test_clients_without_ghost_text_get_the_whole_word_in_their_menu(
    tmp_path, source, words, start, text
):
    """The edit begins at the typed word, in UTF-16 units, and filters by it."""
    options = {"completionFallback": True}
    async with served(tmp_path, HeldEngine(words), options=options) as (shown, _):
        shown.open(source)
        line = shown.text.split("\n")[shown.row]
        shown.column = len(line.encode("utf-16-le")) // 2
        (item,) = await shown.items()
        (entry,) = (await menu_of(shown)).items
    cursor = types.Position(shown.row, shown.column)
    assert entry.text_edit.range == types.Range(types.Position(shown.row, start), cursor)
    assert entry.text_edit.new_text == entry.filter_text == entry.label == text
    assert text.endswith(item.insert_text)
    assert shown.capabilities.completion_provider is not None


async def test_the_menu_names_the_first_line_and_inserts_all_of_them(tmp_path):
    options = {"completionFallback": True, "rangeFromLineStart": True}
    words = ("urn f(\n", "        items,\n    )")
    async with served(tmp_path, HeldEngine(words), options=options) as (shown, _):
        shown.open(SOURCE.replace("|", "ret|"))
        (entry,) = (await menu_of(shown)).items
    assert entry.label == "return f("
    assert entry.text_edit.range.start.character == 4
    assert entry.text_edit.new_text == "return f(\n        items,\n    )"


async def menu_of(shown):
    """The entries that the server adds to the editor's own."""
    params = types.CompletionParams(
        types.TextDocumentIdentifier(shown.uri), types.Position(shown.row, shown.column)
    )
    return await shown.client.text_document_completion_async(params)


async def test_what_becomes_of_a_completion_is_counted(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        (item,) = await shown.items()
        as_json = {
            "insertText": item.insert_text,
            "command": {"arguments": list(item.command.arguments)},
        }
        shown.client.protocol.notify("textDocument/didShowCompletion", {"item": as_json})
        shown.client.protocol.notify(
            "textDocument/didPartiallyAcceptCompletion", {"item": as_json, "acceptedLength": 6}
        )
        shown.client.protocol.notify("textDocument/didFocus", {})
        await shown.run("foregram.accept", *item.command.arguments)
        page = ""
        while 'kind="partly_accepted"' not in page:
            page = (await host.client.get("/metrics")).text
    assert 'foregram_feedback_total{kind="shown"} 1.0' in page
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page


async def test_a_completion_that_another_takes_the_place_of_was_rejected(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        ids = []
        for typed in ("", "x = 1\n    "):
            if typed:
                shown.type(typed)
            (item,) = await shown.items()
            ids.append(item.command.arguments[0])
            told = {"item": {"insertText": "", "command": {"arguments": [ids[-1]]}}}
            shown.client.protocol.notify("textDocument/didShowCompletion", told)
        page = ""
        while 'kind="shown"} 2.0' not in page:
            page = (await host.client.get("/metrics")).text
    assert ids[0] != ids[1]
    assert 'foregram_feedback_total{kind="rejected"} 1.0' in page


@pytest.mark.parametrize("params", [{}, {"item": 3}, {"item": {"command": "x"}}, [], None])
async def test_a_malformed_message_is_named_in_the_log_and_harms_nothing(tmp_path, params):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.client.protocol.notify("textDocument/didShowCompletion", params)
        shown.open(SOURCE)
        assert await shown.items()
    assert any("Shown" in message for message in shown.messages)
    assert not any("AttributeError" in message for message in shown.messages)


async def test_a_document_that_is_looked_at_is_sent_before_it_is_asked_for(tmp_path):
    engine = HeldEngine(WORDS)
    async with served(tmp_path, engine) as (shown, host):
        shown.open(SOURCE)
        await shown.items()
        shown.type("x = 1\n    ")
        focus = {"textDocument": {"uri": shown.uri}}
        shown.client.protocol.notify("textDocument/didFocus", focus)
        while not any(
            "    x = 1" in held.lines
            for client in host.service.buffers._clients.values()
            for held in client.buffers.values()
        ):
            await asyncio.sleep(0.005)
        assert await shown.items()
    assert len(engine.requests) == 2


async def test_a_file_that_is_not_completed_in_shows_as_inactive(tmp_path):
    options = {"editorInfo": {"name": "test", "version": "1"}}
    uri = "file:///shop/.env"
    async with served(tmp_path, HeldEngine(WORDS), uri=uri, options=options) as (shown, _):
        shown.open("KEY=|", language="plaintext")
        assert await shown.items() == []
        while not shown.statuses or "secret" not in shown.statuses[-1]["message"]:
            await shown.run("foregram.why")
    assert shown.statuses[-1]["kind"] == "Inactive"


async def test_who_switched_it_off_pays_for_no_host(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS), options={"enable": False}) as (shown, host):
        shown.open(SOURCE)
        assert await shown.items() == []
        assert host.service.buffers.num_clients == 0
        changed = types.DidChangeConfigurationParams({"foregram": {"enable": True}})
        shown.client.workspace_did_change_configuration(changed)
        assert await shown.items()


async def test_copilots_clients_hear_of_the_state(tmp_path):
    options = {"editorInfo": {"name": "test", "version": "1"}}
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        cost = await shown.run("foregram.cost")
    assert shown.statuses[-1] == {"kind": "Normal", "message": "fake-1b on cpu", "busy": False}
    assert any(status["busy"] for status in shown.statuses)
    assert cost["text"] == ""
    assert cost["reusedTokens"] == 90


async def test_a_cancelled_request_is_answered_as_cancelled(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with served(tmp_path, engine) as (shown, _):
        shown.open(SOURCE)
        asked = shown.ask_as("first")
        await asyncio.to_thread(engine.began.acquire)
        shown.cancel("first")
        with pytest.raises(Exception, match="cancel"):
            await asked
        while not engine.ended:
            await asyncio.sleep(0.005)
        engine.is_held = False


async def test_folders_that_are_added_bring_their_ignore_files(tmp_path):
    added = tmp_path / "added"
    added.mkdir()
    (added / ".gitignore").write_text("notes.py\n")
    uri = (added / "notes.py").as_uri()
    async with served(tmp_path, HeldEngine(WORDS), uri=uri) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items()
        event = types.WorkspaceFoldersChangeEvent(
            [types.WorkspaceFolder(added.as_uri(), "added")], []
        )
        params = types.DidChangeWorkspaceFoldersParams(event)
        shown.client.workspace_did_change_workspace_folders(params)
        assert await shown.items() == []
        assert await shown.reasons() == ["ignored_file"]
