"""The server as an editor meets it, with a host that a test holds in its hands."""

import asyncio
import threading

import pytest
from lsprotocol import types

from engine.errors import ModelNotFoundError
from engine.host import app
from engine.host.bodies import decoded
from engine.host.buffers import ClientId
from engine.request import Chunk
from tests.support.held_engine import HeldEngine
from tests.support.running_host import engine_after
from tests.support.served_editor import served

SOURCE = "def total(items):\n    |\n"
WORDS = ("return ", "sum(", "items", ")")
PULLS = types.ClientCapabilities(workspace=types.WorkspaceClientCapabilities(configuration=True))


def configure(shown, **settings):
    changed = types.DidChangeConfigurationParams({"foregram": settings})
    shown.client.workspace_did_change_configuration(changed)


def focus(shown):
    document = {"textDocument": {"uri": shown.uri}}
    shown.client.protocol.notify("textDocument/didFocus", document)


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
    options = {"foregram": {"languages": {"go": False}, "maxTokns": 3, "debounceMs": -1}}
    async with served(tmp_path, engine, options=options) as (shown, _):
        shown.open(SOURCE, language="go")
        assert await shown.items() == []
        assert await shown.reasons() == ["disabled_language"]
    told = "; ".join(shown.messages)
    assert told.count("maxTokns") == 1
    assert "maxTokens" in told
    assert "debounceMs" in told


