"""Picks lines of other files about the names around the cursor; the model reads them first.

Of files that are not open come snippets that the client has chosen: they have a part of the room.

A line is worth what it says about those names; a rare name counts more than a frequent one. It is
also worth half of what the line is worth that opens its block: a class that is named near the
cursor brings its fields and the heads of its methods along.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import sqrt

from engine.line_index import LineIndex, cached_line_index, forget_line_indexes
from engine.names import CursorNames, steady_before, steady_behind
from engine.passage import CursorLines, find_passage
from engine.request import Buffer, CompletionRequest, Snippet

_MOST_CHOICES = 16  # that are kept from one request to the next
_IMPORTED = 2.0  # times the worth of what the file at the cursor imports
_PASSAGE_PART = 0.7  # of the room, that a passage like the text at the cursor may take
_WHOLE_PART = 0.5  # of the room left, that a file may take as a whole
_CHARS_PER_TOKEN = 6  # above the average of code: what can hardly fit is not encoded at all
_REPOSITORY_PART = 0.5  # of the room left, that files may take which are not open
_REPOSITORY_TOKENS = 1024  # and at most
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_MOST_MISSES = 32  # lines that do not fit, before no further one is tried

Count = Callable[[str], int]


class Neighbours:
    """Chooses from the open buffers what fits a prompt; `count` tells the tokens of a text."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._chosen = lru_cache(maxsize=_MOST_CHOICES)(self._choose)

    def forget(self) -> None:
        """Drop all cached texts."""
        self._chosen.cache_clear()
        forget_line_indexes()

    def snippets(self, request: CompletionRequest, room: int) -> Sequence[Snippet]:
        """Return one snippet of each related buffer; with their paths they fit `room` tokens."""
        around = steady_before(request.prefix), steady_behind(request.suffix)
        names, lines = CursorNames.around(*around), CursorLines.around(*around)
        return self._chosen(request.open_buffers, request.repository, names, lines, room)

    def _choose(
        self,
        buffers: tuple[Buffer, ...],
        repository: tuple[Snippet, ...],
        names: CursorNames,
        lines: CursorLines,
        room: int,
    ) -> tuple[Snippet, ...]:
        repository = _present(repository, buffers)
        files = [file for buffer in buffers if (file := _File.of(buffer, names)).worth]
        self._take_passage(files, lines, int(room * _PASSAGE_PART))
        room -= sum(file.tokens for file in files)
        most = min(_REPOSITORY_TOKENS, int(room * _REPOSITORY_PART) if files else room)
        chosen = self._take_repository(repository, most)
        room -= sum(self._tokens(one) for one in chosen)
        for file in files:
            file.leave_out(chosen)
        files.sort(key=lambda file: -file.worth)
        for number, file in enumerate(files):
            most = int(room * (_WHOLE_PART if number < len(files) - 1 else 1.0)) + file.tokens
            text = file.name + file.buffer.text
            if self._may_fit(text, most) and (whole := self._count(text)) <= most:
                room -= whole - file.tokens
                file.taken, file.is_whole = set(range(file.index.num_lines)), True
        self._take_lines([file for file in files if not file.is_whole], room)
        opened = (Snippet(file.buffer.path, file.text) for file in files if file.taken)
        return (*chosen, *opened)

    def _take_repository(self, snippets: Sequence[Snippet], room: int) -> list[Snippet]:
        """Take the best of them, the last one as far as its lines find room."""
        chosen = []
        for snippet in snippets:
            lines = _LINE.findall(snippet.text)
            tokens = self._count(f"{snippet.path}\n\n")
            taken = 0
            while taken < len(lines) and (more := tokens + self._count(lines[taken])) <= room:
                tokens, taken = more, taken + 1
            if taken:
                chosen.append(replace(snippet, text="".join(lines[:taken])))
                room -= tokens
            if taken < len(lines):
                break
        return chosen

    def _tokens(self, snippet: Snippet) -> int:
        """At least as many as the prompt has of it: lines alone take no fewer than together."""
        lines = _LINE.findall(snippet.text)
        return self._count(f"{snippet.path}\n\n") + sum(map(self._count, lines))

    def _take_passage(self, files: Sequence["_File"], cursor: CursorLines, room: int) -> None:
        """Take the passage that reads most like the text around the cursor."""
        found = [(file, one) for file in files if (one := find_passage(file.buffer.text, cursor))]
        found.sort(key=lambda one: (-one[1].agreeing, -one[0].worth, one[0].buffer.path))
        if not found:
            return
        file, passage = found[0]
        is_common = [one.agreeing for _, one in found].count(passage.agreeing) > 1
        if is_common and not passage.is_enclosed:
            return  # a licence, the usual imports: what follows them is anything
        tokens = self._count(file.name)
        for line in passage.lines:
            text = file.index.line(line, file.buffer.text)
            if not self._may_fit(text, room) or (tokens := tokens + self._count(text)) > room:
                return
            file.taken.add(line)
            file.tokens = tokens

    def _may_fit(self, text: str, tokens: int) -> bool:
        return len(text) <= tokens * _CHARS_PER_TOKEN

    def _take_lines(self, files: Sequence["_File"], room: int) -> None:
        """Take the best lines of all files, each with those in whose blocks it stands."""
        ranked = [(worth, file, line) for file in files for worth, line in file.lines()]
        ranked.sort(key=lambda one: -one[0])
        misses = 0
        for _, file, line in ranked:
            wanted = [one for one in file.index.block_of(line) if one not in file.taken]
            texts = [file.index.line(one, file.buffer.text) for one in wanted]
            if not file.taken:
                texts.append(file.name)
            tokens = sum(map(self._count, texts))
            if tokens <= room:
                file.taken.update(wanted)
                room -= tokens
            else:
                misses += 1
                if misses == _MOST_MISSES:
                    return


