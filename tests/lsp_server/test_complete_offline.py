"""`foregram complete` on odd files, with the offline model loaded once for all of them."""

import json
from pathlib import Path

import pytest

from engine.engine import Engine
from engine.loader import load_engine
from lsp_server.cli import command_line as cli
from lsp_server.cli import complete

DEMO = Path(__file__).parents[1] / "data" / "demo"
HOLE = f"{DEMO / 'inventory.py'}:57"

# The first start on a machine converts the model.
pytestmark = [pytest.mark.model, pytest.mark.timeout(400)]


class KeptOpen:
    """The one engine, for commands that close theirs."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.info, self.complete = engine.info, engine.complete

    def close(self) -> None:
        """Stay open."""


@pytest.fixture(scope="module")
def engine(cache_folder):
    return KeptOpen(load_engine(cache_folder, "offline"))


@pytest.fixture
def completed(engine, monkeypatch, capsys):
    def run(where, *options):
        monkeypatch.setattr(complete, "load_shown", lambda arguments, settings: engine)
        assert cli.main(["complete", str(where), "--json", *map(str, options)]) == 0
        return json.loads(capsys.readouterr().out)

    return run


@pytest.mark.parametrize(
    ("content", "where"),
    [
        (b"", "1"),
        (b"def area(width, height):\r\n    return \r\n", "2"),
        ("greeting = '🦉 héllo'\nprint(gree\n".encode(), "2"),
        (b"<|fim_middle|><|endoftext|><|fim_suffix|>\n" * 20, "10"),
        (b"x = '\xed\xa0\xbd'\n", "1:1"),
        (b"x = 1\n", "1:1"),
        (b"x = 1\n", "2"),
        (b"\n" * 2000, "1000"),
    ],
    ids=["empty", "windows", "emoji", "special", "surrogate", "start", "end", "blank"],
)
def test_odd_files_are_completed_the_same_with_and_without_lookahead(
    tmp_path, completed, content, where
):
    path = tmp_path / "odd.py"
    path.write_bytes(content)
    options = (f"{path}:{where}", "--max-tokens", 12)
    answer = completed(*options)
    assert answer["text"] == completed(*options, "--lookahead", "off")["text"]
    assert 0 < answer["tokens"] <= 12
    assert "<|" not in answer["text"] or b"<|" in content
    if b"\r\n" in content:
        assert answer["text"].count("\n") == answer["text"].count("\r\n")


def test_a_file_of_fifty_thousand_lines_is_completed(tmp_path, completed):
    path = tmp_path / "long.py"
    path.write_text("".join(f"value_{n} = {n}\n" for n in range(50_000)))
    answer = completed(f"{path}:49999", "--max-tokens", 8, "--open", DEMO / "orders.py")
    assert 0 < answer["tokens"] <= 8


def test_lookahead_changes_the_speed_alone(completed):
    options = (HOLE, "--open", DEMO / "orders.py", "--max-tokens", 48)
    plain = completed(*options, "--lookahead", "off")
    ahead = completed(*options)
    assert ahead["text"] == plain["text"]
    assert ahead["tokens"] == plain["tokens"]
    assert plain["tokens_per_step"] <= 1
    assert ahead["steps"] < plain["steps"]


def test_seeded_sampling_is_the_same_text_whatever_the_lookahead(completed):
    options = (HOLE, "--temperature", 0.8, "--seed", 5, "--max-tokens", 32)
    plain = completed(*options, "--lookahead", "off")["text"]
    assert [completed(*options, "--lookahead", mode)["text"] for mode in ("auto", "4,3,4")] == [
        plain,
        plain,
    ]


def test_both_layouts_fill_the_hole(completed):
    for layout in ("line", "psm"):
        answer = completed(HOLE, "--max-tokens", 24, "--layout", layout)
        assert "deliver" in answer["text"]
