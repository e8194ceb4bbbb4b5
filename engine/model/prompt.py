"""A cursor in a text becomes the token ids of a fill-in-the-middle prompt.

Layout `psm` is prefix, suffix, middle token. Layout `line` puts the current line up to the cursor
behind the middle token: the answer starts where a line starts, and a typed character changes the
end of the prompt only. There the piece cut at the cursor is left out, and the answer must begin
with it (token healing), as its tokens would differ from those of the whole word.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from engine.config import Layout
from engine.model.fim import FimFormat
from engine.model.prompt_window import Window, cut_window, neighbour_room
from engine.model.tokenizer import Tokenizer, encodable
from engine.request import Snippet

# The trailing word or run of punctuation with one blank before it, or trailing blanks.
_PIECE = re.compile(r"(?: ?\w{1,48}| ?[^\w\s]{1,48}|[ \t]+)\Z")
_CONTEXT_CHARS = 1024
_FEW_CHARS = 200  # so little text does not show the model its language
_REPOSITORY = "repository\n"  # a name that says nothing; its tokens are part of the layout
_FIM_TOKENS = 4  # prefix, suffix and middle token, and a lead of the prefix


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids, and what drafting and healing need to know of the cursor.

    `partial` is the text before the cursor whose tokens may change once more text follows.
    `context_ids` are the tokens of the text before `partial`, its last hundreds of characters.
    The answer must begin with `dropped`, which is `partial` or nothing.
    `neighbours` are the paths of the files that snippets of stand before this one.
    """

    ids: tuple[int, ...]
    dropped: bytes
    partial: bytes
    context_ids: tuple[int, ...]
    neighbours: tuple[str, ...] = ()
    neighbour_tokens: int = 0


def build_prompt(
    tokenizer: Tokenizer,
    fim: FimFormat,
    prefix: str,
    suffix: str,
    layout: Layout,
    budget_tokens: int,
    *,
    path: str = "",
    snippets: Callable[[int], Sequence[Snippet]] = lambda _room: (),
) -> Prompt:
    """Lay out the text around a cursor in at most `budget_tokens` tokens.

    Far text is left out, three quarters of the budget going to the prefix. `snippets` is asked for
    as many tokens as the file leaves free, and at least for a third of the budget; they stand
    before the file `path`, and what they do not take is the file's.
    """
    named = bool(path) and len(prefix) + len(suffix) < _FEW_CHARS
    room = neighbour_room(tokenizer, prefix, suffix, budget_tokens)
    neighbours = _neighbours(tokenizer, fim, path, snippets, room)
    header = _header(tokenizer, fim, path, neighbours, named=named)
    partial = cut_piece(prefix)
    kept = prefix.removesuffix(partial) if layout == "line" else prefix
    specials = len(tokenizer.start_ids) + _FIM_TOKENS
    window = cut_window(tokenizer, kept, suffix, budget_tokens - specials - len(header))
    return Prompt(
        ids=(*tokenizer.start_ids, *header, *_lay_out(tokenizer, fim, window, layout)),
        dropped=_bytes(prefix[len(kept) :]),
        partial=_bytes(partial),
        context_ids=tuple(tokenizer.encode(_tail(prefix.removesuffix(partial)))),
        neighbours=tuple(neighbours),
        neighbour_tokens=sum(map(len, neighbours.values())),
    )


def cut_piece(prefix: str) -> str:
    """Return the piece of the current line that a token boundary at the cursor may cut."""
    found = _PIECE.search(prefix, max(prefix.rfind("\n") + 1, len(prefix) - 4096))
    return found[0] if found else ""


def _neighbours(
    tokenizer: Tokenizer,
    fim: FimFormat,
    path: str,
    snippets: Callable[[int], Sequence[Snippet]],
    room: int,
) -> dict[str, list[int]]:
    """Return the tokens of other files by their paths, and in the order of these.

    That of their worth would change as the user types.
    """
    if fim.repository_id is None or fim.file_id is None:
        return {}
    room -= len(_header(tokenizer, fim, path, {}, named=True))
    chosen: dict[str, list[int]] = {}
    for snippet in snippets(room):
        ids = [fim.file_id, *tokenizer.encode(f"{snippet.path}\n{snippet.text}")]
        if len(ids) <= room and snippet.path not in chosen:
            chosen[snippet.path] = ids
            room -= len(ids)
    return dict(sorted(chosen.items()))


def _header(
    tokenizer: Tokenizer,
    fim: FimFormat,
    path: str,
    neighbours: Mapping[str, list[int]],
    *,
    named: bool,
) -> list[int]:
    """Return the other files as the model was trained on them: repository, files, this file.

    `named` has this file's name stand there also without other files.
    """
    if fim.repository_id is None or fim.file_id is None or not (neighbours or named):
        return []
    start = [fim.repository_id, *tokenizer.encode(_REPOSITORY)]
    own = [fim.file_id, *tokenizer.encode(f"{path}\n")]
    return [*start, *chain.from_iterable(neighbours.values()), *own]


def _lay_out(
    tokenizer: Tokenizer, fim: FimFormat, window: Window, layout: Layout
) -> tuple[int, ...]:
    lines, line = window.prefix, ""
    if layout == "line":
        start = lines.rfind("\n") + 1
        lines, line = lines[:start], lines[start:]
    before, after = tokenizer.encode(fim.prefix_lead + lines), window.suffix_ids
    if fim.middle_id is None:
        body = [fim.suffix_id, *after, fim.prefix_id, *before]
    else:
        body = [fim.prefix_id, *before, fim.suffix_id, *after, fim.middle_id]
    return (*body, *tokenizer.encode(line))


def _tail(text: str) -> str:
    if len(text) <= _CONTEXT_CHARS:
        return text
    start = text.find("\n", len(text) - _CONTEXT_CHARS, len(text) - 1) + 1
    return text[start or len(text) - _CONTEXT_CHARS :]


def _bytes(text: str) -> bytes:
    return encodable(text).encode()
