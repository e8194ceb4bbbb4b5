"""Next edits as an editor meets them, with a host that a test holds in its hands."""

import asyncio
import logging
from contextlib import asynccontextmanager

import pytest
from lsprotocol import types
from msgspec.structs import replace
from pygls.exceptions import JsonRpcException

from engine.errors import CacheError, DeviceLostError, NoEditModelError
from engine.host.quotas import Quotas
from engine.request import Diagnostic, EditOutcome, PastEdit
from lsp_server.edits.next_edits import SURE
from lsp_server.workspace_files import WorkspaceFiles
from tests.support.edit_engine import METHOD, EditEngine, next_edit
from tests.support.polling import eventually
from tests.support.served_editor import served

COMMAND = "github.copilot.did{}NextEditSuggestionItem"
SOURCE = "def area(width, height):\n    return width * height\n\n\nprint(area(1, 2))\n"
CHANGED = ("    return breadth * height",)
RENAME = EditOutcome(1, 2, CHANGED, probability=0.9)
SECRET = "id = 'AKIA" + "QRSTUVWX2345ABCD'"  # in two parts, lest a search for secrets finds it
NOTHING = EditOutcome(refusal="no_change")


class RefusingEngine(EditEngine):
    """Refuses at once, as a host's engine does."""

    def check_can_edit(self, _):
        self.num_asked += 1
        raise NoEditModelError("fake-1b proposes no edits")


async def opened(shown, text=SOURCE):
    """Open a document, and return once the server knows from which text its edits start."""
    shown.open_around("", text, "markdown" if shown.uri.endswith(".md") else "python")
    await shown.run("foregram.why")


def rename(shown, text=SOURCE):
    """Rename the first name in a document's text, which is in its first line."""
    place = text.index("width")
    shown.replace(types.Position(0, place), types.Position(0, place + 5), "breadth")


@asynccontextmanager
async def renamed(tmp_path, engine, text=SOURCE, **options):
    """Serve an engine to an editor where a person has just renamed a name."""
    async with served(tmp_path, engine, **options) as (shown, _):
        await opened(shown, text)
        rename(shown, text)
        yield shown


async def edits(shown, **changes):
    answer = await next_edit(shown, **changes)
    found = answer["edits"] if isinstance(answer, dict) else answer.edits
    return list(found)


async def reason_of(shown, **changes):
    """Return the reason for an empty answer."""
    assert await edits(shown, **changes) == []
    return (await shown.reasons())[-1]


def told(shown, what, edit):
    return shown.run(COMMAND.format(what), *edit.command.arguments)


def tell_shown(shown, edit):
    command = {"command": edit.command.command, "arguments": list(edit.command.arguments)}
    shown.client.protocol.notify("textDocument/didShowInlineEdit", {"item": {"command": command}})


async def test_the_next_edit_is_proposed_for_the_version_that_was_asked_about(tmp_path):
    engine = EditEngine(RENAME)
    async with renamed(tmp_path, engine) as shown:
        [edit] = await edits(shown)
    assert edit.text == CHANGED[0]
    where = edit.range
    assert (where.start.line, where.start.character, where.end.line, where.end.character) == (
        *(1, 0, 1, 25),
    )
    assert (edit.textDocument.uri, edit.textDocument.version) == (shown.uri, shown.version)
    assert edit.command.command == COMMAND.format("Accept")
    [task] = engine.tasks
    [past] = task.history
    assert past == PastEdit(
        "inventory.py",
        0,
        ("def area(width, height):",),
        ("def area(breadth, height):",),
        (),
        ("    return width * height", "", ""),
    )
    assert not task.instruction


async def test_the_next_edit_is_the_likeliest_one_whatever_is_sampled(tmp_path):
    engine = EditEngine(RENAME)
    async with renamed(tmp_path, engine, options={"temperature": 0.8}) as shown:
        await edits(shown)
        await shown.items()
    assert [one.sampling.temperature for one in engine.requests] == [0.0, 0.8]


