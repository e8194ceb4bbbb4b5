"""A cursor in a text becomes the token ids of a fill-in-the-middle prompt.

Layout `psm` is the model's own: prefix, suffix, middle token, or the suffix first. Layout `line`
leaves out the piece cut at the cursor, and the answer must begin with it (token healing), as its
tokens would differ from those of the whole word. Where the prefix stands first, it also puts the
current line up to the cursor behind the middle token, and the lines above it back to one whose
number is a multiple of 16, the file's first ones left out. So what is typed, Enter included, changes
the end of the prompt only, and the suffix is read again at every 16th line. In training, too, a
middle begins anywhere. Where the suffix stands first, the prefix ends the prompt anyhow.

Other files stand before this one as the model saw them in training. Qwen and Mellum have tokens that
lead in a file. Of Seed-Coder nothing is published; it was measured on CrossCodeEval and RepoEval,
which name other files in comments. So here each stands inside the prefix, below a comment with its
path: its documents begin with the suffix token.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath

from engine.config import Layout
from engine.model.fim import FimFormat
from engine.model.prompt_window import TextCodec, Window, cut_window, neighbour_room
from engine.model.tokenizer import encodable
from engine.request import Snippet
from engine.text.lines import STEADY_LINES

Snippets = Callable[[int], Sequence[Snippet]]  # those that fit so many tokens
_REPOSITORY = "repository\n"  # a name that says nothing; its tokens are part of the layout
_SIGNS = {  # of a comment, by what a path ends in
    **dict.fromkeys(("py", "pyi", "rb", "sh", "bash", "zsh", "r", "pl", "ex", "jl", "ipynb"), "#"),
    **dict.fromkeys(("yaml", "yml", "toml", "tf", "nix", "cmake", "mk", "ps1"), "#"),
    **dict.fromkeys(("lua", "sql", "hs", "elm", "ada"), "--"),
}
_COMMON_SIGN = "//"
# The trailing word with the blank or the single sign before it (`(item`, `.append`, a tab before
# `defer` may be one token with it), a run of punctuation with one blank, or trailing blanks.
_PIECE = re.compile(r"(?:(?:(?<![^\w\t\r\n])[^\w\s]|[ \t])?\w{1,48}| ?[^\w\s]{1,48}|[ \t]+)\Z")
_CONTEXT_CHARS = 1024
_FEW_CHARS = 200  # so little text does not show the model its language
MOST_PATH_CHARS = 1000
_FIM_TOKENS = 4  # prefix, suffix and middle token, and a lead of the prefix


@dataclass(frozen=True, slots=True)
class _Neighbour:
    path: str
    ids: tuple[int, ...]
    is_open: bool


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, and what drafting and healing need to know of the cursor.

    `partial` is the text before the cursor whose tokens may change once more text follows.
    `context_ids` are the tokens of the text before `partial`, its last hundreds of characters.
    The answer must begin with `dropped`, which is `partial` or nothing. `neighbours` are the paths
    of the open files that stand before this one, `repository` those of files that are not open.
    """

    ids: tuple[int, ...]
    dropped: bytes
    partial: bytes
    context_ids: tuple[int, ...]
    neighbours: tuple[str, ...] = ()
    neighbour_tokens: int = 0
    repository: tuple[str, ...] = ()
    repository_tokens: int = 0


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
    """Lay out the text around a cursor in at most `budget_tokens` tokens.

    Far text is left out, three quarters of the budget going to the prefix. `snippets` is asked for
    as many tokens as the file leaves free, at least a third of the budget; what they do not take
    is the file's. A name that is longer than any is left out.
    """
    path = path if len(path) <= MOST_PATH_CHARS else ""
    named = bool(path) and (fim.names_file or len(prefix) + len(suffix) < _FEW_CHARS)
    room = neighbour_room(tokenizer, prefix, suffix, budget_tokens)
    neighbours = _chosen_neighbours(tokenizer, fim, path, snippets, room)
    files = _header(tokenizer, fim, path, neighbours, named=named)
    if len(files) > budget_tokens // 2 and not neighbours:
        files = []
    partial = cut_piece(prefix)
    head = prefix.removesuffix(partial)
    dropped = partial if layout == "line" else ""
    room = budget_tokens - len(tokenizer.start_ids) - _FIM_TOKENS - len(files)
    window = cut_window(
        tokenizer, prefix.removesuffix(dropped), suffix, room, suffix_first=fim.suffix_first
    )
    laid_out = _lay_out(tokenizer, fim, files, window, layout, _num_above(prefix))
    opened, others = (
        [one for one in neighbours if one.is_open == state] for state in (True, False)
    )
    return Prompt(
        ids=(*tokenizer.start_ids, *laid_out),
        dropped=_bytes(dropped),
        partial=_bytes(partial),
        context_ids=tuple(tokenizer.encode(_tail(head))),
        neighbours=_paths(opened),
        neighbour_tokens=_num_tokens(opened),
        repository=_paths(others),
        repository_tokens=_num_tokens(others),
    )


