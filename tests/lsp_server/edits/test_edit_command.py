"""`foregram.edit` as an editor meets it, with a host that a test holds in its hands."""

import asyncio
from ast import literal_eval
from contextlib import asynccontextmanager

import pytest
from lsprotocol import types
from pygls.exceptions import JsonRpcException

from engine.errors import ForegramError
from engine.request import EditOutcome
from tests.support.held_engine import HeldEngine
from tests.support.polling import eventually
from tests.support.served_editor import served

SOURCE = "def total(items):\n    return sum(items)\n\n\nprint(total([]))\n"
CHANGED = ("def total(items: list[int]) -> int:",)
APPLIES = types.WorkspaceClientCapabilities(
    apply_edit=True, workspace_edit=types.WorkspaceEditClientCapabilities(document_changes=True)
)
ABLE = types.ClientCapabilities(
    workspace=APPLIES, window=types.WindowClientCapabilities(work_done_progress=True)
)


class NoInstructionsError(ForegramError):
    """As an engine refuses whose model has no chat template."""

    code = "no_chat_template"


def outcome(first=0, end=1, lines=CHANGED, refusal=""):
    return EditOutcome(first, end, lines, refusal=refusal)


@asynccontextmanager
async def opened(tmp_path, engine, text=SOURCE, capabilities=ABLE, **options):
    """Serve an engine to an editor that has opened a document."""
    async with served(tmp_path, engine, capabilities=capabilities, **options) as (shown, _):
        shown.open_around("", text)
        yield shown


def asked(shown, first=0, end=1, **more):
    where = {"start": {"line": first, "character": 0}, "end": {"line": end, "character": 0}}
    wanted = {"uri": shown.uri, "range": where, "instruction": "Add type hints.", "preview": True}
    return wanted | more


def begin(shown, argument, request_id=None):
    params = types.ExecuteCommandParams("foregram.edit", arguments=[argument])
    method = types.WORKSPACE_EXECUTE_COMMAND
    sent = shown.client.protocol.send_request(method, params, msg_id=request_id)
    return asyncio.wrap_future(sent)


async def refused(answer):
    with pytest.raises(JsonRpcException) as raised:
        await answer
    return raised.value


async def until(semaphore):
    assert await asyncio.to_thread(semaphore.acquire, timeout=10)


async def test_an_edit_is_applied_to_the_version_that_it_was_asked_for(tmp_path):
    engine = HeldEngine(("a\n", "b"), edit=outcome())
    async with opened(tmp_path, engine) as shown:
        assert await begin(shown, asked(shown, preview=False)) is None
        await eventually(lambda: shown.edits)
        [edit] = shown.edits
    [change] = edit.edit.document_changes
    assert (change.text_document.uri, change.text_document.version) == (shown.uri, shown.version)
    assert [one.new_text for one in change.edits] == list(CHANGED)
    assert edit.label == "Add type hints."
    assert (engine.requests[-1].edit.first, engine.requests[-1].edit.end) == (0, 1)
    assert shown.progress == ["create", "begin", "report", "end"]


async def test_a_preview_is_returned_and_not_applied(tmp_path):
    engine = HeldEngine(edit=outcome())
    async with opened(tmp_path, engine, capabilities=types.ClientCapabilities()) as shown:
        answer = await begin(shown, asked(shown))
        assert not shown.edits
    assert answer["version"] == shown.version
    [edit] = answer["edits"]
    assert edit["newText"] == CHANGED[0]
    assert (edit["range"]["start"]["line"], edit["range"]["end"]["line"]) == (0, 0)


async def test_a_selection_that_ends_at_a_lines_beginning_leaves_the_line_out(tmp_path):
    engine = HeldEngine(edit=outcome(0, 2, ("pass", "pass")))
    async with opened(tmp_path, engine) as shown:
        ranges = (((0, 0), (2, 0)), ((0, 3), (1, 1)), ((1, 0), (1, 0)), ((4, 0), (9, 9)))
        for start, end in ranges:
            places = [{"line": line, "character": column} for line, column in (start, end)]
            where = dict(zip(("start", "end"), places, strict=True))
            await asyncio.wait([begin(shown, asked(shown, range=where))])
    tasks = [(one.edit.first, one.edit.end) for one in engine.requests]
    assert tasks == [(0, 2), (0, 2), (1, 2), (4, 6)]


