"""The recording of suggestions: reproducible, and differences are reported."""

import json

import pytest

from tests.bench.__main__ import main

CODE = "".join(
    f"def area_{one}(width, height):\n    return width * height\n\n\n" for one in range(15)
)


@pytest.fixture
def record(tmp_path, capsys):
    (tmp_path / "shapes.py").write_text(CODE)

    def run(*options: str) -> str:
        arguments = ["suggestions", str(tmp_path / "shapes.py"), "--count", "4", *options]
        assert main(arguments) == 0
        told: str = capsys.readouterr().out
        return told

    return run


def test_two_recordings_are_equal_and_a_difference_is_told(record, tmp_path):
    kept = tmp_path / "before.jsonl"
    record("--out", str(kept))
    assert "0 of 4" in record("--against", str(kept))
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    lines[0]["prompt"] = "another"
    kept.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert "1 of 4" in record("--against", str(kept))
