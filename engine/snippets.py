"""Picks lines of other files about the names around the cursor; the model reads them first.

A class named near the cursor brings along its fields and the heads of its methods.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from itertools import accumulate

import msgspec

from engine.model.prompt import MOST_PATH_CHARS
from engine.model.prompt_window import CHARS_PER_TOKEN
from engine.passage import CursorLines, find_passage
from engine.per_workspace import PerWorkspace
from engine.related_file import LineIndex, RelatedFile, line_index
from engine.request import Buffer, ClosedBuffers, CompletionRequest, Snippet
from engine.text.lines import pieces, steady_before, steady_behind
from engine.text.names import CursorNames

_MOST_CHOICES = 4  # that a workspace keeps between requests
_MOST_KEPT_CHARS = 64_000_000  # in a principal's choices, if all their texts differ
_MOST_PLACES = 2  # cursor places that a workspace keeps, each with most of its file
_MOST_PLACE_CHARS = 500_000  # of a file at the cursor; places in longer files are not kept
_PASSAGE_PART = 0.7  # share of the room for a passage like the text at the cursor
_WHOLE_PART = 0.5  # share of the room left that one whole file may take
_REPOSITORY_PART = 0.5  # share of the room left for files that are not open
_REPOSITORY_TOKENS = 1024  # most tokens of files that are not open
_MOST_CHARS = 4_000_000  # of open files examined, which takes 0.35 s a million
_MOST_INDEXED_CHARS = 2**20  # of a file; an index of the repository holds no longer ones
_MOST_MISSES = 32  # lines that do not fit before the search ends

Count = Callable[[str], int]  # returns the number of a text's tokens


class Neighbours:
    """Chooses lines of open buffers, and keeps choices for a workspace's next request."""

    def __init__(self, count: Count) -> None:
        self._choices = PerWorkspace(lambda: _Choices(count), _MOST_KEPT_CHARS)

    def forget(self, closed: ClosedBuffers) -> None:
        """Drop the texts of workspaces where buffers were closed."""
        self._choices.forget(closed)

    def snippets(self, request: CompletionRequest, room: int) -> Sequence[Snippet]:
        """Return one snippet of each related buffer; with their paths they fit `room` tokens."""
        # A choice keeps only these, as all open buffers may be hundreds of megabytes.
        latest = tuple(_within(request.open_buffers, _MOST_CHARS))
        before, behind = steady_before(request.prefix), steady_behind(request.suffix)
        place_chars = len(before) + len(behind)
        is_kept = place_chars <= _MOST_PLACE_CHARS
        size = _MOST_CHOICES * sum(len(one.text) for one in latest)
        size += _MOST_PLACES * place_chars if is_kept else 0
        choices = self._choices.of(request, size)
        names, lines = (choices.around if is_kept else _around)(before, behind)
        shown = _present(request.repository, request.open_buffers)
        return choices.of(latest, shown, names, lines, room)


