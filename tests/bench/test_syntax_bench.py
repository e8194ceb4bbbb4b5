"""`python -m tests.bench syntax`: places in real files, and what becomes of a model's answers there."""

import json

from tests.bench import syntax_bench
from tests.bench.__main__ import main
from tests.bench.code_places import is_broken, mid_line_places
from tests.support.code_places import ROOT
from tests.support.replayed import ScriptedEngine, result

FILES = ROOT / "tests/data/places"


def test_places_stand_inside_a_line_of_a_file_that_is_whole():
    places = mid_line_places([FILES], 30, seed=1)
    assert len(places) == 30
    for place in places:
        assert place.rest.strip()
        assert place.truth.strip()
        assert not is_broken(place.with_text(place.truth, 0), place.language_id)


def test_files_that_cannot_be_read_are_passed_over(tmp_path):
    (tmp_path / "broken.py").write_text("def area(:\n")
    (tmp_path / "binary.py").write_bytes(b"\xff\0")
    (tmp_path / "notes.txt").write_text("call(one, two, three)\n")
    assert mid_line_places([tmp_path], 5, seed=1) == []


def test_answers_that_close_too_much_are_counted_as_broken_and_mended(capsys, monkeypatch):
    truths = {place.prefix: place.truth for place in mid_line_places([FILES], 12, seed=1)}
    engine = ScriptedEngine(lambda request: result(truths[request.prefix] + ")) + ("))
    monkeypatch.setattr(syntax_bench, "load_engine", lambda *_: engine)
    assert main(["syntax", str(FILES), "--count", "12", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["num_places"] == 12
    assert figures["trimmed"]["broken"] > 6
    assert figures["shown"]["broken"] == 0
    assert figures["shown"]["right"] > figures["trimmed"]["right"]
