"""`foregram complete` with an engine that needs no model."""

import json
import re
from pathlib import Path

import pytest

from engine.errors import InputError
from engine.request import CompletionRequest, FinishReason
from lsp_server.cli import command_line
from lsp_server.cli import complete as module
from lsp_server.cli.complete import complete, open_buffers, refuse_hidden
from lsp_server.cli.completion_report import print_json, print_plain
from lsp_server.cli.source_file import SourceFile
from lsp_server.privacy.hidden_files import HiddenFiles
from lsp_server.reasons import ANOTHER, HIDING, Reason
from tests.support.held_engine import HeldEngine

FIELDS = (
    "text replaced_chars_after_cursor tokens steps tokens_per_step rows_per_step prompt_tokens "
    "neighbour_tokens neighbours prefill_ms decode_ms tokens_per_second accepted_by_source model "
    "device dtype peak_memory_mb finish_reason"
)
REQUEST = CompletionRequest(prefix="def f():\n    ", suffix="\n")


def source(line_end="\n"):
    return SourceFile(Path("a.py"), "def f():\n    \n", line_end)


def test_open_buffers_keep_their_order_and_leave_the_edited_file_out(tmp_path):
    edited, other, third = (tmp_path / name for name in ("edited.py", "other.py", "third.py"))
    for path in (edited, other, third):
        path.write_text(f"# {path.name}\n")
    buffers = open_buffers([third, edited, other, third], edited, [], tmp_path)
    assert [Path(buffer.path).name for buffer in buffers] == ["third.py", "other.py"]
    assert buffers[0].text == "# third.py\n"


def test_json_has_exactly_the_promised_fields_in_one_line(capsys):
    print_json(complete(HeldEngine(("return", " 1")), REQUEST, source()))
    shown = capsys.readouterr().out
    assert shown.count("\n") == 1
    answer = json.loads(shown)
    assert list(answer) == FIELDS.split()
    assert answer["text"] == "return 1"
    assert answer["tokens_per_step"] == round(2 / 3, 3)
    assert answer["tokens_per_second"] == round(2 / 0.007, 3)
    assert answer["finish_reason"] == "end_token"
    assert 1 < answer["peak_memory_mb"] < 100_000


def test_a_pipe_gets_the_completion_alone_with_the_files_own_line_ends(capsys):
    print_plain(complete(HeldEngine(("a\n", "b\n")), REQUEST, source("\r\n")))
    shown = capsys.readouterr()
    assert shown.out == "a\r\nb\r\n"
    assert "2 tokens in 3 runs of the model" in shown.err


@pytest.mark.parametrize("reason", FinishReason)
def test_an_empty_completion_says_why(reason):
    report = complete(HeldEngine((), ending=reason), REQUEST, source())
    assert f"nothing to insert: {report.ending}" in report.summary


@pytest.mark.parametrize("ending", [FinishReason.SUFFIX, FinishReason.END_TOKEN])
def test_where_a_text_is_empty_or_repeats_what_follows_another_one_is_shown(ending):
    engine = HeldEngine((), ending=ending, others=("return 1",))
    report = complete(engine, REQUEST, source())
    assert report.text == "return 1"
    assert ANOTHER in report.summary
    assert [one.sampling.avoids_suffix for one in engine.requests] == [False, True]


@pytest.mark.parametrize("reason", sorted(HIDING - {Reason.LINE_TOO_LONG}))
def test_each_reason_to_hide_a_file_is_a_sentence(reason, monkeypatch):
    monkeypatch.setattr(HiddenFiles, "reason", lambda self, path: reason)
    sentence = re.escape(reason.sentence)
    with pytest.raises(InputError, match=rf"a\.py: {sentence}; to allow it"):
        refuse_hidden(source(), [])


@pytest.fixture
def answered(tmp_path, monkeypatch, capsys):
    def run(name, text, words):
        before, _, after = text.partition("|")
        path, engine = tmp_path / name, HeldEngine(tuple(words))
        path.write_text(before + after)
        monkeypatch.setattr(module, "load_shown", lambda arguments, settings: engine)
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


def test_what_an_editor_would_not_show_has_its_reason():
    report = complete(HeldEngine((")",)), REQUEST, source(), lambda _: Reason.BREAKS_CODE)
    assert f"nothing to insert: {Reason.BREAKS_CODE.sentence}" in report.summary


def test_an_empty_file_is_completed_by_what_is_sure(answered):
    _, engine = answered("a.py", "|", ["import os"])
    assert engine.requests[0].stop.min_confidence > 0
