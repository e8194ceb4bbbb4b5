"""Requests are answered from memory, from what runs, or from the host; or with a reason."""

import asyncio
import threading
import time

import pytest
from lsprotocol import types

from engine.errors import DeviceLostError
from engine.host.protocol import Position
from engine.host.quotas import Quotas
from engine.request import Chunk, FinishReason
from lsp_server.reasons import Reason
from tests.support.connected import SOURCE, SURE, TEXT, URI, WORDS, connected, editing, texts_of
from tests.support.held_engine import HeldEngine
from tests.support.running_host import engine_after


async def test_the_hosts_text_becomes_an_item_at_the_cursor(tmp_path):
    async with editing(tmp_path, HeldEngine(WORDS)) as editor:
        (item,) = await editor.ask()
    assert item.insert_text == TEXT
    assert item.range == types.Range(types.Position(1, 4), types.Position(1, 4))
    assert item.command is not None
    assert editor.engine.requests[0].prefix == "def total(items):\n    "
    assert editor.engine.requests[0].path == "a.py"


async def test_typing_along_is_answered_from_memory(tmp_path):
    async with editing(tmp_path, HeldEngine(WORDS)) as editor:
        await editor.ask()
        for number in range(1, 8):
            editor.type(TEXT[number - 1])
            assert await editor.texts() == [TEXT[number:]]
    assert len(editor.engine.requests) == 1


async def test_who_types_along_while_it_runs_joins_it(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine) as editor:
        first = editor.ask()
        await editor.begun()
        editor.type("re")
        second = editor.ask()
        first.cancel()  # as editors do for a request that is overtaken
        engine.is_held = False
        assert texts_of(await second) == [TEXT[2:]]
    assert len(engine.requests) == 1


async def test_who_types_something_else_gets_another(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine) as editor:
        first = editor.ask()
        await editor.begun()
        engine.permits.release()  # "return " is out
        editor.type("x;")
        second = editor.ask()
        await editor.begun()
        engine.is_held = False
        assert texts_of(await second) == [TEXT]
        assert isinstance(await first, Reason)
    assert engine.ended == [FinishReason.CANCELLED, FinishReason.END_TOKEN]
    assert engine.requests[1].prefix.endswith("    x;")


async def test_a_cancelled_request_ends_the_work_once_nobody_joins(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine) as editor:
        asked = editor.ask()
        await editor.begun()
        asked.cancel()
        while not engine.ended:
            await asyncio.sleep(0.005)
    assert engine.ended == [FinishReason.CANCELLED]


