"""How close a completion is to the true text: exact match, similarity, and whether it runs."""

import io
import keyword
import re
import tokenize
from dataclasses import dataclass
from itertools import accumulate

from tests.bench.sandbox import runs_through
from tests.bench.tasks import CrossfileTask, FimTask

_IDENTIFIER = re.compile(r"[^\W\d]\w*")


@dataclass(frozen=True, slots=True)
class Score:
    """The score of a hole's text. `passed` is None for a task without a check."""

    is_exact: bool
    edit_similarity: float  # 0 to 1
    passed: bool | None


@dataclass(frozen=True, slots=True)
class CrossfileScore:
    """The score of a text whose names are defined in another file; white space is ignored."""

    is_exact: bool
    similarity: float  # 0 to 1: twice the longest common subsequence over both lengths
    has_identifiers: bool  # has all of them, in order


def score(task: FimTask, completion: str) -> Score:
    """Score by the first non-empty line if the set asks for one line, else by the whole text.

    Blanks around the text do not count for the match; they do for the program.
    """
    said, passed, wanted = first_line(completion), None, task.middle.strip()
    if task.check is not None:
        said, passed = completion.strip(), runs_through(task.program(completion))
    return Score(said == wanted, edit_similarity(said, wanted), passed)


def crossfile_score(task: CrossfileTask, output: str) -> CrossfileScore:
    said, wanted = _squeezed(cut(task, output)), _squeezed(task.target)
    return CrossfileScore(
        is_exact=said == wanted,
        similarity=_similarity(said, wanted),
        has_identifiers=_identifiers(said) == _identifiers(wanted),
    )


def cut(task: CrossfileTask, output: str) -> str:
    """Return the part to judge; the rule does not look at the target."""
    if task.stratum == "random_line":
        return output.split("\n", maxsplit=1)[0]
    return first_statement(task.prefix, output)


def first_statement(prefix: str, output: str) -> str:
    """Cut at the first line end without an open bracket, counted from the file's start."""
    lines = accumulate(output.split("\n"), lambda head, line: f"{head}\n{line}")
    return next((head for head in lines if _depth(prefix + head) <= 0), output)


def first_line(text: str) -> str:
    """Return the first line that is not empty, without blanks around it."""
    return next((line.strip() for line in text.split("\n") if line.strip()), "")


def edit_similarity(one: str, other: str) -> float:
    """Return 1 - Levenshtein distance / length of the longer text."""
    longer = max(len(one), len(other))
    return 1.0 - _distance(one, other, replacing=1) / longer if longer else 1.0


def _similarity(one: str, other: str) -> float:
    """Return the similarity; replacing costs two edits, so both keep a common subsequence."""
    total = len(one) + len(other)
    return (total - _distance(one, other, replacing=2)) / total if total else 1.0


def _distance(one: str, other: str, replacing: int) -> int:
    """Return the cost of making `other` of `one`: 1 to insert or delete, `replacing` to replace."""
    above = list(range(len(other) + 1))
    for row, char in enumerate(one, start=1):
        line = [row]
        for column, wanted in enumerate(other, start=1):
            replaced = above[column - 1] + replacing * (char != wanted)
            line.append(min(replaced, above[column] + 1, line[-1] + 1))
        above = line
    return above[-1]


def _depth(text: str) -> int:
    level = 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.OP:
                level += (token.string in "([{") - (token.string in ")]}")
    except (tokenize.TokenError, SyntaxError):
        pass  # the text ends in the middle of a statement
    return level


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _identifiers(text: str) -> list[str]:
    return [name for name in _IDENTIFIER.findall(text) if not keyword.iskeyword(name)]
