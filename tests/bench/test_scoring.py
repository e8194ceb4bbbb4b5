import pytest

from tests.bench.scoring import edit_similarity, score
from tests.bench.tasks import FimTask

LINE = FimTask.from_row(
    {
        "name": "a",
        "language": "js",
        "prompt": "f(\n",
        "suffix": "\n)",
        "canonical_solution": "  x + 1",
    }
)
BLOCK = FimTask.from_row(
    {
        "task_id": "b",
        "prompt": "def f(x):\n    ",
        "suffix": "\n",
        "canonical_solution": "return x + 1",
        "test": "def check(c):\n    assert c(1) == 2",
        "entry_point": "f",
    }
)


@pytest.mark.parametrize("said", ["x + 1", "\n\n   x + 1  \nmore", "  x + 1"])
def test_a_line_is_judged_by_the_first_that_is_not_empty(said):
    assert score(LINE, said).is_exact
    assert score(LINE, said).passed is None


@pytest.mark.parametrize(
    ("said", "is_exact", "passed"),
    [
        ("return x + 1", True, True),
        ("return 1 + x", False, True),
        ("return x", False, False),
        ("return x +", False, False),
        ("", False, False),
    ],
)
def test_a_block_is_judged_by_its_text_and_by_running_the_program(said, is_exact, passed):
    one = score(BLOCK, said)
    assert (one.is_exact, one.passed) == (is_exact, passed)


@pytest.mark.parametrize(
    ("one", "other", "similarity"),
    [
        ("", "", 1.0),
        ("abc", "abc", 1.0),
        ("", "abc", 0.0),
        ("kitten", "sitting", 1 - 3 / 7),
        ("abcd", "bcd", 0.75),
    ],
)
def test_edit_similarity_counts_changed_characters(one, other, similarity):
    assert edit_similarity(one, other) == pytest.approx(similarity)