async def test_edits_of_other_files_are_shown_and_none_with_a_secret(tmp_path):
    engine = EditEngine(RENAME)
    async with served(tmp_path, engine) as (shown, _):
        here = shown.uri
        for name, changed in (("b.py", "y = 2"), ("c.py", SECRET), (".env", "y = 2")):
            shown.uri = f"file:///shop/{name}"
            await opened(shown, "x = 1\n")
            shown.replace(types.Position(0, 0), types.Position(0, 5), changed)
        shown.replace(types.Position(0, 0), types.Position(1, 0), "")  # the last one goes again
        shown.uri = here
        await opened(shown)
        rename(shown)
        assert await edits(shown)
    [task] = engine.tasks
    assert [(one.path, one.new) for one in task.history] == [
        ("b.py", ("y = 2",)),
        ("inventory.py", ("def area(breadth, height):",)),
    ]


async def test_no_line_is_sent_of_a_document_that_is_closed_while_a_request_waits(
    tmp_path, monkeypatch
):
    waits, goes = asyncio.Event(), asyncio.Event()

    async def shown_files(*_, **__):
        waits.set()
        await goes.wait()
        return ()

    monkeypatch.setattr(WorkspaceFiles, "shown", shown_files)
    engine = EditEngine(RENAME)
    async with served(tmp_path, engine) as (shown, _):
        here, shown.uri = shown.uri, "file:///shop/b.py"
        await opened(shown, "x = 1\n")
        shown.replace(types.Position(0, 0), types.Position(0, 5), "y = 2")
        shown.uri = here
        await opened(shown)
        rename(shown)
        running = next_edit(shown)
        await waits.wait()
        shown.uri = "file:///shop/b.py"
        shown.close()
        await shown.run("foregram.why")
        goes.set()
        assert (await running).edits
    assert [one.path for one in engine.tasks[0].history] == ["inventory.py"]


async def test_the_clients_units_and_line_ends_are_used(tmp_path):
    outcome = EditOutcome(1, 2, ('🙂 = "a"', 'b = "🙂"'), probability=0.9)
    async with served(tmp_path, EditEngine(outcome)) as (shown, _):
        await opened(shown, "x = 1\r\n🙂 = '🙂🙂'\r\nprint()\r\n")
        shown.replace(types.Position(0, 0), types.Position(0, 1), "y")
        [edit] = await edits(shown)
    assert edit.text == '🙂 = "a"\r\nb = "🙂"'
    assert edit.range.end.character == len("🙂 = '🙂🙂'".encode("utf-16-le")) // 2


UNTOLD = [
    pytest.param(NOTHING, "no_next_edit", id="the model says nothing"),
    pytest.param(EditOutcome(1, 2, ("    return width * height",)), "no_next_edit", id="the same"),
    pytest.param(EditOutcome(refusal="token_limit"), "edit_refused", id="refused by the format"),
    pytest.param(EditOutcome(refusal="empty_block"), "blank_block", id="blank lines"),
    pytest.param(EditOutcome(refusal="large_file"), "too_large", id="a file of huge lines"),
    pytest.param(EditOutcome(refusal="long_lines"), "line_too_long", id="a long line"),
    pytest.param(EditOutcome(refusal="revert"), "edit_returns", id="the format saw a return"),
    pytest.param(replace(RENAME, probability=SURE - 0.01), "edit_unsure", id="unsure"),
    pytest.param(
        EditOutcome(0, 1, ("def area(width, height):",)), "edit_returns", id="undoes the edit"
    ),
    pytest.param(EditOutcome(5, 9, ("x",)), "no_next_edit", id="outside the document"),
]


@pytest.mark.parametrize(("outcome", "reason"), UNTOLD)
async def test_what_is_not_proposed_has_a_reason(tmp_path, outcome, reason):
    async with renamed(tmp_path, EditEngine(outcome)) as shown:
        assert await reason_of(shown) == reason
        kept = (await shown.run("foregram.why"))[-1]
    assert (kept["line"], "token limit" in kept["sentence"]) == (1, reason == "edit_refused")


QUIET = [
    pytest.param({"options": {"nextEdits": "off"}}, {}, "next_edits_off", id="off"),
    pytest.param({}, {"version": 99}, "other_version", id="another version"),
    pytest.param({}, {"line": 99}, "bad_position", id="outside"),
    pytest.param({"uri": "file:///shop/.env"}, {}, "secret_file", id="a secret file"),
    pytest.param({"uri": "file:///shop/a.md"}, {}, "prose", id="prose"),
    pytest.param({"options": {"enable": False}}, {}, "disabled", id="switched off"),
    pytest.param(
        {"options": {"disabledGlobs": ["*.py"]}}, {}, "disabled_file", id="off for the file"
    ),
]


