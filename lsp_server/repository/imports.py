"""What a file imports, and from where, by its text: it is being written, so it seldom parses."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePosixPath

from engine.stopping.brackets import statement
from lsp_server.repository.source_text import family_of

_MOST_LINES = 3_000  # of a file, that are looked at
_MOST_JOINED = 60  # lines of one statement
_MOST_CACHED = 8  # texts
_PYTHON = re.compile(r"\s*(?:from\s+([.\w]+)\s+)?import\s+(.+)", re.DOTALL)
_PYTHON_NAME = re.compile(r"([\w.]+)(?:\s+as\s+(\w+))?")
_COMMENT = re.compile(r"#[^\n]*")
_SCRIPT = re.compile(
    r"""\s*(?:import|export|const|let|var)\b(.*?)(?:\bfrom\s*|\brequire\(\s*)["']([^"']+)["']""",
    re.DOTALL,
)
_SCRIPT_NAME = re.compile(r"(\w+)(?:(?:\s+as\s+|\s*:\s*)(\w+))?")
_JAVA = re.compile(r"\s*import\s+(?:static\s+)?([\w.]+)\s*;")
_INCLUDE = re.compile(r'\s*#\s*include\s*"([^"]+)"')


@dataclass(frozen=True, slots=True)
class Imported:
    """A name of another file, or that file itself where `name` is empty.

    `module` are the last parts of the file's path, without its ending. A relative import names all
    of them, `is_whole`.
    """

    module: tuple[str, ...]
    name: str
    is_whole: bool = False


@lru_cache(_MOST_CACHED)
def imports(lines: tuple[str, ...], path: str) -> Mapping[str, Imported]:
    """Return what is imported by the names that it has in the file at `path`.

    It is kept: who types on changes none of these lines.
    """
    near = lines[:_MOST_LINES]
    match family_of(path):
        case "python":
            return dict(_python(near, path))
        case "javascript":
            return dict(_script(near, path))
        case "java":
            found = (one[1].split(".") for line in near if (one := _JAVA.match(line)))
            return {parts[-1]: Imported(tuple(parts), parts[-1]) for parts in found}
        case "cpp":
            names = (one[1] for line in near if (one := _INCLUDE.match(line)))
            return {name: Imported(_parts(name), "") for name in names}
    return {}


def _python(lines: Sequence[str], path: str) -> Iterator[tuple[str, Imported]]:
    for start, line in enumerate(lines):
        if not line.lstrip().startswith(("import ", "from ")):
            continue
        whole = "\n".join(statement(lines[start : start + _MOST_JOINED], "(", ")"))
        found = _PYTHON.match(_COMMENT.sub("", whole))
        if found is None:
            continue
        names = _PYTHON_NAME.findall(found[2].strip("() \n"))
        if found[1] is None:
            for name, alias in names:
                yield alias or name, Imported(tuple(name.split(".")), "")
            continue
        module, is_whole = _python_module(found[1], path)
        for name, alias in names:
            yield alias or name, Imported(module, name, is_whole)


def _python_module(name: str, path: str) -> tuple[tuple[str, ...], bool]:
    """The module of `from name import`, and whether the path of its file is known as a whole."""
    bare = name.lstrip(".")
    parts = tuple(filter(None, bare.split(".")))
    level = len(name) - len(bare)
    if not level:
        return parts, False
    folder = PurePosixPath(path).parts[:-level]
    return (*folder, *parts), True


def _script(lines: Sequence[str], path: str) -> Iterator[tuple[str, Imported]]:
    for start, line in enumerate(lines):
        if not line.lstrip().startswith(("import", "export", "const", "let", "var")):
            continue
        whole = "\n".join(statement(lines[start : start + _MOST_JOINED], "{", "}"))
        # The pattern looks for these at each character.
        found = _SCRIPT.match(whole) if "from" in whole or "require" in whole else None
        if found is None or not found[2].startswith("."):
            continue
        module = _parts(_joined(PurePosixPath(path).parent, found[2]))
        for name, alias in _SCRIPT_NAME.findall(found[1]):
            yield alias or name, Imported(module, name, is_whole=True)


def _joined(folder: PurePosixPath, name: str) -> str:
    parts = list(folder.parts)
    for part in PurePosixPath(name).parts:
        if part == "..":
            del parts[-1:]
        elif part != ".":
            parts.append(part)
    return "/".join(parts)


def _parts(path: str) -> tuple[str, ...]:
    return PurePosixPath(path).with_suffix("").parts
