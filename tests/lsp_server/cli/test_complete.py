"""`foregram complete` with an engine that needs no model."""

import io
import json
import os
import re
import signal
from pathlib import Path

import pytest

from engine import CompletionRequest, FinishReason
from engine.errors import InputError
from lsp_server.cli import command_line
from lsp_server.cli import complete as module
from lsp_server.cli.complete import complete, open_buffers, refuse_hidden
from lsp_server.cli.report import JsonObject
from lsp_server.cli.source_file import Location, SourceFile
from lsp_server.cli.terminal import PlainText
from lsp_server.completion.postprocess import Processed
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.reasons import HIDING, Reason
from tests.support.held_engine import HeldEngine

FIELDS = [
    "text",
    "replaced_chars_after_cursor",
    "tokens",
    "steps",
    "tokens_per_step",
    "rows_per_step",
    "prompt_tokens",
    "neighbour_tokens",
    "neighbours",
    "prefill_ms",
    "decode_ms",
    "tokens_per_second",
    "accepted_by_source",
    "model",
    "device",
    "dtype",
    "peak_memory_mb",
    "finish_reason",
]

REQUEST = CompletionRequest(prefix="def f():\n    ", suffix="\n")


def source(line_end="\n"):
    return SourceFile(Path("a.py"), "def f():\n    \n", line_end)


def test_a_cursor_splits_the_file(tmp_path):
    path = tmp_path / "a.py"
    path.write_bytes(b"one\r\ntwo\r\n")
    location = Location.parse(f"{path}:2:2")
    text = SourceFile.read(location.path).text
    offset = location.offset_in(text)
    assert (text[:offset], text[offset:]) == ("one\nt", "wo\n")


def test_open_buffers_keep_their_order_and_leave_the_edited_file_out(tmp_path):
    edited, other, third = (tmp_path / name for name in ("edited.py", "other.py", "third.py"))
    for path in (edited, other, third):
        path.write_text(f"# {path.name}\n")
    buffers = open_buffers([third, edited, other, third], edited, [], tmp_path)
    assert [Path(buffer.path).name for buffer in buffers] == ["third.py", "other.py"]
    assert buffers[0].text == "# third.py\n"


def test_an_open_buffer_that_is_missing_is_an_error(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        open_buffers([tmp_path / "missing.py"], tmp_path / "edited.py", [], tmp_path)


def test_json_has_exactly_the_promised_fields_in_one_line():
    out = io.StringIO()
    complete(HeldEngine(("return", " 1")), REQUEST, source(), JsonObject(out))
    assert out.getvalue().count("\n") == 1
    answer = json.loads(out.getvalue())
    assert list(answer) == FIELDS
    assert answer["text"] == "return 1"
    assert answer["tokens_per_step"] == round(2 / 3, 3)
    assert answer["tokens_per_second"] == round(2 / 0.007, 2)
    assert answer["finish_reason"] == "end_token"
    assert 1 < answer["peak_memory_mb"] < 100_000


def test_the_completion_has_the_files_own_line_ends():
    out, errors = io.StringIO(), io.StringIO()
    report = complete(HeldEngine(("a\n", "b\n")), REQUEST, source("\r\n"), PlainText(out, errors))
    assert out.getvalue() == report.text == "a\r\nb\r\n"


def test_a_pipe_gets_the_completion_alone():
    out, errors = io.StringIO(), io.StringIO()
    complete(HeldEngine(("return 1",)), REQUEST, source(), PlainText(out, errors))
    assert out.getvalue() == "return 1"
    assert "2 tokens in 3 runs of the model" in errors.getvalue()


@pytest.mark.parametrize("reason", FinishReason)
def test_an_empty_completion_says_why(reason):
    errors = io.StringIO()
    output = PlainText(io.StringIO(), errors)
    report = complete(HeldEngine((), ending=reason), REQUEST, source(), output)
    assert f"nothing to insert: {report.ending}" in errors.getvalue()


def test_ctrl_c_ends_the_completion_within_a_step_and_keeps_its_text():
    def interrupt(index):
        if index == 1:
            os.kill(os.getpid(), signal.SIGINT)

    engine = HeldEngine(("first\n", "second\n"), before_word=interrupt)
    report = complete(engine, REQUEST, source(), JsonObject(io.StringIO()))
    assert (report.text, report.result.finish_reason) == ("first\n", FinishReason.CANCELLED)


def test_a_second_ctrl_c_interrupts_as_usual():
    def interrupt_twice(index):
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        complete(
            HeldEngine(("x",), before_word=interrupt_twice),
            REQUEST,
            source(),
            JsonObject(io.StringIO()),
        )
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("reason", sorted(HIDING - {Reason.LINE_TOO_LONG}))
def test_each_reason_to_hide_a_file_is_a_sentence(reason, monkeypatch):
    monkeypatch.setattr(HiddenFiles, "reason", lambda self, path: reason)
    sentence = re.escape(reason.sentence)
    with pytest.raises(InputError, match=rf"a\.py: {sentence}; to allow it"):
        refuse_hidden(source(), [])


@pytest.fixture
def answered(tmp_path, monkeypatch, capsys):
    """What `foregram complete` answers where the model says `words`, and what it was asked."""

    def run(name, text, words):
        before, _, after = text.partition("|")
        path, engine = tmp_path / name, HeldEngine(tuple(words))
        path.write_text(before + after)
        monkeypatch.setattr(module, "_load_engine", lambda arguments, settings: engine)
        where = f"{path}:{before.count(chr(10)) + 1}:{len(before.rpartition(chr(10))[2]) + 1}"
        assert command_line.main(["complete", where, "--json"]) == 0
        return json.loads(capsys.readouterr().out), engine

    return run


@pytest.mark.parametrize(
    ("name", "text", "words", "shown", "replaced"),
    [
        ("a.py", "x = total(|)\n", ["items)"], "items)", 1),
        ("a.py", "x = |\n", ["1\n", "```\n", "This sets x."], "1", 0),
        (
            "a.py",
            "def f():\n    |\n    return total\n",
            ["total = 1\n    return total\n"],
            "total = 1",
            0,
        ),
        ("Makefile", "all:\n\t|\n", ["cc a.c\n    strip a"], "cc a.c\n\tstrip a", 0),
        ("a.css", "/* |\n */\na { b: c }\n", ["the index (see"], "the index (see", 0),
        ("notes.md", "Install it: |\n", ["Run pip. It is quick. Enjoy."], "Run pip.", 0),
    ],
)
def test_what_is_shown_is_what_an_editor_shows(answered, name, text, words, shown, replaced):
    answer, _ = answered(name, text, words)
    assert (answer["text"], answer["replaced_chars_after_cursor"]) == (shown, replaced)


def test_what_an_editor_would_not_show_has_its_reason(tmp_path, answered):
    errors = io.StringIO()
    shown = lambda _: Processed(reason=Reason.BREAKS_CODE)  # noqa: E731 - for this test alone
    complete(HeldEngine((")",)), REQUEST, source(), PlainText(io.StringIO(), errors), shown)
    assert f"nothing to insert: {Reason.BREAKS_CODE.sentence}" in errors.getvalue()


def test_an_empty_file_is_completed_by_what_is_sure(answered):
    _, engine = answered("a.py", "|", ["import os"])
    assert engine.requests[0].stop.min_confidence > 0