@dataclass(slots=True, eq=False)
class _File:
    """A buffer, what its best line is worth, and the lines that are taken of it."""

    buffer: Buffer
    index: LineIndex
    worths: Sequence[float]  # of its lines
    worth: float
    taken: set[int] = field(default_factory=set)
    tokens: int = 0  # of the passage that is taken, and of the name before it
    is_whole: bool = False

    @classmethod
    def of(cls, buffer: Buffer, names: CursorNames) -> "_File":
        index = cached_line_index(buffer.text)
        factor = _IMPORTED if names.imports(buffer.path) else 1.0
        worths = [factor * worth for worth in index.worths([*names.near, *names.imported])]
        return cls(buffer, index, worths, max(worths, default=0.0))

    def leave_out(self, shown: Sequence[Snippet]) -> None:
        """Lines that are shown already are worth nothing."""
        known = {
            line
            for one in shown
            if one.path == self.buffer.path
            for line in _LINE.findall(one.text)
        }
        if known:
            lines = (self.index.line(n, self.buffer.text) for n in range(self.index.num_lines))
            pairs = zip(self.worths, lines, strict=True)
            self.worths = [0.0 if line in known else worth for worth, line in pairs]

    @property
    def name(self) -> str:
        """What stands before it, of the length of its path and the token that begins a file."""
        return f"{self.buffer.path}\n\n"

    @property
    def text(self) -> str:
        return "".join(self.index.line(line, self.buffer.text) for line in sorted(self.taken))

    def lines(self) -> list[tuple[float, int]]:
        """What lines are worth for their length, and their numbers."""
        cuts = self.index.cuts
        return [
            (worth / sqrt(cuts[line + 1] - cuts[line]), line)
            for line, worth in enumerate(self.worths)
            if worth
        ]


def _present(snippets: Sequence[Snippet], buffers: Sequence[Buffer]) -> tuple[Snippet, ...]:
    """What is shown of a file that is open must be in its text, which may not be saved yet."""
    texts = {buffer.path: buffer.text for buffer in buffers}
    present = []
    for one in snippets:
        text = one.text
        if one.path in texts:
            held = set(_LINE.findall(texts[one.path]))
            text = "".join(line for line in _LINE.findall(text) if line in held)
        if text:
            present.append(replace(one, text=text))
    return tuple(present)
