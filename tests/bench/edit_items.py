"""Edits to generate: a document, the task and what the outcome is worth."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from engine.bench.measured import request_for
from engine.bench.task_sets import SetItem
from engine.common_start import common_ends
from engine.request import CompletionRequest, EditOutcome, EditTask, PastEdit
from lsp_server.edits.next_edits import SURE
from tests.bench.recorded_edits import RecordedEdit, recorded_edits
from tests.bench.scoring import edit_similarity

_PLACE = re.compile(r"(\d+):(\d+)")
_PAST = re.compile(
    r"<\|file\|> (.*)\n<\|old\|>\n((?:(?!<\|).*\n)*)<\|new\|>\n((?:(?!<\|).*\n)*)", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EditItem(SetItem):
    """An edit to ask a model for. `kind` groups the figures."""

    kind: str
    task: EditTask

    def request(self, decoding: CompletionRequest) -> CompletionRequest:
        """Return the request, with the options of a run."""
        return replace(request_for(self, decoding), edit=self.task)

    def judged(self, outcome: EditOutcome) -> dict[str, float]:
        """Return figures from 0 to 1, whose means are reported by name."""
        raise NotImplementedError

    def changed(self, outcome: EditOutcome) -> list[str]:
        """The document's lines after the edit."""
        lines = (self.prefix + self.suffix).split("\n")
        return [*lines[: outcome.first], *outcome.lines, *lines[outcome.end :]]


@dataclass(frozen=True, slots=True, kw_only=True)
class NextEdit(EditItem):
    """A cursor after edits. `expected` is the document after the right next edit, "" for none."""

    expected: str

    def judged(self, outcome: EditOutcome) -> dict[str, float]:
        """`shown` is what the language server would show; the other figures judge any change."""
        shown = not outcome.refusal and outcome.probability >= SURE
        if not self.expected:
            return {"quiet": not shown}
        old = (self.prefix + self.suffix).rstrip()
        new = old if outcome.refusal else "\n".join(self.changed(outcome)).rstrip()
        exact, similarity = new == self.expected, _change_similarity(old, new, self.expected)
        return {"exact": exact, "similarity": similarity, "shown": shown}


def _change_similarity(old: str, new: str, expected: str) -> float:
    """Return the share of the way from the old text to the expected one, by Levenshtein distance."""

    def missing(text: str) -> float:
        return (1 - edit_similarity(text, expected)) * max(len(text), len(expected))

    return max(0.0, 1 - missing(new) / missing(old))


@dataclass(frozen=True, slots=True)
class Scenario:
    """Next edits to generate, and what other models answered to the same buffer and history."""

    items: list[NextEdit]
    recorded: list[list[RecordedEdit]]

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> "Scenario":
        """Read a line of a set."""
        meta, sections = row["meta"], row["sections"]
        text = sections["buffer.txt"]
        history = tuple(_history(sections.get("history", ""), text))
        places = [(meta["row"], meta["col"]), *_PLACE.findall(meta.get("cursor-positions", ""))]
        if meta.get("modified") == "false":  # then no client asks
            places = []
        items = []
        for row_number, column in places:
            lines = text.split("\n")[: int(row_number)]
            prefix = "\n".join([*lines[:-1], lines[-1][: int(column)]])
            items.append(
                NextEdit(
                    id=f"{row['id']}:{row_number}:{column}",
                    kind="next edit",
                    path=meta["file"],
                    prefix=prefix,
                    suffix=text[len(prefix) :],
                    task=EditTask(history=history),
                    expected=sections.get("expected", "").rstrip(),
                )
            )
        return cls(items, [*recorded_edits(row["recordings"])])


def _history(told: str, text: str) -> Iterator[PastEdit]:
    """Yield past edits, each where its new lines stand in the text."""
    for path, *both in _PAST.findall(told):
        old, new = (one.removesuffix("\n").split("\n") for one in both)
        start, tail = common_ends(old, new)
        above = text[: max(0, f"\n{text}".find("\n" + both[1]))].count("\n")
        yield PastEdit(
            path=path,
            line=above + start,
            old=tuple(old[start : len(old) - tail]),
            new=tuple(new[start : len(new) - tail]),
            above=tuple(new[:start]),
            below=tuple(new[len(new) - tail :]),
        )