@pytest.mark.parametrize(("options", "changes", "reason"), QUIET)
async def test_nothing_is_asked_where_no_edit_may_come(tmp_path, options, changes, reason):
    engine = EditEngine(RENAME)
    async with renamed(tmp_path, engine, **options) as shown:
        assert await reason_of(shown, **changes) == reason
    assert not engine.tasks


async def test_nothing_is_asked_about_a_file_that_no_model_edits(tmp_path):
    engine = EditEngine(RENAME)
    async with renamed(tmp_path, engine, SOURCE + "\n" * 50_000) as shown:
        assert await reason_of(shown) == "too_large"
    assert not engine.tasks


async def test_nothing_is_asked_before_an_edit_or_after_it_was_undone(tmp_path):
    engine = EditEngine(RENAME)
    async with served(tmp_path, engine) as (shown, _):
        await opened(shown)
        assert await reason_of(shown) == "nothing_edited"
        rename(shown)
        shown.replace(types.Position(0, 9), types.Position(0, 16), "width")
        assert await reason_of(shown) == "nothing_edited"
    assert not engine.tasks


async def test_a_large_paste_leads_to_no_edit_and_an_accepted_suggestion_does(tmp_path):
    engine = EditEngine(RENAME)
    async with served(tmp_path, engine) as (shown, _):
        await opened(shown)
        shown.replace(types.Position(4, 0), types.Position(4, 0), "print()\n" * 9)
        assert await reason_of(shown) == "bulk_edit"
        await shown.run("foregram.accept", "its id", 3)
        assert await edits(shown)


async def test_a_change_of_many_lines_at_once_leads_to_no_edit(tmp_path):
    """As a client sends a substitution: a small change for each line, in one message."""
    engine = EditEngine(RENAME)
    async with served(tmp_path, engine) as (shown, _):
        await opened(shown, "x\n" * 8)
        places = [types.Position(line, 0) for line in range(8)]
        shown.replace_all(*(types.Range(place, place) for place in places), text="y")
        assert await reason_of(shown) == "bulk_edit"
    assert not engine.tasks


@pytest.mark.parametrize("value", ["on", "hint"])
async def test_the_setting_tells_whether_only_the_place_is_to_be_shown(tmp_path, value):
    async with renamed(tmp_path, EditEngine(RENAME), options={"nextEdits": value}) as shown:
        assert (await next_edit(shown)).isHint == (value == "hint")


@pytest.mark.parametrize("kind", [EditEngine, RefusingEngine])
async def test_a_host_without_an_edit_model_is_asked_once(tmp_path, caplog, kind):
    engine = kind(NoEditModelError("fake-1b proposes no edits"))
    async with renamed(tmp_path, engine) as shown:
        with caplog.at_level(logging.INFO, "lsp_server.edits"):
            for _ in range(3):
                assert await reason_of(shown) == "no_edit_model"
        [kept] = await shown.run("foregram.why")  # it holds at every line, so it is told once
        assert "fake-1b proposes no edits" in kept["sentence"]
        await shown.items()
        await reason_of(shown, version=99)
        await edits(shown)
        told = await shown.reasons()  # that of ghost text is not hidden behind it
        assert told == ["no_edit_model", "breaks_code", "other_version"]
    assert len([one for one in caplog.records if "no next edits" in one.message]) == 1
    assert (engine.num_asked, len(engine.requests)) == (1, 1)  # ghost text is as before


@pytest.mark.parametrize("what", ["Reject", "Accept"])
async def test_what_was_rejected_or_accepted_and_undone_does_not_come_again(tmp_path, what):
    async with renamed(tmp_path, EditEngine(RENAME)) as shown:
        [edit] = await edits(shown)
        await told(shown, what, edit)
        assert await reason_of(shown) == "edit_known"
        shown.replace(types.Position(4, 0), types.Position(4, 0), "\n")  # elsewhere
        assert await reason_of(shown) == "edit_known"
        shown.replace(types.Position(1, 4), types.Position(1, 4), "x")  # in its lines
        assert await edits(shown)