class _Choices:
    """The latest choices for one workspace."""

    def __init__(self, count: Count) -> None:
        self._count = count
        self._indexes: dict[str, LineIndex] = {}  # of the texts in the last choice
        self.around = lru_cache(maxsize=_MOST_PLACES)(_around)
        self.of = lru_cache(maxsize=_MOST_CHOICES)(self._choose)

    def _choose(
        self,
        buffers: tuple[Buffer, ...],
        repository: tuple[Snippet, ...],
        names: CursorNames,
        lines: CursorLines,
        room: int,
    ) -> tuple[Snippet, ...]:
        known, texts = self._indexes, {one.text for one in buffers}
        self._indexes = {text: known.get(text) or line_index(text) for text in texts}
        found = [RelatedFile.of(one, self._indexes[one.text], names) for one in buffers]
        files = [file for file in found if file.worth]
        self._take_passage(files, lines, int(room * _PASSAGE_PART))
        room -= sum(file.tokens for file in files)
        most = min(_REPOSITORY_TOKENS, int(room * _REPOSITORY_PART) if files else room)
        taken = self._take_repository(repository, most)
        room -= sum(taken.values())
        for file in files:
            file.leave_out(taken)
        room = self._take_wholes(files, taken, room)
        self._take_lines([file for file in files if not file.is_whole], room)
        wholes = {file.buffer.path for file in files if file.is_whole}
        shown = (one for one in taken if one.path not in wholes)
        opened = (
            Snippet(file.buffer.path, file.text, is_open=True) for file in files if file.taken
        )
        return (*shown, *opened)

    def _take_repository(self, snippets: Sequence[Snippet], room: int) -> dict[Snippet, int]:
        """Take the first snippets that fit, the last one in part; return the tokens of each."""
        chosen = {}
        for snippet in snippets:
            lines = pieces(snippet.text)
            tokens = self._count(f"{snippet.path}\n\n")
            taken = 0
            while taken < len(lines) and (more := tokens + self._count(lines[taken])) <= room:
                tokens, taken = more, taken + 1
            if taken:
                chosen[msgspec.structs.replace(snippet, text="".join(lines[:taken]))] = tokens
                room -= tokens
            if taken < len(lines):
                break
        return chosen

    def _take_wholes(
        self, files: list[RelatedFile], taken: Mapping[Snippet, int], room: int
    ) -> int:
        """Take whole files that fit, in place of parts taken before; return the room left."""
        files.sort(key=lambda file: -file.worth)
        for number, file in enumerate(files):
            path = file.buffer.path
            shown = sum(tokens for one, tokens in taken.items() if one.path == path)
            part = _WHOLE_PART if number < len(files) - 1 else 1.0
            most = int(room * part) + file.tokens + shown
            text = file.name + file.buffer.text
            if self._may_fit(text, most) and (whole := self._count(text)) <= most:
                room -= whole - file.tokens - shown
                file.taken, file.is_whole = set(range(len(file.worths))), True
        return room

    def _take_passage(self, files: Sequence[RelatedFile], cursor: CursorLines, room: int) -> None:
        found = [(file, one) for file in files if (one := find_passage(file.buffer.text, cursor))]
        found.sort(key=lambda one: (-one[1].agreeing, -one[0].worth, one[0].buffer.path))
        if not found:
            return
        file, passage = found[0]
        is_common = [one.agreeing for _, one in found].count(passage.agreeing) > 1
        if is_common and not passage.is_enclosed:
            return  # a licence or the usual imports, which anything may follow
        tokens = self._count(file.name)
        for line in passage.lines:
            text = file.line(line)
            if not self._may_fit(text, room) or (tokens := tokens + self._count(text)) > room:
                return
            file.taken.add(line)
            file.tokens = tokens

    def _may_fit(self, text: str, tokens: int) -> bool:
        return len(text) <= tokens * CHARS_PER_TOKEN

    def _take_lines(self, files: Sequence[RelatedFile], room: int) -> None:
        """Take the best lines of all files, each with the lines that open its blocks."""
        ranked = [(worth, file, line) for file in files for worth, line in file.lines()]
        ranked.sort(key=lambda one: -one[0])
        misses = 0
        for _, file, line in ranked:
            wanted = [one for one in file.index.block_of(line) if one not in file.taken]
            texts = [file.line(one) for one in wanted]
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


def _around(before: str, behind: str) -> tuple[CursorNames, CursorLines]:
    above, below = before.split("\n")[:-1], behind.split("\n")[1:]
    return CursorNames.around(above, below), CursorLines.around(above, below)


def _within(buffers: Sequence[Buffer], most_chars: int) -> list[Buffer]:
    """The first buffers of `most_chars` together, without those whose paths are too long."""
    buffers = [one for one in buffers if len(one.path) <= MOST_PATH_CHARS]
    ends = accumulate(len(buffer.text) for buffer in buffers)
    return [one for one, end in zip(buffers, ends, strict=True) if end <= most_chars]


def _present(snippets: Sequence[Snippet], buffers: Sequence[Buffer]) -> tuple[Snippet, ...]:
    """Drop lines of open files that their texts, perhaps not saved yet, do not have."""
    texts = {buffer.path: buffer.text for buffer in buffers}
    held: dict[str, frozenset[str]] = {}  # lines by path, of which there may be several snippets
    present = []
    for one in snippets:
        if not one.text or len(one.path) > MOST_PATH_CHARS:
            continue
        text = one.text
        if one.path in texts:
            if len(texts[one.path]) > _MOST_INDEXED_CHARS:  # slow to split at each key
                continue
            if one.path not in held:
                held[one.path] = frozenset(pieces(texts[one.path]))
            text = "".join(line for line in pieces(text) if line in held[one.path])
        if text:
            present.append(msgspec.structs.replace(one, text=text))
    return tuple(present)