async def test_settings_that_come_late_are_taken(tmp_path):
    """They were dropped after three seconds, so that what is switched off completed."""
    may_answer = threading.Event()
    options = {"settings": may_answer, "capabilities": PULLS}
    async with served(tmp_path, HeldEngine(WORDS), **options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items()  # after three seconds without them
        may_answer.set()
        while "disabled" not in await shown.reasons():
            shown.type("x")
            await shown.items()


@pytest.mark.parametrize(
    "settings", [None, 7, "x", [], {"enable": None}, {"foregram": {}}, RuntimeError("no settings")]
)
async def test_settings_of_any_form_keep_nobody_from_completing(tmp_path, settings):
    options = {"settings": settings, "capabilities": PULLS}
    async with served(tmp_path, HeldEngine(WORDS), **options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items()


async def test_what_was_switched_off_is_not_said_any_more_once_it_is_on(tmp_path):
    options = {"foregram": {"languages": {"python": False}}, "editorInfo": {"name": "a"}}
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items() == []
        assert shown.statuses[-1]["kind"] == "Inactive"
        configure(shown, languages={"python": True})
        await shown.run("foregram.why")
        assert shown.statuses[-1]["kind"] == "Normal"


async def test_settings_that_are_pulled_hold_beside_those_of_the_start(tmp_path):
    engine = HeldEngine(WORDS)
    options = {"options": {"languages": {"go": False}}, "settings": {"temperature": 0.5}}
    async with served(tmp_path, engine, capabilities=PULLS, **options) as (shown, _):
        shown.open(SOURCE, language="go")
        assert await shown.items() == []
        shown.close()
        shown.open(SOURCE)
        assert await shown.items()
    assert engine.requests[0].sampling.temperature == 0.5


MENU = [
    pytest.param(SOURCE, ("return ", "sum(items)"), 4, "return sum(items)", id="no word"),
    pytest.param(SOURCE.replace("|", "ret|"), ("urn a", " * b"), 4, "return a * b", id="in a word"),
    pytest.param("x = '🙂'; ret|\n", ("urn_", "value"), 10, "return_value", id="emoji"),
    pytest.param(SOURCE, ("f(\n", "        a,\n    )"), 4, "f(\n        a,\n    )", id="lines"),
]


@pytest.mark.parametrize(("source", "words", "start", "text"), MENU)
async def test_clients_without_ghost_text_get_the_whole_word_in_their_menu(
    tmp_path, source, words, start, text
):
    """The edit begins at the typed word, in UTF-16 units; the menu names its first line."""
    options = {"completionFallback": True}
    async with served(tmp_path, HeldEngine(words), options=options) as (shown, _):
        shown.open(source)
        (item,) = await shown.items()
        (entry,) = (await menu_of(shown)).items
    cursor = shown.position
    assert entry.text_edit.range == types.Range(types.Position(cursor.line, start), cursor)
    assert entry.text_edit.new_text == text
    assert entry.filter_text == entry.label == text.split("\n")[0]
    assert text.endswith(item.insert_text)
    assert shown.capabilities.completion_provider is not None


@pytest.mark.parametrize(("text", "language"), [("|", "python"), ("Once upon |", "markdown")])
async def test_where_nothing_comes_by_itself_the_menu_brings_it_when_it_is_invoked(
    tmp_path, text, language
):
    options = {"completionFallback": True, "numCandidates": 1}
    kinds = types.CompletionTriggerKind
    async with served(tmp_path, HeldEngine(("total",)), options=options) as (shown, _):
        shown.open(text, language=language)
        typed = types.CompletionContext(kinds.TriggerCharacter, " ")
        assert not (await menu_of(shown, typed)).items
        (entry,) = (await menu_of(shown, types.CompletionContext(kinds.Invoked))).items
    assert entry.label == "total"


async def test_an_invoked_menu_is_no_explicit_request_in_code(tmp_path):
    engine = HeldEngine(WORDS)
    async with served(tmp_path, engine, options={"completionFallback": True}) as (shown, _):
        shown.open(SOURCE)
        await menu_of(shown, types.CompletionContext(types.CompletionTriggerKind.Invoked))
    assert len(engine.requests) == 1


async def menu_of(shown, context=None):
    where = types.TextDocumentIdentifier(shown.uri), shown.position
    params = types.CompletionParams(*where, context=context)
    return await shown.client.text_document_completion_async(params)


async def test_what_becomes_of_completions_is_counted_with_the_next_request(tmp_path):
    """One that another takes the place of on the screen was rejected."""
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        for accepts in (False, True, False):
            (item,) = await shown.items()
            ours = list(item.command.arguments)
            as_json = {"insertText": item.insert_text, "command": {"arguments": ours}}
            shown.client.protocol.notify("textDocument/didShowCompletion", {"item": as_json})
            if accepts:
                part = {"item": as_json, "acceptedLength": 6}
                shown.client.protocol.notify("textDocument/didPartiallyAcceptCompletion", part)
                await shown.run("foregram.accept", *ours)
            shown.type("x = 1\n    ")
        await shown.items()
        page = (await host.client.get("/metrics")).text
    for kind, count in (("shown", 3), ("rejected", 1), ("partly_accepted", 1), ("accepted", 1)):
        assert f'foregram_feedback_total{{kind="{kind}"}} {count}.0' in page


async def test_an_accept_with_no_request_behind_it_is_counted_at_the_next_pause(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        (item,) = await shown.items()
        await shown.run("foregram.accept", *item.command.arguments)
        shown.type(item.insert_text)
        while 'kind="accepted"} 1.0' not in (await host.client.get("/metrics")).text:
            await asyncio.sleep(0.005)


async def test_what_is_counted_of_an_accept_was_on_the_screen(tmp_path):
    """The running completion may have become longer meanwhile, and some of it is typed or taken."""
    engine = HeldEngine((Chunk("return items", is_sure=True), "[0]", "\n    "), is_held=True)
    async with served(tmp_path, engine, options={"lineEnds": "document"}) as (shown, host):
        shown.open(SOURCE.replace("\n", "\r\n"))
        engine.permits.release()
        (item,) = await shown.items()
        engine.permits.release(9)
        while not engine.ended:
            await asyncio.sleep(0.005)
        shown.type("re")
        (rest,) = await shown.items()
        told = [("didPartiallyAcceptCompletion", rest, 4, 6), ("", item, 0, 12), ("", rest, 0, 15)]
        for method, one, length, counted in told:
            if method:
                plain = {
                    "insertText": one.insert_text,
                    "command": {"arguments": [*one.command.arguments]},
                }
                shown.client.protocol.notify(
                    f"textDocument/{method}", {"item": plain, "acceptedLength": length}
                )
            else:
                await shown.run("foregram.accept", *one.command.arguments)
            shown.type("x = 1\n    ")
            engine.permits.release(9)
            await shown.items()
            page = (await host.client.get("/metrics")).text
            assert f"foregram_accepted_characters_total {counted}.0" in page


@pytest.mark.parametrize("end", [-1, 0, 2**70])
async def test_no_end_that_a_client_names_harms_the_next_request(tmp_path, end):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.open(SOURCE)
        (item,) = await shown.items()
        await shown.run("foregram.accept", item.command.arguments[0], end)
        shown.type("x = 1\n    ")
        assert await shown.items()


@pytest.mark.parametrize("params", [{}, {"item": 3}, {"item": {"command": "x"}}, [], None])
async def test_a_malformed_message_is_named_in_the_log_and_harms_nothing(tmp_path, params):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        shown.client.protocol.notify("textDocument/didShowCompletion", params)
        shown.open(SOURCE)
        assert await shown.items()
    assert any("ItemParams" in message for message in shown.messages)
    assert not any("AttributeError" in message for message in shown.messages)


async def test_a_document_that_is_looked_at_is_sent_before_it_is_asked_for(tmp_path):
    engine = HeldEngine(WORDS)
    async with served(tmp_path, engine) as (shown, host):
        shown.open(SOURCE)
        await shown.items()
        shown.type("x = 1\n    ")
        focus(shown)
        while not any(
            "    x = 1" in held.lines
            for client in host.service.buffers.clients.values()
            for held in client.buffers.values()
        ):
            await asyncio.sleep(0.005)
        assert await shown.items()
    assert len(engine.requests) == 2


async def test_a_document_that_is_looked_at_again_is_read_where_it_was_completed_last(tmp_path):
    """Another file, which stands before it in the prompt, may have changed meanwhile."""
    engine = HeldEngine(("",))
    async with served(tmp_path, engine, options={"speculate": True}) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        focus(shown)
        while len(engine.requests) < 2:
            await asyncio.sleep(0.005)
    first, again = engine.requests
    assert (again.prefix, again.suffix) == (first.prefix, first.suffix)


async def test_a_prompt_is_read_where_the_cursor_rests_and_completed_once_the_document_is_edited(
    tmp_path,
):
    engine = HeldEngine(("",))
    async with served(tmp_path, engine, options={"speculate": True}) as (shown, _):
        shown.open("x = 1\ny = 2\n|")

        def rest(line: int, character: int) -> None:
            where = {"line": line, "character": character}
            cursor = {"textDocument": {"uri": shown.uri}, "position": where}
            shown.client.protocol.notify("foregram/cursor", cursor)

        while not engine.requests:  # at first there is no host yet
            rest(0, 5)  # for a person who only reads, nothing is written
            await asyncio.sleep(0.05)
        engine.requests, (seen, *_) = [], engine.requests
        assert (seen.prefix, seen.stop.max_tokens) == ("x = 1", 0)
        shown.type("z")
        await shown.items()
        rest(2, 1)  # as the editor tells behind a key: this is read
        rest(70, 0)
        rest(1, 5)
        while len(engine.requests) < 2:
            await asyncio.sleep(0.005)
    assert [one.prefix for one in engine.requests] == ["x = 1\ny = 2\nz", "x = 1\ny = 2"]
    assert all(one.stop.max_tokens for one in engine.requests)


def ours(**more):
    """What one of our plugins sends to start with."""
    return {"editorInfo": {"name": "test", "version": "1"}, "asksAgain": True, **more}


@pytest.mark.parametrize("asks_again", [True, False])
async def test_a_plugin_that_asks_again_hears_that_a_suggestion_has_become_longer(
    tmp_path, asks_again
):
    engine = HeldEngine((Chunk("return items", is_sure=True), "[0]"), is_held=True)
    options = ours(asksAgain=asks_again)
    async with served(tmp_path, engine, options=options) as (shown, _):
        told = list[tuple[str, int]]()
        shown.on_more_text = lambda *news: told.append(news)
        shown.open(SOURCE)
        engine.permits.release()
        (item,) = await shown.items()
        engine.permits.release()
        while not engine.ended:
            await asyncio.sleep(0.005)
        (longer,) = await shown.items()
        while longer.insert_text == item.insert_text:
            (longer,) = await shown.items()
        assert (item.insert_text, longer.insert_text) == ("return items", "return items[0]")
        assert [one.command.arguments[1] for one in (item, longer)] == [12, 15]
        assert longer.command.arguments[0] == item.command.arguments[0]
        await shown.run("foregram.why")
    assert told == ([(shown.uri, shown.version)] if asks_again else [])


async def test_the_state_is_never_that_of_another_document(tmp_path):
    """Also while the new one is being answered, and before it is asked for."""
    engine = HeldEngine(WORDS, is_held=True)
    uri = "file:///shop/.env"
    async with served(tmp_path, engine, uri=uri, options=ours()) as (shown, _):
        shown.open("KEY=|", language="dotenv")
        focus(shown)
        await shown.run("foregram.why")
        secret = shown.states[-1]
        assert (secret["kind"], secret["reason"]) == ("Inactive", "secret_file")
        assert secret["remedy"] == {"action": "allowFile", "title": "Allow This File"}
        shown.uri = "file:///shop/a.py"
        shown.open(SOURCE)
        asked = shown.ask()
        await asyncio.to_thread(engine.began.acquire)
        await shown.run("foregram.why")
        assert shown.states[-1]["kind"] == "Normal"
        assert shown.states[-1]["busy"]
        engine.is_held = False
        engine.permits.release()
        assert (await asked).items
        shown.client.protocol.notify("textDocument/didFocus", {"textDocument": {"uri": uri}})
        await shown.run("foregram.why")
        assert shown.states[-1]["kind"] == "Inactive"
        shown.client.protocol.notify("textDocument/didFocus", {})
        await shown.run("foregram.why")
        assert shown.states[-1]["kind"] == "Normal"


async def test_what_holds_for_two_documents_is_told_of_each(tmp_path):
    secret = "file:///shop/.env"
    async with served(tmp_path, HeldEngine(WORDS), uri=secret, options=ours()) as (shown, _):
        for name in ("", ".local"):
            shown.uri = f"{secret}{name}"
            shown.open("KEY=|", language="dotenv")
            before = len(shown.states)
            focus(shown)
            await shown.run("foregram.why")
            told = [one.get("reason") for one in shown.states[before:]]
            assert "secret_file" in told


async def test_why_tells_what_the_last_prompt_of_this_document_was_made_of(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, _):
        edited = shown.uri
        shown.uri = "file:///shop/models.py"
        shown.open(SOURCE)
        shown.uri = edited
        shown.open(SOURCE)
        await shown.items()
        told = await shown.run("foregram.why", {"textDocument": {"uri": edited}})
        other = await shown.run("foregram.why", {"textDocument": {"uri": "file:///shop/models.py"}})
        cost = await shown.run("foregram.cost")
    assert told["prompt"] == (
        "100 tokens, 90 of them cached; 10 from 1 of 1 other open files (models.py)"
    )
    assert other["prompt"] is None
    assert (cost["neighbours"], cost["neighbourTokens"]) == (["models.py"], 10)


async def test_what_the_workspaces_other_files_define_is_shown_to_the_model(tmp_path):
    """Also what a file says that changed meanwhile; secret files never appear."""
    (tmp_path / "foregram.toml").write_text('repository = ["on"]\n')
    work = tmp_path / "work"
    work.mkdir()
    (work / "store.py").write_text("def load_order(number: int): ...\n")
    (work / "secrets.json").write_text('{"load_order": 1}')
    engine = HeldEngine(WORDS)
    where = {"uri": (work / "cart.py").as_uri(), "root": work.as_uri()}
    async with served(tmp_path, engine, **where) as (shown, _):
        shown.open("from store import load_order, keep_order\nload_order(|")
        while not engine.requests or not engine.requests[-1].repository:
            await shown.items(invoked=True)
        (first,) = engine.requests[-1].repository
        (work / "store.py").write_text("def keep_order(number: int): ...\n")
        event = types.FileEvent((work / "store.py").as_uri(), types.FileChangeType.Changed)
        shown.client.workspace_did_change_watched_files(types.DidChangeWatchedFilesParams([event]))
        while not any("keep" in one.text for one in engine.requests[-1].repository):
            await shown.items(invoked=True)
        told = await shown.run("foregram.why", {"textDocument": {"uri": shown.uri}})
    assert (first.path, first.text) == ("store.py", "def load_order(number: int): ...\n")
    assert told["prompt"].endswith("7 from 1 file of the repository (store.py)")


async def test_a_workspace_of_many_files_is_indexed_with_progress_and_its_changes_are_watched(
    tmp_path,
):
    (tmp_path / "foregram.toml").write_text('repository = ["on"]\n')
    work = tmp_path / "work"
    work.mkdir()
    for number in range(200):
        (work / f"part{number}.py").write_text(f"def part{number}(): ...\n")
    able = types.ClientCapabilities(
        window=types.WindowClientCapabilities(work_done_progress=True),
        workspace=types.WorkspaceClientCapabilities(
            did_change_watched_files=types.DidChangeWatchedFilesClientCapabilities(
                dynamic_registration=True
            )
        ),
    )
    engine = HeldEngine(WORDS)
    where = {"uri": (work / "cart.py").as_uri(), "root": work.as_uri()}
    async with served(tmp_path, engine, capabilities=able, **where) as (shown, _):
        while "end" not in shown.progress:
            await shown.run("foregram.cost")
    assert shown.progress.count("begin") == 1
    assert shown.registered == [types.WORKSPACE_DID_CHANGE_WATCHED_FILES]


async def test_why_tells_of_this_document_and_of_what_holds_now(tmp_path):
    async with served(tmp_path, HeldEngine(("",)), uri="file:///shop/.env") as (shown, _):
        shown.open("KEY=|", language="dotenv")
        await shown.items()
        shown.uri = "file:///shop/deep/a.py"
        shown.open(SOURCE)
        await shown.items()
        about = {"textDocument": {"uri": shown.uri}, "position": {"line": 1, "character": 4}}
        told = await shown.run("foregram.why", about)
        (answer,) = told["answers"]
        assert told["now"] is None
        assert (answer["file"], answer["line"]) == ("a.py", 2)
        assert answer["reason"] == "model_said_nothing"
        assert 0 <= answer["age_s"] < 60
        assert answer["remedy"]["action"] == "trigger"
        other = await shown.run("foregram.why", {"textDocument": {"uri": "file:///shop/.env"}})
        assert other["now"]["reason"] == other["answers"][0]["reason"] == "secret_file"
        assert len(await shown.run("foregram.why")) == 2


async def test_while_the_model_loads_the_task_and_its_share_are_told_once(tmp_path):
    """A client that draws the state gets no second bar from the protocol."""
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    able = types.ClientCapabilities(window=types.WindowClientCapabilities(work_done_progress=True))

    def load(progress):
        progress.begin("converting", 100)
        progress.advance(42)
        may_load.wait(20)
        return engine

    options = {"options": ours(), "capabilities": able}
    async with served(tmp_path, engine, load=load, requested_model="1.5b", **options) as (shown, _):
        shown.open(SOURCE)
        asked = shown.ask()
        while not shown.states or shown.states[-1].get("percentage") != 42:
            await shown.run("foregram.cost")
        loading = shown.states[-1]
        told = await shown.run("foregram.why", {"textDocument": {"uri": shown.uri}})
        may_load.set()
        assert (await asked).items
    assert shown.states[0]["state"] == "starting"
    assert (loading["state"], loading["busy"]) == ("loading", True)
    assert loading["message"] == "loading Qwen2.5-Coder-1.5B: converting, 42 %"
    assert told["now"]["reason"] == "host_loading"
    assert told["now"]["sentence"] == "loading Qwen2.5-Coder-1.5B: converting, 42 %"
    assert shown.states[-1]["model"] == "fake-1b"
    assert shown.progress == []
    assert shown.num_asked_again == 0  # the request that waited was answered itself


async def test_what_was_withdrawn_while_the_model_loaded_is_asked_again_once(tmp_path):
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    load = engine_after(may_load, engine)
    async with served(tmp_path, engine, load=load, options=ours()) as (shown, _):
        shown.open(SOURCE)
        asked = shown.ask(request_id="first")
        await shown.run("foregram.why")
        shown.cancel("first")
        with pytest.raises(Exception, match="cancel"):
            await asked
        may_load.set()
        while not shown.num_asked_again:
            await shown.run("foregram.cost")
        assert await shown.items()
    assert shown.num_asked_again == 1


async def test_other_clients_are_not_told_to_ask_again_and_may_wait(tmp_path):
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    options = {"editorInfo": {"name": "another", "version": "1"}}
    load = engine_after(may_load, engine)
    async with served(tmp_path, engine, load=load, options=options) as (shown, _):
        shown.open(SOURCE)
        first, second = shown.ask(request_id="first"), shown.ask()
        await shown.run("foregram.why")
        shown.cancel("first")
        with pytest.raises(Exception, match="cancel"):
            await first
        may_load.set()
        assert (await second).items
    assert shown.num_asked_again == 0


async def test_a_model_that_cannot_be_loaded_is_not_asked_for_again_and_again(tmp_path):
    def load(_progress):
        raise ModelNotFoundError("no model is called 'qwen9b'")

    async with served(tmp_path, HeldEngine(), load=load, options=ours()) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items() == []
        failed = shown.states[-1]
        about = {"textDocument": {"uri": shown.uri}}
        while (await shown.run("foregram.why", about))["now"]["reason"] != "host_failed":
            await shown.items()
        told = await shown.run("foregram.why", about)
    assert (failed["kind"], failed["state"], failed["reason"]) == ("Error", "failed", "host_failed")
    assert failed["remedy"]["action"] == told["now"]["remedy"]["action"] == "chooseModel"
    assert "qwen9b" in told["now"]["sentence"]
    assert shown.num_asked_again == 0


@pytest.mark.parametrize("model", ["1.5b", "Qwen/Qwen2.5-Coder-1.5B"])
async def test_the_model_that_is_wanted_is_not_remarked_upon(tmp_path, model):
    options = ours(foregram={"model": model})
    asked = {"requested_model": "1.5b", "options": options}
    async with served(tmp_path, HeldEngine(WORDS), **asked) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
    assert shown.states[-1]["kind"] == "Normal"
    assert "configuredModel" not in shown.states[-1]


async def test_a_model_that_is_not_the_one_wanted_is_said_once(tmp_path):
    options = ours(foregram={"model": "7b"})
    asked = {"requested_model": "1.5b", "options": options}
    async with served(tmp_path, HeldEngine(WORDS), **asked) as (shown, _):
        shown.open(SOURCE)
        for _ in range(2):
            await shown.items()
            shown.type("x = 1\n    ")
    told = shown.states[-1]
    assert told["kind"] == "Warning"
    assert (told["model"], told["configuredModel"]) == ("fake-1b", "Qwen2.5-Coder-7B")
    assert told["remedy"]["action"] == "restart"
    assert sum("but the settings ask for" in message for message in shown.messages) == 1


async def test_a_model_that_is_not_the_one_wanted_need_not_be_loaded_to_its_end(tmp_path):
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    asked = {"requested_model": "32b", "options": ours(foregram={"model": "7b"})}
    load = engine_after(may_load, engine)
    async with served(tmp_path, engine, load=load, **asked) as (shown, _):
        while shown.states[-1:] == [] or shown.states[-1]["state"] != "loading":
            await shown.run("foregram.cost")
        loading = shown.states[-1]
        may_load.set()
    assert loading["message"] == "loading Qwen2.5-Coder-32B"
    assert loading["remedy"] == {"action": "restart", "title": "Restart with Qwen2.5-Coder-7B"}


async def test_a_repository_that_cannot_be_indexed_is_said_beside_the_model(tmp_path):
    (tmp_path / "foregram.toml").write_text('repository = ["on"]\n')
    (tmp_path / "repository").touch()
    where = {"uri": (tmp_path / "run/a.py").as_uri(), "root": (tmp_path / "run").as_uri()}
    async with served(tmp_path, HeldEngine(WORDS), options=ours(), **where) as (shown, _):
        shown.open(SOURCE)
        while not any("is not indexed" in message for message in shown.messages):
            await shown.items()
        told = await shown.run("foregram.why", {"textDocument": {"uri": shown.uri}})
    assert shown.states[-1]["kind"] == "Warning"
    assert shown.states[-1]["message"].startswith("fake-1b on ")
    assert "File exists" in shown.states[-1]["message"]
    assert "; the repository: " in told["prompt"]


async def test_a_name_that_can_be_no_model_is_said_beside_the_model_that_runs(tmp_path):
    options = ours(foregram={"model": "qwen9b"})
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        assert await shown.items()
        checked = await shown.run("foregram.checkModel", "qwen9b")
        offered = await shown.run("foregram.models")
    told = shown.states[-1]
    assert (told["kind"], told["remedy"]["action"]) == ("Warning", "chooseModel")
    assert "did you mean `7b`" in told["message"]
    assert "fake-1b" in told["message"]
    assert any("did you mean `7b`" in message for message in shown.messages)
    assert not checked["ok"]
    assert checked["near"] == ["7b", "14b"]
    assert {"7b", "14b"} <= {one["name"] for one in offered}


async def test_a_host_tells_how_many_others_use_it_before_it_is_ended(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        await shown.items()
        alone = await shown.run("foregram.hostUse")
        host.service.buffers.sync(ClientId("", "another"), "", [])
        shared = await shown.run("foregram.hostUse")
    assert alone == {"running": True, "model": "fake-1b", "numOtherClients": 0}
    assert shared["numOtherClients"] == 1


async def test_a_client_that_is_switched_off_uses_no_host(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS), options={"enable": False}) as (shown, host):
        shown.open(SOURCE)
        assert await shown.items() == []
        assert host.service.buffers.usage_of().clients == 0
        for enable in (True, False):
            configure(shown, enable=enable)
            assert bool(await shown.items()) is enable


async def test_copilots_clients_hear_of_the_state(tmp_path):
    options = {"editorInfo": {"name": "test", "version": "1"}}
    async with served(tmp_path, HeldEngine(WORDS), options=options) as (shown, _):
        shown.open(SOURCE)
        await shown.items()
        cost = await shown.run("foregram.cost")
    assert shown.statuses[-1] == {"kind": "Normal", "message": "fake-1b on cpu", "busy": False}
    assert any(status["busy"] for status in shown.statuses)
    assert "text" not in cost
    assert cost["reusedTokens"] == 90


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


async def held(host, number):
    while host.service.buffers.usage_of().buffers != number:
        await asyncio.sleep(0.005)


async def test_a_file_that_is_ignored_while_it_is_open_leaves_the_host(tmp_path):
    (tmp_path / "shop").mkdir()
    folder = f"file://{tmp_path}/shop"
    options = {"uri": f"{folder}/draft.py", "root": folder}
    async with served(tmp_path, HeldEngine(WORDS), **options) as (shown, host):
        shown.open(SOURCE)
        assert await shown.items()
        await held(host, 1)
        (tmp_path / "shop/.foregramignore").write_text("draft.py\n")
        assert await shown.items() == []
        await held(host, 0)


async def test_settings_that_hide_a_file_take_it_from_the_host(tmp_path):
    options = {"uri": "file:///shop/prod.env", "options": {"allowSecretFiles": ["prod.env"]}}
    async with served(tmp_path, HeldEngine(WORDS), **options) as (shown, host):
        shown.open(SOURCE)
        assert await shown.items()
        await held(host, 1)
        configure(shown, allowSecretFiles=[])
        await held(host, 0)


async def test_a_file_that_is_hidden_while_its_request_waits_is_not_sent(tmp_path):
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    options = {"uri": "file:///shop/prod.env", "options": {"allowSecretFiles": ["prod.env"]}}
    load = engine_after(may_load, engine)
    async with served(tmp_path, engine, load=load, **options) as (shown, host):
        shown.open(SOURCE)
        asked = shown.ask()
        await shown.run("foregram.why")  # so that it waits by now
        configure(shown, allowSecretFiles=[])
        await shown.run("foregram.why")
        may_load.set()
        assert not (await asked).items
        assert await shown.reasons() == ["secret_file"]
        assert host.service.buffers.usage_of().buffers == 0
    assert engine.requests == []


async def test_a_secret_that_is_pasted_takes_the_text_from_the_host_and_its_line_is_told(tmp_path):
    async with served(tmp_path, HeldEngine(WORDS)) as (shown, host):
        shown.open(SOURCE)
        assert await shown.items()
        await held(host, 1)
        shown.type("k = 'AKIA" + "QRSTUVWX2345ABCD'")
        await held(host, 0)  # at the pause, though nobody asks
        assert await shown.items() == []
        (answer,) = await shown.run("foregram.why")
    assert answer["reason"] == "secret_file"
    assert "line 2 looks like an AWS access key" in answer["sentence"]


async def test_a_key_sends_the_changed_line_whatever_else_is_open(tmp_path, monkeypatch):
    """Enter sent all documents again, and so did a key while a request waited."""
    sent: list[int] = []

    def counted(content, kind):
        sent.append(len(content))
        return decoded(content, kind)

    async def begun(number):
        async with asyncio.timeout(10):
            while len(asked()) < number:
                await asyncio.sleep(0.005)

    def asked():
        return [one for one in engine.requests if one.stop.max_tokens]

    monkeypatch.setattr(app, "decoded", counted)
    engine = HeldEngine(WORDS, is_held=True)
    ahead = {"foregram": {"speculate": True}}
    async with served(tmp_path, engine, options=ahead) as (shown, _):
        first_uri = shown.uri
        for number in range(10):
            shown.uri = f"file:///shop/other{number}.py"
            shown.open(f"value_{number} = 1\n" * 4_000)
        shown.uri = first_uri
        shown.open("x = 1\n" * 5_000 + "value|\n" + "y = 2\n" * 5_000)
        withdrawn = [shown.ask(request_id="first")]
        await begun(1)
        assert sum(sent) > 500_000  # that much there is
        for number, key in enumerate(["", "", "\n", "", "\n", ""]):
            sent.clear()
            shown.cancel("first" if not number else f"key {number - 1}")
            shown.erase()
            shown.type(key)
            withdrawn.append(shown.ask(request_id=f"key {number}"))
            await begun(number + 2)
            assert sum(sent) < 10_000, (key, sent)
        shown.cancel(f"key {number}")
        engine.is_held = False
        engine.permits.release(99)
        await asyncio.gather(*withdrawn, return_exceptions=True)
        shown.erase()
        assert await shown.items()
    prefixes = [one.prefix.rpartition("x = 1\n")[2] for one in asked()]
    expected = ["value", "valu", "val", "va\n", "va", "v\n", "v", ""]
    assert list(dict.fromkeys(prefixes))[:8] == expected
