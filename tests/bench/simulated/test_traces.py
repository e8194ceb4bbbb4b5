"""Texts made ready for typing: insertions of a replay set, and functions of our own."""

import json

import pytest

from engine.errors import InputError
from tests.bench.simulated.traces import load_traces, own_traces


@pytest.fixture
def replay_set(tmp_path):
    def write(*items):
        rest = {"package": "p", "path": "p/a.py", "suffix": "\n", "open_buffers": []}
        rows = [
            {"id": str(number), "kind": "completion", "target": "x", **rest, **item}
            for number, item in enumerate(items)
        ]
        path = tmp_path / "set.jsonl"
        path.write_text("\n".join(map(json.dumps, rows)))
        return path

    return write


@pytest.mark.parametrize(
    ("prefix", "before", "approach"),
    [
        ("def f():\n    ", "def f():", "\n    "),
        ("x = ", "x =", " "),
        ("a\n\n", "a\n", "\n"),
        ("", "", ""),
    ],
)
def test_one_comes_to_the_cursor_by_the_key_before_it(replay_set, prefix, before, approach):
    (trace,) = load_traces(replay_set({"prefix": prefix}))
    assert (trace.before, trace.approach) == (before, approach)


def test_edits_are_left_out(replay_set):
    path = replay_set({"prefix": "", "kind": "edit"}, {"prefix": ""}, {"prefix": ""})
    assert [trace.id for trace in load_traces(path, 1)] == ["1"]


@pytest.mark.parametrize("path", ["/etc/passwd", "../a.py", "p/../../a.py", "", "."])
def test_a_file_that_would_not_be_in_the_workspace_is_refused(replay_set, path):
    with pytest.raises(InputError, match=r"0: the path .* leads out of the workspace"):
        load_traces(replay_set({"prefix": "", "path": path}))
    opened = [{"path": "p/b.py", "text": ""}, {"path": path, "text": ""}]
    with pytest.raises(InputError, match=r"0: the path .* leads out of the workspace"):
        load_traces(replay_set({"prefix": "", "open_buffers": opened}))


def test_bodies_of_functions_stand_where_they_stood():
    traces = own_traces()
    assert len(traces) > 100
    assert len({trace.id for trace in traces}) == len(traces)
    for trace in traces[::20]:
        compile(trace.before + trace.approach + trace.target + trace.suffix, trace.path, "exec")
        assert trace.target == trace.target.strip()
        assert "\n" in trace.target
        assert trace.approach.startswith("\n")


def test_other_files_of_the_folder_are_open():
    traces = own_traces()[::20]
    assert any(trace.open_buffers for trace in traces)
    for trace in traces:
        folder = trace.path.rpartition("/")[0]
        assert all(buffer.path.rpartition("/")[0] == folder for buffer in trace.open_buffers)
        assert trace.path not in [buffer.path for buffer in trace.open_buffers]
