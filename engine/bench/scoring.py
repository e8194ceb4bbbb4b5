"""How well a completion fills a hole: exact match, edit similarity, and whether the program runs."""

from dataclasses import dataclass

from engine.bench.sandbox import runs_through
from engine.bench.task_sets import FimTask


@dataclass(frozen=True, slots=True)
class Score:
    """One completion's score. `passed` is None where a task has no check that can be run."""

    is_exact: bool
    edit_similarity: float  # 0 to 1
    passed: bool | None


def score(task: FimTask, completion: str) -> Score:
    """Score by the first non-empty line where the set asks for one line, else by the whole text.

    Blanks around the text do not count for the match; they do for the program.
    """
    if task.check is None:
        said, wanted = first_line(completion), task.middle.strip()
        return Score(said == wanted, edit_similarity(said, wanted), None)
    said, wanted = completion.strip(), task.middle.strip()
    passed = runs_through(task.program(completion))
    return Score(said == wanted, edit_similarity(said, wanted), passed)


def first_line(text: str) -> str:
    """Return the first line that is not empty, without blanks around it."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def edit_similarity(one: str, other: str) -> float:
    """1 - Levenshtein distance / length of the longer text."""
    longer = max(len(one), len(other))
    return 1.0 - _distance(one, other) / longer if longer else 1.0


def _distance(one: str, other: str) -> int:
    """Insertions, deletions and replacements of characters that turn `one` into `other`."""
    above = list(range(len(other) + 1))
    for row, char in enumerate(one, start=1):
        line = [row]
        for column, wanted in enumerate(other, start=1):
            replaced = above[column - 1] + (char != wanted)
            line.append(min(replaced, above[column] + 1, line[-1] + 1))
        above = line
    return above[-1]
