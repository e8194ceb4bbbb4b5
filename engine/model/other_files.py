"""Other files in a prompt, and the name of this one, as the model saw them in training.

Qwen and Mellum have tokens that lead in a file. Seed-Coder has none, and nothing is published of
how its repositories were strung together. It was measured on CrossCodeEval and RepoEval, which put
other files before the text and name them in comments; so here each stands inside the prefix, below
a comment with its path. Its documents begin with the suffix token: text before that would be none.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import PurePosixPath

from engine.model.fim import FimFormat
from engine.model.text_codec import TextCodec
from engine.request import Snippet

Snippets = Callable[[int], Sequence[Snippet]]  # those that fit so many tokens

_REPOSITORY = "repository\n"  # a name that says nothing; its tokens are part of the layout
_SIGNS = {  # of a comment, by what a path ends in
    **dict.fromkeys(("py", "pyi", "rb", "sh", "bash", "zsh", "r", "pl", "ex", "jl", "ipynb"), "#"),
    **dict.fromkeys(("yaml", "yml", "toml", "tf", "nix", "cmake", "mk", "ps1"), "#"),
    **dict.fromkeys(("lua", "sql", "hs", "elm", "ada"), "--"),
}
_COMMON_SIGN = "//"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """What a prompt shows of another file, and the tokens that name it."""

    path: str
    ids: tuple[int, ...]
    is_open: bool


def choose_neighbours(
    tokenizer: TextCodec, fim: FimFormat, path: str, snippets: Snippets, room: int
) -> list[Neighbour]:
    """Return what the prompt shows: open files in the order of their paths, then the others.

    That of their worth would change as the user types. What the repository shows is chosen for a
    while, and its best stands next to the cursor's file.
    """
    if not fim.shows_files:
        return []
    room -= len(header(tokenizer, fim, path, [], named=True))
    opened: list[Neighbour] = []
    others: list[Neighbour] = []
    for snippet in snippets(room):
        ids = tuple(_file(tokenizer, fim, snippet.path, snippet.text))
        one = Neighbour(snippet.path, ids, snippet.is_open)
        if len(ids) <= room:
            room -= len(ids)
            (opened if one.is_open else others).append(one)
    return [*sorted(opened, key=lambda one: one.path), *reversed(others)]


def paths(neighbours: Iterable[Neighbour], *, are_open: bool) -> tuple[str, ...]:
    """Return the paths of the open ones, or of the others."""
    return tuple(dict.fromkeys(one.path for one in neighbours if one.is_open == are_open))


def header(
    tokenizer: TextCodec,
    fim: FimFormat,
    path: str,
    neighbours: Sequence[Neighbour],
    *,
    named: bool,
) -> list[int]:
    """Return the other files as the model was trained on them: repository, files, this file.

    `named` has this file's name stand there also without other files.
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