async def test_positions_and_line_ends_are_the_documents(tmp_path):
    engine = HeldEngine(edit=outcome(1, 2, ("é = '🦉🦉'", "b = 2")))
    async with opened(tmp_path, engine, "a = 1\r\né = '🦉🦉🦉'\r\nc = 3") as shown:
        answer = await begin(shown, asked(shown, 1, 2))
    [edit] = answer["edits"]
    assert edit["newText"] == "é = '🦉🦉'\r\nb = 2"
    assert [edit["range"][side]["character"] for side in ("start", "end")] == [0, 12]


async def test_a_change_of_the_document_ends_its_edit(tmp_path):
    engine = HeldEngine(is_held=True, edit=outcome())
    async with opened(tmp_path, engine) as shown:
        answer = begin(shown, asked(shown))
        await until(engine.began)
        shown.replace(types.Position(4, 0), types.Position(4, 0), "#")
        error = await refused(answer)
        assert not shown.edits
    assert (error.code, error.data["reason"]) == (-32803, "document_changed")
    assert shown.progress[-1] == "end"
    assert [one.value for one in engine.ended] == ["cancelled"]


async def test_an_edit_of_another_version_is_not_begun(tmp_path):
    engine = HeldEngine(edit=outcome())
    async with opened(tmp_path, engine) as shown:
        error = await refused(begin(shown, asked(shown, version=shown.version - 1)))
    assert error.data["reason"] == "document_changed"
    assert not engine.requests


async def test_a_second_edit_of_a_document_takes_the_place_of_the_first(tmp_path):
    engine = HeldEngine(is_held=True, edit=outcome())
    async with opened(tmp_path, engine) as shown:
        first = begin(shown, asked(shown))
        await until(engine.began)
        second = begin(shown, asked(shown))
        error = await refused(first)
        engine.is_held = False
        assert (await second)["edits"]
    assert (error.code, error.data["reason"]) == (-32800, "superseded")


@pytest.mark.parametrize("way", ["request", "progress"])
async def test_a_cancelled_edit_is_not_applied_and_ends_at_the_host(tmp_path, way):
    engine = HeldEngine(is_held=True, edit=outcome())
    async with opened(tmp_path, engine) as shown:
        answer = begin(shown, asked(shown, workDoneToken="mine"), request_id="the edit")
        await until(engine.began)
        if way == "request":
            shown.cancel("the edit")
        else:
            cancel = types.WorkDoneProgressCancelParams("mine")
            shown.client.window_work_done_progress_cancel(cancel)
        assert (await refused(answer)).code == -32800
        while not engine.ended:
            await asyncio.sleep(0)
        assert not shown.edits
    assert shown.progress == ["begin", "end"]
    assert [one.value for one in engine.ended] == ["cancelled"]


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (outcome(refusal="token_limit"), "token_limit"),
        (outcome(lines=("def total(items):",)), "no_change"),
        (outcome(2, 3), "outside"),
        (None, "host_failed"),
    ],
)
async def test_an_answer_that_is_no_edit_has_its_reason(tmp_path, edit, reason):
    async with opened(tmp_path, HeldEngine(edit=edit)) as shown:
        error = await refused(begin(shown, asked(shown)))
        assert not shown.edits
    assert (error.code, error.data["reason"]) == (-32803, reason)
    assert error.message


@pytest.mark.parametrize("lines", [(9, 10), (2**31, 2**40), (-1, 0)])
async def test_lines_that_are_not_there_are_refused(tmp_path, lines):
    engine = HeldEngine(edit=outcome())
    async with opened(tmp_path, engine) as shown:
        error = await refused(begin(shown, asked(shown, *lines)))
    assert error.code in (-32602, -32803)
    assert not engine.requests


SUGGESTIONS_OFF = [
    {"enable": False},
    {"languages": {"python": False}},
    {"disabledGlobs": ["*.py"]},
]


@pytest.mark.parametrize("options", SUGGESTIONS_OFF)
async def test_an_edit_is_made_where_suggestions_are_off(tmp_path, options):
    async with opened(tmp_path, HeldEngine(edit=outcome()), options=options) as shown:
        assert (await begin(shown, asked(shown)))["edits"]
        assert not await shown.items()
        assert await offered(shown)


