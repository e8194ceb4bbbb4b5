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
    assert "maxTokns" in told
    assert "maxTokens" in told
    assert "seed" in told


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


async def test_copilots_clients_hear_of_the_state(tmp_path):
    options = {"editorInfo": {"name": "test", "version": "1"}}
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        cost = await shown.run("foregram.cost")
    assert shown.statuses[-1]["kind"] == "Normal"
    assert "fake-1b" in shown.statuses[-1]["message"]
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