def cut_piece(prefix: str) -> str:
    """Return the piece of the current line that a token boundary at the cursor may cut."""
    found = _PIECE.search(prefix, max(prefix.rfind("\n") + 1, len(prefix) - 4096))
    return found[0] if found else ""


def _paths(neighbours: Sequence[_Neighbour]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one.path for one in neighbours))


def _num_tokens(neighbours: Sequence[_Neighbour]) -> int:
    return sum(len(one.ids) for one in neighbours)


def _lay_out(
    tokenizer: TextCodec,
    fim: FimFormat,
    files: list[int],
    window: Window,
    layout: Layout,
    num_above: int,
) -> tuple[int, ...]:
    after = (fim.suffix_id, *window.suffix_ids)
    middle = () if fim.middle_id is None else (fim.middle_id,)
    if fim.suffix_first:
        before = tokenizer.encode(fim.prefix_lead + window.prefix)
        if fim.comments_paths:
            return (*after, fim.prefix_id, *files, *before, *middle)
        return (*files, *after, fim.prefix_id, *before, *middle)
    start = len(window.prefix) if layout == "psm" else _line_start(window.prefix, num_above)
    before = tokenizer.encode(fim.prefix_lead + window.prefix[:start])
    line = tokenizer.encode(window.prefix[start:])
    return (*files, fim.prefix_id, *before, *after, *middle, *line)


def _num_above(prefix: str) -> int:
    """How many lines above the cursor's the middle begins with."""
    row = prefix.count("\n")
    return row % STEADY_LINES if row >= STEADY_LINES else 0


def _line_start(text: str, num_above: int) -> int:
    end = len(text)
    for _ in range(num_above + 1):
        end = text.rfind("\n", 0, end)
        if end < 0:
            return 0
    return end + 1


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
    """Return open files by their paths, as their worth changes with each key, then the others.

    Of the repository's files the best stands next to the cursor's file.
    """
    if not fim.shows_files:
        return []
    room -= len(_header(tokenizer, fim, path, [], named=True))
    opened: list[_Neighbour] = []
    others: list[_Neighbour] = []
    for snippet in snippets(room):
        ids = tuple(_file(tokenizer, fim, snippet.path, snippet.text))
        one = _Neighbour(snippet.path, ids, snippet.is_open)
        if len(ids) <= room:
            room -= len(ids)
            (opened if one.is_open else others).append(one)
    return [*sorted(opened, key=lambda one: one.path), *reversed(others)]


def _header(
    tokenizer: TextCodec,
    fim: FimFormat,
    path: str,
    neighbours: Sequence[_Neighbour],
    *,
    named: bool,
) -> list[int]:
    """Return the other files as the model was trained on them: repository, files, this file.

    Where it is `named`, this file's name stands there also without others.
    """
    if not fim.shows_files or not (neighbours or named):
        return []
    start = [] if fim.repository_id is None else [fim.repository_id, *tokenizer.encode(_REPOSITORY)]
    own = _file(tokenizer, fim, path, "")
    return [*start, *chain.from_iterable(one.ids for one in neighbours), *own]


def _file(tokenizer: TextCodec, fim: FimFormat, path: str, text: str) -> list[int]:
    if fim.file_id is not None:
        return [fim.file_id, *tokenizer.encode(f"{path}\n{text}")]
    end = "" if not text or text.endswith("\n") else "\n"
    sign = _SIGNS.get(PurePosixPath(path).suffix.removeprefix(".").lower(), _COMMON_SIGN)
    return tokenizer.encode(f"{sign} {path}\n{text}{end}")