async def test_an_edit_that_a_client_makes_and_does_not_tell_of_was_accepted(tmp_path):
    long = EditOutcome(1, 2, tuple(f"line{n} = {n}" for n in range(9)), probability=0.9)
    async with served(tmp_path, EditEngine(RENAME, RENAME, long, NOTHING)) as (shown, host):
        await opened(shown)
        rename(shown)
        [edit] = await edits(shown)
        make(shown, edit)
        shown.replace(types.Position(1, 0), types.Position(1, 28), "    return width * height")
        assert await reason_of(shown) == "edit_known"
        [edit] = await edits(shown)
        make(shown, edit)
        assert await reason_of(shown) == "no_next_edit"
        page = (await host.client.get("/metrics")).text
    assert 'foregram_feedback_total{kind="accepted"} 2.0' in page


async def test_what_was_ignored_may_come_again(tmp_path):
    async with renamed(tmp_path, EditEngine(RENAME)) as shown:
        [edit] = await edits(shown)
        await told(shown, "Ignore", edit)
        assert await edits(shown)


async def test_what_becomes_of_edits_is_counted_with_the_next_request(tmp_path):
    async with served(tmp_path, EditEngine(RENAME)) as (shown, host):
        await opened(shown)
        rename(shown)
        [edit] = await edits(shown)
        tell_shown(shown, edit)
        await told(shown, "Accept", edit)
        await shown.run(COMMAND.format("Accept"), "another id")
        shown.replace(types.Position(1, 0), types.Position(1, 25), CHANGED[0])
        await edits(shown)
        page = (await host.client.get("/metrics")).text
    assert 'foregram_feedback_total{kind="shown"} 1.0' in page
    assert 'foregram_feedback_total{kind="accepted"} 1.0' in page
    assert f"foregram_accepted_characters_total {len('one two three')}.0" in page


LONG = "\n".join(["width = 1", *(f"line{n} = {n}" for n in range(30)), "print(width)", ""])


@pytest.mark.parametrize("refusal", ["no_change", "empty_block"])
async def test_a_name_that_recurs_far_away_gets_a_second_look(tmp_path, refusal):
    far = EditOutcome(31, 32, ("print(breadth)",), probability=0.9)
    engine = EditEngine(EditOutcome(refusal=refusal), far)
    async with renamed(tmp_path, engine, LONG) as shown:
        [edit] = await edits(shown)
    assert (edit.range.start.line, edit.text) == (31, "print(breadth)")
    assert [one.prefix.count("\n") for one in engine.requests] == [0, 31]


async def test_after_a_rejection_the_second_look_still_comes(tmp_path):
    near = EditOutcome(1, 2, ("line0 = breadth",), probability=0.9)
    far = EditOutcome(31, 32, ("print(breadth)",), probability=0.9)
    async with renamed(tmp_path, EditEngine(near, near, far), LONG) as shown:
        [edit] = await edits(shown)
        await told(shown, "Reject", edit)
        [edit] = await edits(shown)
    assert edit.text == "print(breadth)"


async def test_the_nearest_diagnostic_far_away_gets_a_second_look(tmp_path):
    engine = EditEngine(NOTHING)
    diagnostics = [
        {"range": span(line), "message": f"undefined {line}", "severity": "error"}
        for line in (29, 3, 20)
    ]
    async with served(tmp_path, engine) as (shown, _):
        await opened(shown, LONG)
        shown.replace(types.Position(5, 0), types.Position(5, 0), "x")
        assert await reason_of(shown, line=5, diagnostics=diagnostics) == "no_next_edit"
    first, second = engine.tasks
    lines = [[one.line for one in task.diagnostics] for task in (first, second)]
    assert lines == [[3, 20, 29], [20, 29, 3]]
    assert first.diagnostics[0] == Diagnostic(3, "undefined 3")
    assert [one.prefix.count("\n") for one in engine.requests] == [5, 20]