async def test_secret_documents_are_refused_with_their_reason(tmp_path):
    engine = HeldEngine(edit=outcome())
    async with opened(tmp_path, engine, uri="file:///shop/.env") as shown:
        error = await refused(begin(shown, asked(shown)))
    assert error.data["reason"] == "secret_file"
    assert not engine.requests


@pytest.mark.parametrize(
    ("capabilities", "edit", "sentence"),
    [
        (ABLE, outcome(), "the buffer is read-only"),
        (ABLE, outcome(refusal="no_change"), "the model would change nothing"),
        (types.ClientCapabilities(), outcome(), "this editor cannot apply an edit"),
    ],
)
async def test_a_person_reads_why_an_edit_was_not_applied(tmp_path, capabilities, edit, sentence):
    async with opened(tmp_path, HeldEngine(edit=edit), capabilities=capabilities) as shown:
        shown.refuses_edits = "the buffer is read-only"
        await begin(shown, asked(shown, preview=False))
        await eventually(lambda: any(sentence in one for one in shown.messages))


async def test_a_person_reads_that_an_edit_failed_for_a_reason_that_nobody_foresaw(
    tmp_path, caplog, monkeypatch
):
    monkeypatch.setattr("lsp_server.edits.asked_edits.text_edit", lambda *_: 1 / 0)
    async with opened(tmp_path, HeldEngine(edit=outcome())) as shown:
        await begin(shown, asked(shown, preview=False))
        await eventually(lambda: any("the edit failed" in one for one in shown.messages))
    assert "ZeroDivisionError" in caplog.text


async def test_a_change_of_the_document_ends_an_edit_that_was_to_be_applied(tmp_path):
    engine = HeldEngine(is_held=True, edit=outcome())
    async with opened(tmp_path, engine) as shown:
        await begin(shown, asked(shown, preview=False))
        await until(engine.began)
        shown.replace(types.Position(4, 0), types.Position(4, 0), "#")
        await eventually(lambda: any("changed meanwhile" in one for one in shown.messages))
        assert not shown.edits


@pytest.mark.parametrize(
    "wrong",
    [
        None,
        7,
        {"range": None},
        {"uri": 1},
        {"instruction": ""},
        {"instruction": " \n"},
        {"instruction": "x" * 4097},
    ],
)
async def test_a_wrong_argument_is_named(tmp_path, wrong):
    async with opened(tmp_path, HeldEngine(edit=outcome())) as shown:
        argument = asked(shown) | wrong if isinstance(wrong, dict) else wrong
        error = await refused(begin(shown, argument))
    assert error.code == -32602
    assert "foregram.edit" in error.message


async def offered(shown):
    where = types.Range(types.Position(0, 0), types.Position(1, 0))
    params = types.CodeActionParams(
        types.TextDocumentIdentifier(shown.uri), where, types.CodeActionContext([])
    )
    return await shown.client.text_document_code_action_async(params)


async def test_a_menu_offers_edits_that_the_command_takes(tmp_path):
    engine = HeldEngine(edit=outcome())
    async with opened(tmp_path, engine) as shown:
        await begin(shown, asked(shown))  # waits for the host
        action = (await offered(shown))[0]
        # The client's library takes each action for a command, and its command for text.
        await begin(shown, literal_eval(action.command)["arguments"][0])
        await eventually(lambda: shown.edits)
    assert [one.label for one in shown.edits] == ["Add type hints."]


async def test_a_menu_offers_nothing_where_the_model_takes_no_instructions(tmp_path):
    def refuse(_: int) -> None:
        raise NoInstructionsError("the model takes no instructions")

    engine = HeldEngine(before_word=refuse)
    async with opened(tmp_path, engine) as shown:
        error = await refused(begin(shown, asked(shown)))
        assert error.data["reason"] == "no_chat_template"
        assert error.message == "the model takes no instructions"
        assert not await offered(shown)


async def test_a_menu_offers_nothing_in_a_secret_document(tmp_path):
    async with opened(tmp_path, HeldEngine(edit=outcome()), uri="file:///shop/.env") as shown:
        await refused(begin(shown, asked(shown)))
        assert not await offered(shown)
