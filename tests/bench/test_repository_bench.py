"""`python -m tests.bench repository`: an index is filled and asked, without a model."""

import json

from tests.bench.__main__ import main


def test_a_folder_is_indexed_and_asked_at_places_drawn_by_chance(capsys, tmp_path):
    (tmp_path / "shop.py").write_text("def load_order(number): ...\n")
    (tmp_path / "cart.py").write_text("from shop import load_order\n\nload_order(3)\n")
    assert main(["repository", str(tmp_path), "--count", "5", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["num_files"], figures["num_questions"]) == (2, 5)
    p50, p99 = figures["question_ms"]
    assert 0 < p50 <= p99
    memory = figures["server_mb"]
    assert 0 < memory["before_mb"] <= memory["after_mb"]
    assert memory["num_questions"] == 30


def test_a_folder_without_code_is_asked_nothing(capsys, tmp_path):
    assert main(["repository", str(tmp_path)]) == 0
    assert "0 questions" in capsys.readouterr().out


def test_what_is_no_folder_is_refused(capsys, tmp_path):
    assert main(["repository", str(tmp_path / "absent")]) == 2
    assert "is no folder" in capsys.readouterr().err