async def test_a_diagnostic_gets_a_look_where_the_model_leaves_the_name_alone(tmp_path):
    fixed = EditOutcome(15, 16, ("line14 = 0",), probability=0.9)
    engine = EditEngine(NOTHING, NOTHING, fixed)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    async with renamed(tmp_path, engine, LONG) as shown:
        [edit] = await edits(shown, diagnostics=diagnostics)
    assert edit.text == "line14 = 0"
    assert [one.prefix.count("\n") for one in engine.requests] == [0, 31, 15]


@pytest.mark.parametrize(
    "second",
    [
        pytest.param(EditOutcome(refusal="token_limit"), id="cut"),
        pytest.param(EditOutcome(refusal="long_lines"), id="a long line"),
        pytest.param(EditOutcome(31, 32, ("print(1)",), probability=SURE - 0.01), id="unsure"),
        pytest.param(EditOutcome(99, 99, ("x",)), id="outside the document"),
    ],
)
async def test_whatever_the_model_lacks_at_the_second_look_a_third_one_comes(tmp_path, second):
    fixed = EditOutcome(15, 16, ("line14 = 0",), probability=0.9)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    async with renamed(tmp_path, EditEngine(NOTHING, second, fixed), LONG) as shown:
        [edit] = await edits(shown, diagnostics=diagnostics)
    assert edit.text == "line14 = 0"


async def test_a_host_that_fails_at_the_second_look_is_not_asked_a_third_time(tmp_path):
    engine = EditEngine(NOTHING, CacheError("no space"), RENAME)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    async with renamed(tmp_path, engine, LONG) as shown:
        assert await reason_of(shown, diagnostics=diagnostics) == "host_failed"
    assert engine.num_asked == 2


async def test_a_device_that_is_lost_at_the_second_look_is_told(tmp_path):
    engine = EditEngine(NOTHING, DeviceLostError("the device is lost"), RENAME)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    with pytest.raises(DeviceLostError):  # of the host, which ends
        async with renamed(tmp_path, engine, LONG) as shown:
            assert await reason_of(shown, diagnostics=diagnostics) == "device_lost"
    assert engine.num_asked == 2


async def test_a_quota_that_is_used_up_at_the_second_look_is_told(tmp_path):
    engine = EditEngine(NOTHING)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    async with served(tmp_path, engine) as (shown, host):
        await opened(shown, LONG)
        rename(shown, LONG)

        def use_up(_):
            [requests] = host.service.limits._requests.values()
            requests.quotas, requests.left = Quotas(requests=1), -9.0

        engine.before_word = use_up
        assert await reason_of(shown, diagnostics=diagnostics) == "quota"
    assert engine.num_asked == 1


async def test_each_look_ends_with_the_request(tmp_path):
    engine = EditEngine(NOTHING)
    engine.before_word = lambda _: setattr(engine, "is_held", engine.num_asked == 3)
    diagnostics = [{"range": span(15), "message": "undefined"}]
    async with renamed(tmp_path, engine, LONG) as shown:
        running = next_edit(shown, diagnostics=diagnostics)
        await eventually(lambda: engine.is_held)
        shown.replace(types.Position(4, 0), types.Position(4, 0), "\n")
        assert not (await running).edits
        await eventually(lambda: len(engine.ended) == 3)
    assert engine.ended[-1].value == "cancelled"


def span(line):
    return {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 1}}


class FollowingEngine(EditEngine):
    """Renames a name in the first line that still has it."""

    def answer(self, request):
        lines = (request.prefix + request.suffix).split("\n")
        row = next((row for row, line in enumerate(lines) if "width" in line), None)
        if row is None:
            return NOTHING
        renamed = lines[row].replace("width", "breadth")
        return EditOutcome(row, row + 1, (renamed,), probability=0.9)


async def shown_ahead(shown, engine, edit):
    """Tell that an edit is on the screen; return once the host is asked for the next one."""
    tell_shown(shown, edit)
    while not await asyncio.to_thread(engine.began.acquire, timeout=10):
        pass


def make(shown, edit):
    start, end = (
        types.Position(at.line, at.character) for at in (edit.range.start, edit.range.end)
    )
    shown.replace(start, end, edit.text)


async def apply(shown, edit):
    make(shown, edit)
    await told(shown, "Accept", edit)


