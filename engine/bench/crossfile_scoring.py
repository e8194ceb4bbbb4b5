"""How near a completion comes to a text whose names stand in another file."""

import io
import keyword
import re
import tokenize
from dataclasses import dataclass
from itertools import accumulate

from engine.bench.task_sets import CrossfileTask

_IDENTIFIER = re.compile(r"[^\W\d]\w*")
_KEYWORD_ARGUMENT = re.compile(r"([^\W\d]\w*)\s*=(?!=)")


@dataclass(frozen=True, slots=True)
class CrossfileScore:
    """One completion's score; white space does not count."""

    is_exact: bool
    is_first_line_exact: bool
    similarity: float  # 0 to 1: twice the longest common subsequence over both lengths
    has_identifiers: bool  # all of them, in their order
    has_lead: bool  # the first identifier; of a call's arguments the set of their names


def crossfile_score(task: CrossfileTask, output: str) -> CrossfileScore:
    """Score what was written up to the end of the first line, or statement."""
    said, wanted = _squeezed(cut(task, output)), _squeezed(task.target)
    return CrossfileScore(
        is_exact=said == wanted,
        is_first_line_exact=_first_line(output) == _first_line(task.target),
        similarity=_similarity(said, wanted),
        has_identifiers=_identifiers(said) == _identifiers(wanted),
        has_lead=_lead(task, said) == _lead(task, wanted),
    )


def cut(task: CrossfileTask, output: str) -> str:
    """Return the part that is judged; the rule does not look at the target."""
    if task.stratum == "random_line":
        return output.split("\n", maxsplit=1)[0]
    return first_statement(task.prefix, output)


def first_statement(prefix: str, output: str) -> str:
    """Cut at the first line end at which no bracket is open, counted from the file's start."""
    lines = accumulate(output.split("\n"), lambda head, line: f"{head}\n{line}")
    return next((head for head in lines if _depth(prefix + head) <= 0), output)


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


def _first_line(text: str) -> str:
    return next((_squeezed(line) for line in text.split("\n") if line.strip()), "")


def _identifiers(text: str) -> list[str]:
    return [name for name in _IDENTIFIER.findall(text) if not keyword.iskeyword(name)]


def _lead(task: CrossfileTask, text: str) -> object:
    if task.kind == "argument":
        return set(_KEYWORD_ARGUMENT.findall(text))
    return _identifiers(text)[:1]


def _similarity(one: str, other: str) -> float:
    if not (one or other):
        return 1.0
    above = [0] * (len(other) + 1)
    for char in one:
        row = [0]
        for column, wanted in enumerate(other):
            row.append(above[column] + 1 if char == wanted else max(row[-1], above[column + 1]))
        above = row
    return 2 * above[-1] / (len(one) + len(other))
