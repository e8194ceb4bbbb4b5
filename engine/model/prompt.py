"""Turn a cursor in a text into the token ids of a fill-in-the-middle prompt.

Layout `psm` is the model's own. Layout `line` adds token healing: it drops the piece cut at the
cursor, whose tokens may differ from those of the whole word, and the answer must begin with it. If
the model reads the prefix first, `line` also moves the current line behind the middle token, and
the lines above it back to a multiple of 16, but for the first 16 lines. So typing changes only the
end of the prompt, and its suffix moves only every 16 lines. Where reading is slow, `Prompt.grown`
puts that off. In training, too, a middle begins anywhere.

Other files precede this one as in training. Seed-Coder publishes no format, but it was evaluated on
CrossCodeEval and RepoEval, which name other files in comments.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from typing import Self

from engine.config import Layout
from engine.model.fim import FimFormat
from engine.model.prompt_window import TextCodec, Window, cut_window, neighbour_room
from engine.model.tokenizer import encodable
from engine.request import Snippet
from engine.text.lines import STEADY_LINES

Snippets = Callable[[int], Sequence[Snippet]]  # returns snippets that fit so many tokens
_REPOSITORY = "repository\n"  # a neutral name: the format requires one
_SIGNS = {  # comment sign by file extension
    **dict.fromkeys(("py", "pyi", "rb", "sh", "bash", "zsh", "r", "pl", "ex", "jl", "ipynb"), "#"),
    **dict.fromkeys(("yaml", "yml", "toml", "tf", "nix", "cmake", "mk", "ps1"), "#"),
    **dict.fromkeys(("lua", "sql", "hs", "elm", "ada"), "--"),
}
_COMMON_SIGN = "//"
# A trailing word with the blank or single sign before it, which may share its token (`(item`,
# `.append`). Or a run of punctuation with one blank, or trailing blanks.
_PIECE = re.compile(r"(?:(?:(?<![^\w\t\r\n])[^\w\s]|[ \t])?\w{1,48}| ?[^\w\s]{1,48}|[ \t]+)\Z")
_CONTEXT_CHARS = 1024  # before the cursor, for drafts; the pool looks at the last 64 tokens
_FEW_CHARS = 200  # a text this short does not show its language, so the path is added
MOST_PATH_CHARS = 1000  # a longer path is left out: it could take a quarter of a usual prompt
_FIM_TOKENS = 4  # prefix, suffix and middle token, and a lead of the prefix

_Neighbour = tuple[Snippet, list[int]]  # another file, and its tokens in the prompt


@dataclass(frozen=True, slots=True)
class Frame:
    """What stays of a prompt while text is typed at its end: the tokens around that text."""

    head: tuple[int, ...]
    lead: str  # before the text
    start: int  # of the text, in characters of the prefix
    tail: tuple[int, ...]

    def filled(self, tokenizer: TextCodec, prefix: str) -> tuple[int, ...]:
        """Return all tokens, for a `prefix` that is the same up to `start`."""
        return (*self.head, *tokenizer.encode(self.lead + prefix[self.start :]), *self.tail)


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, and the text before the cursor as drafting and token healing need it."""

    ids: tuple[int, ...]
    dropped: bytes  # `partial` or empty; the answer must begin with it
    partial: bytes  # text before the cursor, whose tokens may change once more text follows
    context_ids: tuple[int, ...]  # tokens of up to 1,024 characters before `partial`
    neighbours: tuple[str, ...] = ()  # paths of included files that are open
    neighbour_tokens: int = 0
    repository: tuple[str, ...] = ()  # paths of included files that are not open
    repository_tokens: int = 0
    frame: Frame | None = None  # None if its text cannot grow

    def grown(self, tokenizer: TextCodec, frame: Frame, prefix: str) -> Self:
        """Return this prompt, whose `frame` it is, for a prefix that is the same up to its text."""
        partial = cut_piece(prefix)
        head = prefix.removesuffix(partial)
        return replace(
            self,
            ids=frame.filled(tokenizer, head),
            dropped=_bytes(partial),
            partial=_bytes(partial),
            context_ids=tuple(tokenizer.encode(_tail(head))),
        )