@pytest.mark.parametrize("is_as_expected", [True, False])
async def test_the_edit_after_the_shown_one_is_asked_for_ahead(tmp_path, is_as_expected):
    engine, text = FollowingEngine(), "width = 1\nuse(width)\n# é🙂\nshow(width)\n"
    async with renamed(tmp_path, engine, text, options={"speculate": True}) as shown:
        [first] = await edits(shown)
        engine.began.acquire()
        await shown_ahead(shown, engine, first)
        await eventually(lambda: len(engine.ended) == 2)
        await apply(shown, first)
        if not is_as_expected:
            shown.replace(types.Position(0, 0), types.Position(0, 0), "\n")
        [second] = await edits(shown, line=1)
    row = 3 if is_as_expected else 4
    assert (second.range.start.line, second.text) == (row, "show(breadth)")
    assert second.textDocument.version == shown.version
    assert engine.num_asked == (2 if is_as_expected else 3)
    past = engine.tasks[1].history
    assert [one.new for one in past] == [("breadth = 1",), ("use(breadth)",)]


@pytest.mark.parametrize("what", ["typing", "Reject", "Ignore", "asking"])
async def test_what_was_asked_ahead_ends_when_the_user_does_something_else(tmp_path, what):
    engine, text = FollowingEngine(), "width = 1\nuse(width)\nshow(width)\n"
    async with renamed(tmp_path, engine, text, options={"speculate": True}) as shown:
        [first] = await edits(shown)
        engine.began.acquire()
        engine.is_held = True
        await shown_ahead(shown, engine, first)
        if what == "typing":
            shown.replace(types.Position(0, 0), types.Position(0, 0), "x")
        elif what == "asking":
            asked = next_edit(shown)
        else:
            await told(shown, what, first)
        await eventually(lambda: len(engine.ended) == 2)
        assert engine.ended[-1].value == "cancelled"
        if what == "asking":
            engine.is_held = False
            assert (await asked).edits


async def test_an_answer_for_a_text_that_changed_is_dropped(tmp_path):
    engine = EditEngine(RENAME, is_held=True)
    async with renamed(tmp_path, engine) as shown:
        running = next_edit(shown)
        await asyncio.to_thread(engine.began.acquire, timeout=10)
        shown.replace(types.Position(4, 0), types.Position(4, 0), "\n")
        assert not (await running).edits
        assert (await shown.reasons())[-1] == "superseded"
        engine.is_held = False
        [edit] = await edits(shown)
    assert edit.textDocument.version == shown.version


async def test_an_answer_for_a_document_that_is_closed_ends_at_the_host(tmp_path):
    engine = EditEngine(RENAME, is_held=True)
    async with renamed(tmp_path, engine) as shown:
        running = next_edit(shown)
        await asyncio.to_thread(engine.began.acquire, timeout=10)
        shown.close()
        assert not (await running).edits
        await eventually(lambda: engine.ended)
    assert [one.value for one in engine.ended] == ["cancelled"]


async def test_the_newest_request_is_answered_and_a_cancelled_one_ends(tmp_path):
    engine = EditEngine(RENAME, is_held=True)
    async with renamed(tmp_path, engine) as shown:
        first = next_edit(shown)
        await asyncio.to_thread(engine.began.acquire, timeout=10)
        second = next_edit(shown, request_id="second")
        assert not (await first).edits
        await asyncio.to_thread(engine.began.acquire, timeout=10)
        shown.cancel("second")
        with pytest.raises((JsonRpcException, asyncio.CancelledError)):
            await second
        assert (await shown.reasons())[-2:] == ["superseded", "cancelled"]
        engine.is_held = False
        assert await edits(shown)


@pytest.mark.parametrize(
    "params",
    [{}, [], None, {"textDocument": {"uri": 3}}, {"textDocument": {"uri": "a"}, "position": {}}],
)
async def test_odd_messages_are_answered_and_do_no_harm(tmp_path, params):
    async with renamed(tmp_path, EditEngine(RENAME)) as shown:
        shown.client.protocol.notify("textDocument/didShowInlineEdit", params)
        with pytest.raises(JsonRpcException):
            await asyncio.wrap_future(shown.client.protocol.send_request(METHOD, params))
        assert await edits(shown, version=None)
        await asyncio.wait([next_edit(shown, position={"line": 0, "character": -4})])
        assert await edits(shown)