async def test_the_sure_beginning_is_shown_and_the_client_hears_of_the_rest(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        first = editor.ask()
        engine.permits.release()
        (item,) = await first
        assert item.insert_text == "return items"
        assert editor.more == []
        engine.permits.release()
        while not editor.more:
            await asyncio.sleep(0.005)
        assert editor.more == [(URI, editor.version)]
        (longer,) = await editor.ask()
        assert longer.insert_text == "return items[0]"
        assert longer.command.arguments
        assert item.command.arguments
        assert longer.command.arguments[0] == item.command.arguments[0]
    assert len(engine.requests) == 1


async def test_who_types_along_gets_the_rest_without_being_told(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        engine.permits.release()
        await editor.ask()
        editor.type("return ")
        engine.permits.release()
        while not engine.ended:
            await asyncio.sleep(0.005)
        await asyncio.sleep(0.05)
        assert editor.more == []
        assert await editor.texts() == ["items[0]"]
    assert len(engine.requests) == 1


async def test_text_that_was_typed_along_is_back_once_a_typo_is_deleted(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        engine.permits.release()
        await editor.ask()
        editor.type("ret")
        editor.type("x")
        overtaken = editor.ask()
        editor.erase()
        assert await editor.texts() == ["urn items"]
        overtaken.cancel()
    assert len(engine.requests) <= 2


async def test_an_accepted_beginning_is_continued_by_what_runs(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        engine.permits.release()
        assert await editor.texts() == ["return items"]
        editor.type("return items")
        asked = editor.ask()
        await asyncio.sleep(0.05)
        assert not asked.done()
        engine.permits.release()
        assert texts_of(await asked) == ["[0]"]
    assert len(engine.requests) == 1


async def test_an_edit_that_no_request_follows_ends_what_goes_on(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        engine.permits.release()
        await editor.ask()
        editor.type("x")
        editor.completer.changed(URI)
        while not engine.ended:
            await asyncio.sleep(0.005)
    assert engine.ended == [FinishReason.CANCELLED]


async def test_each_key_gives_its_request_the_whole_grace(tmp_path, monkeypatch):
    monkeypatch.setattr("lsp_server.completion.in_flight._GRACE_S", 0.6)
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine) as editor:
        engine.permits.release()
        await editor.ask()
        for key in "re":
            editor.type(key)
            editor.completer.changed(URI)
            await asyncio.sleep(0.4)
            assert await editor.texts()
        engine.permits.release()
        while not engine.ended:
            await asyncio.sleep(0.005)
    assert engine.ended == [FinishReason.END_TOKEN]


async def test_an_edit_of_another_document_ends_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("lsp_server.completion.in_flight._GRACE_S", 0.05)
    engine = HeldEngine(("return items",))
    async with editing(tmp_path, engine, speculate=True) as editor:
        await editor.ask()
        engine.words, engine.is_held = (Chunk("[index]", is_sure=True), "[0]"), True
        await editor.begun()
        await editor.begun()
        editor.type("return items")
        asked = editor.ask()  # joins what was begun ahead
        engine.permits.release()
        assert texts_of(await asked) == ["[index]"]
        await asyncio.sleep(0.2)
        editor.type("[")
        editor.completer.changed("file:///shop/b.py")
        await asyncio.sleep(0.2)
        assert len(engine.ended) == 1
        editor.completer.changed(URI)
        while len(engine.ended) < 2:
            await asyncio.sleep(0.005)
    assert engine.ended[1] is FinishReason.CANCELLED


async def test_an_explicit_request_gets_several_the_greedy_one_first(tmp_path):
    engine = HeldEngine(WORDS)
    complete = engine.completing

    def varied(request, **callbacks):
        engine.words = (f"x{request.sampling.seed}",)
        return complete(request, **callbacks)

    engine.completing = varied  # type: ignore[method-assign] # other words for other seeds
    async with connected(tmp_path, engine, num_candidates=3) as editor:
        editor.open("value = |\n")
        assert sorted(await editor.texts(invoked=True)) == ["x0", "x1", "x2"]
        assert (await editor.texts())[0] == "x0"
    assert [one.sampling.temperature for one in engine.requests] == [0.0, 0.8, 0.8, 0.0]


async def test_the_menus_item_is_continued_over_its_range(tmp_path):
    async with connected(tmp_path, HeldEngine(("(item)",))) as editor:
        editor.open("items.ap|\n")
        menu = types.SelectedCompletionInfo(
            types.Range(types.Position(0, 6), types.Position(0, 8)), "append"
        )
        (item,) = await editor.ask(selected=menu)
    assert item.insert_text == "append(item)"
    assert item.range == menu.range
    assert editor.engine.requests[0].prefix == "items.append"


async def test_edits_reach_the_host_and_so_do_other_documents(tmp_path):
    engine = HeldEngine(WORDS)
    async with connected(tmp_path, engine) as editor:
        editor.open("PRICE = 3\n", uri="file:///shop/prices.py")
        editor.open("KEY = 1\n", uri="file:///shop/.env")
        editor.open("x = '🦉\u2028'\n|\n")
        await editor.ask()
        editor.type("y")
        editor.type("\nz")
        await editor.ask()
    assert engine.requests[1].prefix == "x = '🦉\u2028'\ny\nz"
    assert [buffer.path for buffer in engine.requests[1].open_buffers] == ["prices.py"]


async def test_an_item_uses_up_what_it_closes_and_ends_no_statement_that_goes_on(tmp_path):
    source = "const top = all.sort((a, b) => |).slice(0, limit);\n"
    engine = HeldEngine(("b[1] ", "- a[1]", ");"))
    async with connected(tmp_path, engine) as editor:
        editor.open(source, language="typescript")
        (item,) = await editor.ask()
    end = source.index("|") + len(str(item.insert_text).removeprefix("b[1] - a[1]"))
    assert str(item.insert_text) in ("b[1] - a[1]", "b[1] - a[1])")
    assert item.range is not None
    assert item.range.end == types.Position(0, end)


async def test_who_has_used_up_its_quota_is_told_so(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        editor.host.service.limits._nameless = Quotas(buffers=1)
        editor.open("PRICE = 3\n", uri="file:///shop/prices.py")
        editor.open(SOURCE)
        assert await editor.ask() is Reason.QUOTA
        assert editor.link.quota.startswith("you would have 2 open files here, and may have 1")


async def test_a_short_wait_that_the_host_asks_for_is_waited(tmp_path):
    async with editing(tmp_path, HeldEngine(WORDS)) as editor:
        await editor.ask()
        requests = editor.host.service.limits._requests[""]
        requests.quotas, requests.left = Quotas(requests=1), 0.0
        editor.type("x;")
        assert await editor.texts() == [TEXT]


async def test_documents_of_a_request_that_never_arrived_are_sent_again(tmp_path):
    engine = HeldEngine(WORDS)
    async with connected(tmp_path, engine) as editor:
        await editor.link.search.ready()
        editor.open("PRICE = 3\n" * 20_000, uri="file:///shop/prices.py")
        editor.open(SOURCE)
        asked = editor.ask()
        await asyncio.sleep(0)
        asked.cancel()
        editor.completer.stop_all()
        await editor.ask()
    assert [buffer.path for buffer in engine.requests[-1].open_buffers] == ["prices.py"]


async def test_all_who_joined_hear_why_the_host_failed(tmp_path):
    def breaking(_):
        engine.permits.acquire()
        raise RuntimeError("broken")

    engine = HeldEngine(WORDS, before_word=breaking)
    async with editing(tmp_path, engine) as editor:
        asked = [editor.ask(), editor.ask()]
        await editor.begun()
        engine.permits.release()
        assert [await one for one in asked] == [Reason.HOST_FAILED] * 2


async def test_a_host_that_ends_without_its_gpu_is_no_mere_failure(tmp_path):
    engine = HeldEngine(WORDS)

    def losing(*_, **__):
        raise DeviceLostError("the device cuda:0 is lost")

    async def reason():
        async with connected(tmp_path, engine) as editor:
            editor.open(SOURCE)
            reasons.append(await editor.ask())

    engine.completing = losing  # type: ignore[method-assign] # a staged fault
    reasons: list[object] = []
    with pytest.raises(DeviceLostError):  # how the host ends
        await reason()
    assert reasons == [Reason.DEVICE_LOST]


async def test_a_reopened_document_is_another_text_at_the_same_version(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine) as editor:
        await editor.ask()
        editor.documents.close(URI)
        editor.open("other = |")
        await editor.ask()
    assert engine.requests[1].prefix == "other = "


UNSURE, END = FinishReason.UNSURE, FinishReason.END_TOKEN
WRITTEN = [
    pytest.param((), END, Reason.MODEL_SAID_NOTHING, id="nothing"),
    pytest.param((")",), END, Reason.BRACKET_ONLY, id="a bracket"),
    pytest.param(("try:", "\n"), END, Reason.BREAKS_CODE, id="half a statement"),
    pytest.param((), FinishReason.SUFFIX, Reason.ONLY_REPEATS_NEXT_LINES, id="a repeat"),
    pytest.param((), UNSURE, Reason.UNSURE, id="nothing sure"),
    pytest.param(("=",), UNSURE, Reason.UNSURE, id="a few sure characters"),
    pytest.param(("()",), UNSURE, Reason.BRACKET_ONLY, id="sure brackets"),
    pytest.param(("if ", "err"), UNSURE, Reason.UNSURE, id="a beginning that cannot stand"),
    pytest.param(("return ", "sum"), UNSURE, "return sum", id="a sure beginning"),
]


@pytest.mark.parametrize(("words", "ending", "outcome"), WRITTEN)
async def test_what_is_of_no_use_is_not_shown_and_the_answer_says_why(
    tmp_path, words, ending, outcome
):
    async with connected(tmp_path, HeldEngine(words, ending=ending)) as editor:
        editor.open("def total(items):\n    |\n\n\nx = 1\n")
        answer = await editor.ask()
    assert (answer if isinstance(answer, Reason) else texts_of(answer)[0]) == outcome


ENV, RUN, CARGO = "file:///shop/.env", "file:///shop/run", "file:///shop/Cargo.toml"
OFF = [
    ("x|", ENV, "python", {}, Reason.SECRET_FILE),
    ("-----BEGIN RSA PRIVATE KEY-----\n|", URI, "python", {}, Reason.SECRET_FILE),
    ("x|", URI, "python", {"enable": False}, Reason.DISABLED),
    ("x|", URI, "python", {"languages": {"python": False}}, Reason.DISABLED_LANGUAGE),
    ("x|", URI, "python", {"disabled_globs": ("*.py",)}, Reason.DISABLED_FILE),
    ("x\0|", URI, "python", {}, Reason.BINARY),
    ("x" * 20_000_000 + "y" * 2_000_000 + "|", URI, "python", {}, Reason.TOO_LARGE),
    ("a = |", CARGO, "plaintext", {"languages": {"toml": False}}, Reason.DISABLED_LANGUAGE),
    ("a = |", CARGO, "plaintext", {"languages": {"plaintext": False}}, Reason.DISABLED_LANGUAGE),
    *(
        ("run |", RUN, "zsh", {"languages": {name: False}}, Reason.DISABLED_LANGUAGE)
        for name in ("sh", "bash", "shellscript", "Shell Script")
    ),
]


@pytest.mark.parametrize(("text", "uri", "language", "settings", "reason"), OFF)
async def test_what_is_not_completed_says_why_and_asks_no_host(
    tmp_path, text, uri, language, settings, reason
):
    engine = HeldEngine(WORDS)
    async with connected(tmp_path, engine, **settings) as editor:
        editor.open(text, uri, language)
        assert await editor.ask(uri) is reason
    assert engine.requests == []


@pytest.mark.parametrize(
    ("text", "uri", "language", "settings", "words"),
    [
        ("version = |\n", CARGO, "plaintext", {}, ("1",)),  # by its name
        ("Once upon |", URI, "markdown", {"languages": {"markdown": True}}, ("a time",)),
        *(
            ('case "$1" in\n    |\nesac\n', RUN, name, {}, ("start)\n", "        run\n        ;;"))
            for name in ("sh", "bash", "zsh", "shellscript")
        ),
    ],
)
async def test_an_editors_name_for_a_language_or_none_keeps_no_text_away(
    tmp_path, text, uri, language, settings, words
):
    async with connected(tmp_path, HeldEngine(words), **settings) as editor:
        editor.open(text, uri, language)
        assert await editor.texts(uri=uri, invoked=uri == RUN) == ["".join(words)]


async def test_unknown_documents_and_positions_say_so(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        assert await editor.ask() is Reason.UNKNOWN_DOCUMENT
        editor.open(SOURCE)
        below = types.Position(17, 0)
        assert await editor.ask(position=below) is Reason.BAD_POSITION


SILENT = [
    pytest.param("|", "python", {}, Reason.EMPTY_FILE, id="empty"),
    pytest.param(" \n\t\n  |\n", "python", {}, Reason.EMPTY_FILE, id="white space"),
    pytest.param("Once upon|", "markdown", {}, Reason.PROSE, id="markdown"),
    pytest.param("Once upon|", "plaintext", {}, Reason.PROSE, id="plain text"),
    pytest.param("Once upon|", "text", {}, Reason.PROSE, id="Emacs's text"),
    pytest.param("Once upon|", "gitcommit", {}, Reason.PROSE, id="a commit's message"),
    pytest.param("Once upon|", "", {}, Reason.PROSE, id="no identifier"),
    pytest.param("|", "markdown", {"languages": {"markdown": True}}, Reason.EMPTY_FILE, id="both"),
]


@pytest.mark.parametrize(("text", "language", "settings", "reason"), SILENT)
async def test_by_itself_nothing_is_written_there_and_who_asks_gets_it(
    tmp_path, text, language, settings, reason
):
    engine = HeldEngine(("some words",))
    settings = {"num_candidates": 1, "speculate": True, **settings}
    async with connected(tmp_path, engine, **settings) as editor:
        uri = "file:///shop/notes"
        editor.open(text, uri, language)
        assert await editor.ask(uri) is reason
        editor.completer.ahead.prefill(uri, Position(0, 0))
        await editor.link.search.ready()
        assert engine.requests == []
        assert await editor.texts(uri=uri, invoked=True)
        assert len(engine.requests) == 1  # nothing is written ahead
        editor.type("some ", uri)
        if language != "python":
            assert await editor.texts(uri=uri) == ["words"]  # what is on the screen stays there


@pytest.mark.parametrize(
    ("text", "language", "shown"),
    [
        ("# Shop\n\nInstall it: |", "markdown", ["# Made by nobody."]),
        ("|", "python", ["# Made by nobody. It began in 1998."]),
    ],
)
async def test_who_asks_where_little_tells_what_comes_gets_what_is_sure(
    tmp_path, text, language, shown
):
    """It wrote three paragraphs of fiction into a README."""
    words = ("# Made by nobody. ", "It began in 1998.", "\n\nMore of it.")
    engine = HeldEngine(words)
    async with connected(tmp_path, engine, min_confidence=0.4) as editor:
        editor.open(text, "file:///shop/README", language)
        assert await editor.texts(uri="file:///shop/README", invoked=True) == shown
    (request,) = engine.requests
    assert request.stop.single_line
    assert request.stop.min_confidence == 0.4


async def test_a_long_file_is_completed_once_it_was_searched(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        editor.open("x = 1\n" * 100_000 + "x = |\n")
        assert await editor.texts() == [TEXT]


async def test_a_request_that_waits_ends_when_its_text_is_another_one(tmp_path):
    """Nobody waits for it any more, whatever becomes of the host."""
    may_load, engine = threading.Event(), HeldEngine(WORDS)
    load = engine_after(may_load, engine)
    async with editing(tmp_path, engine, load=load) as editor:
        first = editor.ask()
        await asyncio.sleep(0)
        editor.type("re")
        second = editor.ask()
        assert await asyncio.wait_for(first, 10) is Reason.SUPERSEDED
        assert not second.done()
        may_load.set()
        assert not isinstance(await asyncio.wait_for(second, 10), Reason)


async def test_a_line_that_nobody_has_written_is_let_alone_and_its_neighbours_are_not(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        editor.open("var x = 1;\n" + "f(a,b);" * 60_000 + "|\n", language="javascript")
        began = time.thread_time()
        editor.type(";")
        assert await editor.ask() is Reason.LINE_TOO_LONG
        editor.completer.ahead.prefill(URI, Position(1, 3))
        assert time.thread_time() - began < 0.5
        assert editor.engine.requests == []
        assert await editor.texts(position=types.Position(0, 10))


async def test_a_file_with_a_line_that_takes_long_to_judge_is_left_alone(tmp_path):
    async with connected(tmp_path, HeldEngine(WORDS)) as editor:
        editor.open("var x = 1;\n" + "f(a,b);" * 550_000 + "\n|", language="javascript")
        began = time.thread_time()
        editor.type(";")
        assert await editor.ask() is Reason.LINE_TOO_LONG
        assert time.thread_time() - began < 0.5
        assert editor.engine.requests == []
        editor.open(SOURCE, uri="file:///shop/b.py")
        assert await editor.texts(uri="file:///shop/b.py")
        assert editor.engine.requests[0].open_buffers == ()


async def test_what_was_asked_for_does_not_come_again_by_itself_but_to_who_types_along(tmp_path):
    engine = HeldEngine(WORDS)
    async with editing(tmp_path, engine, num_candidates=1, speculate=False) as editor:
        assert await editor.texts(invoked=True) == [TEXT]
        engine.words = ()
        assert await editor.ask() is Reason.MODEL_SAID_NOTHING
        assert [one.stop.min_confidence for one in engine.requests] == [0.0, 0.5]
        editor.type(TEXT[0])
        assert await editor.texts() == [TEXT[1:]]


REPEATS = [((), FinishReason.SUFFIX), (("x = 1",), END)]


@pytest.mark.parametrize(("words", "ending"), REPEATS)
async def test_who_asks_gets_another_text_where_the_first_only_repeats_what_follows(
    tmp_path, words, ending
):
    engine = HeldEngine(words, ending=ending, others=WORDS)
    async with connected(tmp_path, engine, num_candidates=1, speculate=False) as editor:
        editor.open("|\nx = 1\n")
        assert await editor.ask() is Reason.ONLY_REPEATS_NEXT_LINES
        assert await editor.texts(invoked=True) == [TEXT]
    assert [one.sampling.avoids_suffix for one in engine.requests] == [False, False, True]


async def test_who_asks_gets_another_text_where_the_model_ended_at_once(tmp_path):
    engine = HeldEngine((), others=WORDS)
    async with editing(tmp_path, engine, num_candidates=1, speculate=False) as editor:
        assert await editor.ask() is Reason.MODEL_SAID_NOTHING
        assert await editor.texts(invoked=True) == [TEXT]
        engine.others, engine.ending = None, FinishReason.SUFFIX
        editor.type("x = 1\n    ")
        assert await editor.ask(invoked=True) is Reason.ONLY_REPEATS_NEXT_LINES
    avoids = [one.sampling.avoids_suffix for one in engine.requests]
    assert avoids == [False, False, True, False, True]


async def test_another_text_that_repeats_as_well_is_the_last(tmp_path):
    engine = HeldEngine((), ending=FinishReason.SUFFIX)
    async with editing(tmp_path, engine, num_candidates=1) as editor:
        assert await editor.ask(invoked=True) is Reason.ONLY_REPEATS_NEXT_LINES
    assert len(engine.requests) == 2


async def test_a_request_that_waits_for_what_another_asked_for_gets_its_own(tmp_path):
    engine = HeldEngine(WORDS, is_held=True)
    async with editing(tmp_path, engine, num_candidates=1, speculate=False) as editor:
        asked_for = editor.ask(invoked=True)
        await editor.begun()
        by_itself = editor.ask()
        engine.permits.release(2 * len(WORDS))
        assert texts_of(await asked_for)
        assert texts_of(await by_itself)
        assert [one.stop.min_confidence for one in engine.requests] == [0.0, 0.5]


async def test_other_settings_show_nothing_that_the_former_ones_made(tmp_path):
    engine = HeldEngine(SURE, is_held=True)
    async with editing(tmp_path, engine, speculate=False) as editor:
        engine.permits.release()
        assert await editor.texts() == ["return items"]
        editor.completer.stop_all()
        engine.words, engine.is_held = ("pass",), False
        assert await editor.texts() == ["pass"]
    assert engine.ended == [FinishReason.CANCELLED, FinishReason.END_TOKEN]


async def test_a_stump_is_no_alternative_to_what_it_begins(tmp_path):
    engine = HeldEngine(("return ",), ending=FinishReason.UNSURE)
    async with editing(tmp_path, engine, num_candidates=1) as editor:
        assert await editor.texts() == ["return"]
        engine.words, engine.ending = WORDS, FinishReason.END_TOKEN
        assert await editor.texts(invoked=True) == [TEXT]


async def test_an_engine_that_breaks_says_so_and_the_next_request_is_served(tmp_path):
    errors = iter([RuntimeError("broken")])

    def breaking(_):
        for error in errors:
            raise error

    async with editing(tmp_path, HeldEngine(WORDS, before_word=breaking)) as editor:
        assert await editor.ask() is Reason.HOST_FAILED
        assert editor.link.failure.startswith("the completion failed; the log names ")
        assert await editor.texts() == [TEXT]
        assert not editor.link.failure