def build_prompt(
    tokenizer: TextCodec,
    fim: FimFormat,
    prefix: str,
    suffix: str,
    layout: Layout,
    budget_tokens: int,
    *,
    path: str = "",
    snippets: Snippets = lambda _room: (),
) -> Prompt:
    """Lay out the text around a cursor in at most `budget_tokens` tokens; far text is left out."""
    path = path if len(path) <= MOST_PATH_CHARS else ""
    named = bool(path) and (fim.family.names_file or len(prefix) + len(suffix) < _FEW_CHARS)
    room = neighbour_room(tokenizer, prefix, suffix, budget_tokens)
    neighbours = _chosen_neighbours(tokenizer, fim, path, snippets, room)
    files = _header(tokenizer, fim, path, neighbours, named=named)
    if len(files) > budget_tokens // 2 and not neighbours:
        files = []
    partial = cut_piece(prefix)
    head = prefix.removesuffix(partial)
    dropped = partial if layout == "line" else ""
    room = budget_tokens - len(tokenizer.start_ids) - _FIM_TOKENS - len(files)
    before = prefix.removesuffix(dropped)
    window = cut_window(tokenizer, before, suffix, room, suffix_first=fim.family.suffix_first)
    frame = _frame(tokenizer, fim, files, window, layout, _num_above(prefix))
    ids = frame.filled(tokenizer, window.prefix)
    frame = replace(frame, start=frame.start + len(before) - len(window.prefix))
    may_grow = layout == "line" and before.endswith(window.prefix)
    opened, num_opened = _counted(neighbours, is_open=True)
    others, num_others = _counted(neighbours, is_open=False)
    return Prompt(
        ids=ids,
        dropped=_bytes(dropped),
        partial=_bytes(partial),
        context_ids=tuple(tokenizer.encode(_tail(head))),
        neighbours=opened,
        neighbour_tokens=num_opened,
        repository=others,
        repository_tokens=num_others,
        frame=frame if may_grow else None,
    )


def cut_piece(prefix: str) -> str:
    """Return the piece of the current line that a token boundary at the cursor may cut."""
    found = _PIECE.search(prefix, max(prefix.rfind("\n") + 1, len(prefix) - 4096))
    return found[0] if found else ""


def _counted(neighbours: Sequence[_Neighbour], *, is_open: bool) -> tuple[tuple[str, ...], int]:
    some = [(snippet.path, len(ids)) for snippet, ids in neighbours if snippet.is_open == is_open]
    return tuple(dict(some)), sum(count for _, count in some)


def _frame(
    tokenizer: TextCodec,
    fim: FimFormat,
    files: list[int],
    window: Window,
    layout: Layout,
    num_above: int,
) -> Frame:
    """Lay out all but the text at the end; `start` counts from the window's."""
    after = (fim.suffix_id, *window.suffix_ids)
    middle = () if fim.middle_id is None else (fim.middle_id,)
    lead, first = fim.family.prefix_lead, tokenizer.start_ids
    if fim.family.suffix_first:
        is_inner = fim.family.comments_paths
        around = (*after, fim.prefix_id, *files) if is_inner else (*files, *after, fim.prefix_id)
        return Frame((*first, *around), lead, 0, middle)
    start = len(window.prefix) if layout == "psm" else _line_start(window.prefix, num_above)
    before = tokenizer.encode(lead + window.prefix[:start])
    return Frame((*first, *files, fim.prefix_id, *before, *after, *middle), "", start, ())


def _num_above(prefix: str) -> int:
    """Return how many lines above the cursor's line move behind the middle token."""
    row = prefix.count("\n")
    return row % STEADY_LINES if row >= STEADY_LINES else 0


def _line_start(text: str, num_above: int) -> int:
    head, *lines = text.rsplit("\n", num_above + 1)
    return len(head) + 1 if len(lines) > num_above else 0


def _tail(text: str) -> str:
    if len(text) <= _CONTEXT_CHARS:
        return text
    start = text.find("\n", len(text) - _CONTEXT_CHARS, len(text) - 1) + 1
    return text[start or len(text) - _CONTEXT_CHARS :]


def _bytes(text: str) -> bytes:
    return encodable(text).encode()


def _chosen_neighbours(
    tokenizer: TextCodec, fim: FimFormat, path: str, snippets: Snippets, room: int
) -> list[_Neighbour]:
    """Return open files by path, as their rank changes with each key, then others, best last."""
    if not fim.shows_files:
        return []
    room -= len(_header(tokenizer, fim, path, [], named=True))
    opened: list[_Neighbour] = []
    others: list[_Neighbour] = []
    for snippet in snippets(room):
        ids = _file(tokenizer, fim, snippet.path, snippet.text)
        if len(ids) <= room:
            room -= len(ids)
            (opened if snippet.is_open else others).append((snippet, ids))
    return [*sorted(opened, key=lambda one: one[0].path), *reversed(others)]


def _header(
    tokenizer: TextCodec,
    fim: FimFormat,
    path: str,
    neighbours: Sequence[_Neighbour],
    *,
    named: bool,
) -> list[int]:
    """Return the other files as in training: repository, files, and this file's path."""
    if not fim.shows_files or not (neighbours or named):
        return []
    start = [] if fim.repository_id is None else [fim.repository_id, *tokenizer.encode(_REPOSITORY)]
    own = _file(tokenizer, fim, path, "")
    return [*start, *chain.from_iterable(ids for _, ids in neighbours), *own]


def _file(tokenizer: TextCodec, fim: FimFormat, path: str, text: str) -> list[int]:
    if fim.file_id is not None:
        return [fim.file_id, *tokenizer.encode(f"{path}\n{text}")]
    end = "" if not text or text.endswith("\n") else "\n"
    sign = _SIGNS.get(PurePosixPath(path).suffix.removeprefix(".").lower(), _COMMON_SIGN)
    return tokenizer.encode(f"{sign} {path}\n{text}{end}")
