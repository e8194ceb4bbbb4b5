"""Other files in a prompt, and the name of this one, as the model saw them in training.

Qwen and Mellum have tokens that lead in a file. Seed-Coder has none, and nothing is published of
how its repositories were strung together. It was measured on CrossCodeEval and RepoEval, which put
other files before the text and name them in comments; so here each stands inside the prefix, below
a comment with its path. Its documents begin with the suffix token: text before that would be none.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath

from engine.model.fim import FimFormat
from engine.model.tokenizer import Tokenizer
from engine.request import Snippet

Snippets = Callable[[int], Sequence[Snippet]]  # those that fit so many tokens

_REPOSITORY = "repository\n"  # a name that says nothing; its tokens are part of the layout
_SIGNS = {  # of a comment, by what a path ends in
    **dict.fromkeys(("py", "pyi", "rb", "sh", "bash", "zsh", "r", "pl", "ex", "jl"), "#"),
    **dict.fromkeys(("yaml", "yml", "toml", "tf", "nix", "cmake", "mk", "ps1"), "#"),
    **dict.fromkeys(("lua", "sql", "hs", "elm", "ada"), "--"),
}
_COMMON_SIGN = "//"


def choose_neighbours(
    tokenizer: Tokenizer, fim: FimFormat, path: str, snippets: Snippets, room: int
) -> dict[str, list[int]]:
    """Return the tokens of other files by their paths, and in the order of these.

    That of their worth would change as the user types.
    """
    if not fim.shows_files:
        return {}
    room -= len(header(tokenizer, fim, path, {}, named=True))
    chosen: dict[str, list[int]] = {}
    for snippet in snippets(room):
        ids = _file(tokenizer, fim, snippet.path, snippet.text)
        if len(ids) <= room and snippet.path not in chosen:
            chosen[snippet.path] = ids
            room -= len(ids)
    return dict(sorted(chosen.items()))


def header(
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
    if not fim.shows_files or not (neighbours or named):
        return []
    start = [] if fim.repository_id is None else [fim.repository_id, *tokenizer.encode(_REPOSITORY)]
    own = _file(tokenizer, fim, path, "")
    return [*start, *chain.from_iterable(neighbours.values()), *own]


def _file(tokenizer: Tokenizer, fim: FimFormat, path: str, text: str) -> list[int]:
    if fim.file_id is not None:
        return [fim.file_id, *tokenizer.encode(f"{path}\n{text}")]
    end = "" if not text or text.endswith("\n") else "\n"
    sign = _SIGNS.get(PurePosixPath(path).suffix.removeprefix(".").lower(), _COMMON_SIGN)
    return tokenizer.encode(f"{sign} {path}\n{text}{end}")
