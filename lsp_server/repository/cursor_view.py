"""The text around a cursor, as the questions to the index see it: names, imports, calls, types."""

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import PurePosixPath

from engine.text.brackets import statement
from engine.text.names import block_heads, names_in
from lsp_server.repository.source_text import family_of

_NEAR = 20  # lines above and below whose names count, as in Zed's search
_FAR = 2_000  # lines above and below that are searched for a name's type
_IMPORT_LINES = 3_000  # lines above and below that are searched for imports
_STATEMENT_LINES = 60  # lines of one import
_CACHED_IMPORTS = 8  # texts whose imports are cached
_LINE_CHARS = 1_000  # characters read of a line: lines of 90,000 held Python's lock for 0.7 s
_CALL_CHARS = 4_000  # characters before the cursor that are searched for an open bracket
_CHAIN_CHARS = 200  # characters; the patterns below take time with their square
_HEAD_LINES = 12  # lines of one head, which may have a parameter on each
_BRACKET = re.compile(r"[()\[\]{}]")
_CHAIN = re.compile(r"((?:[^\W\d]\w*(?:\([^()]*\))?\.)*)([^\W\d]\w*)?\Z")
_CALL = re.compile(r"([^\W\d][\w.]*)\s*\(\Z")
_HEAD = re.compile(r"\s*(?:async\s+)?(?:def|class|func|fn|function|impl|interface|struct)\b")
_BASES = re.compile(r"\s*class\s+\w+(?:\[[^\]]*\])?\s*\(([^)]*)")
_CLASS_NAME = re.compile(r"[A-Z]\w+")

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
    """A name from another file, or the file itself if `name` is empty."""

    module: tuple[str, ...]  # the last parts of the file's path, without its ending
    name: str
    is_whole: bool = False  # `module` has all parts, as for a relative import


@dataclass(frozen=True)
class CursorView:
    """The lines before and behind a cursor, which splits its own line between the two."""

    path: str  # within the index's folder, like those of `opened`
    before: Sequence[str]
    behind: Sequence[str]
    opened: frozenset[str] = frozenset()
    edits: tuple[str, ...] = ()  # the lines changed last, in any file

    @property
    def line(self) -> str:
        """The cursor's line up to the cursor; of a long one, its end."""
        return self.before[-1][-_LINE_CHARS:] if self.before else ""

    @cached_property
    def imports(self) -> Mapping[str, Imported]:
        """The file's imports on lines other than the cursor's, by their names here."""
        above, below = self.before[:-1][:_IMPORT_LINES], self.behind[1:_IMPORT_LINES]
        return imports((*_cut(above), *_cut(below)), self.path)

    @cached_property
    def chain(self) -> tuple[str, ...]:
        """The dotted names in front of the cursor: self and store for `self.store.pu|`."""
        found = _CHAIN.search(self.line[-_CHAIN_CHARS:])
        names = re.sub(r"\([^()]*\)", "", found[1]).split(".") if found else []
        return tuple(filter(None, names))

    @cached_property
    def callee(self) -> tuple[str, ...]:
        """The dotted names of the call whose brackets hold the cursor, if any."""
        depth, text = 0, "\n".join([*self._above[: _NEAR - 1][::-1], self.line])[-_CALL_CHARS:]
        for bracket in reversed([*_BRACKET.finditer(text)]):
            depth += 1 if bracket[0] in ")]}" else -1
            if depth < 0:
                end = bracket.end()
                found = _CALL.search(text[max(0, end - _CHAIN_CHARS) : end])
                return tuple(found[1].split(".")) if found else ()
        return ()

    @cached_property
    def heads(self) -> list[str]:
        """The lines that open the blocks around the cursor, with the rest of their brackets."""
        found, lines = [], [self.line, *self._above]
        for number, line in block_heads(lines):
            if _HEAD.match(line):
                below = lines[max(0, number - _HEAD_LINES + 1) : number + 1][::-1]
                found.append("\n".join(statement(below, "(", ")")))
        return found

    @cached_property
    def weights(self) -> Mapping[str, float]:
        """The worth of names near the cursor: 1 on its line, less further away."""
        weights: dict[str, float] = {}
        finished = re.sub(r"\w+\Z", "", self.line)  # without the word that is being typed
        above = enumerate([finished, *self._above[: _NEAR - 1]])
        below = enumerate(_cut(self.behind[:_NEAR]), start=1)
        near = [(line, 1 / (1 + distance / 4)) for distance, line in (*above, *below)]
        for text, weight in (*((head, 0.5) for head in self.heads), *near):
            for name in names_in(text):
                weights[name] = max(weight, weights.get(name, 0.0))
        return weights

    def types(self, name: str) -> list[str]:
        """Return the classes that a name may have, by nearby annotations and constructor calls."""
        if name in ("self", "cls"):
            return next((bases_of(head) for head in self.heads if _BASES.match(head)), [])
        pattern = re.compile(
            rf"\b{re.escape(name)}\s*:\s*([^=\n,)]+)|\b{re.escape(name)}\s*=\s*(?:await\s+)?([\w.]+)\("
        )
        found: list[str] = []
        for line in (*self._above, *_cut(self.behind[:_FAR])):
            for match in pattern.finditer(line) if name in line else ():
                found += classes_in(match[1] or (match[2] or "").rpartition(".")[2])
        return list(dict.fromkeys(found))

    def makers(self, name: str) -> list[str]:
        """Return the functions whose result a name holds, at most two."""
        pattern = re.compile(rf"\b{re.escape(name)}\s*=\s*(?:await\s+)?(?:[\w.]*\.)?(\w+)\(")
        lines = (line for line in self._above if name in line)
        return [match[1] for line in lines for match in pattern.finditer(line)][:2]

    @cached_property
    def _above(self) -> Sequence[str]:
        """The lines above the cursor's, the nearest first."""
        return _cut(self.before[-_FAR:-1][::-1])


def _cut(lines: Iterable[str]) -> list[str]:
    return [line if len(line) <= _LINE_CHARS else line[:_LINE_CHARS] for line in lines]


def classes_in(annotation: str) -> list[str]:
    """Return the names in an annotation that look like classes."""
    return _CLASS_NAME.findall(annotation)


def bases_of(head: str) -> list[str]:
    """Return the classes that a class's head names as its bases."""
    found = _BASES.match(head)
    return classes_in(found[1]) if found else []


@lru_cache(_CACHED_IMPORTS)
def imports(lines: tuple[str, ...], path: str) -> Mapping[str, Imported]:
    """Return a file's imports by their names in it, found by patterns, as it seldom parses."""
    near = lines[:_IMPORT_LINES]
    match family_of(path):
        case "python":
            return dict(_python(near, path))
        case "javascript":
            return dict(_script(near, path))
        case "java":
            found = (one[1].split(".") for line in near if (one := _JAVA.match(line)))
            return {names[-1]: Imported(tuple(names), names[-1]) for names in found}
        case "cpp":
            headers = (one[1] for line in near if (one := _INCLUDE.match(line)))
            return {name: Imported(_module(PurePosixPath(name)), "") for name in headers}
    return {}


def _statements(lines: Sequence[str], starts: tuple[str, ...], brackets: str) -> Iterator[str]:
    for number, line in enumerate(lines):
        if line.lstrip().startswith(starts):
            yield "\n".join(statement(lines[number : number + _STATEMENT_LINES], *brackets))


def _python(lines: Sequence[str], path: str) -> Iterator[tuple[str, Imported]]:
    for text in _statements(lines, ("import ", "from "), "()"):
        found = _PYTHON.match(_COMMENT.sub("", text))
        if found is None:
            continue
        module = (found[1] or "").lstrip(".")
        level = len(found[1] or "") - len(module)
        folder = PurePosixPath(path).parts[:-level] if level else ()
        parts = (*folder, *filter(None, module.split(".")))
        for name, alias in _PYTHON_NAME.findall(found[2].strip("() \n")):
            if found[1] is None:
                yield alias or name, Imported(tuple(name.split(".")), "")
            else:
                yield alias or name, Imported(parts, name, is_whole=level > 0)


def _script(lines: Sequence[str], path: str) -> Iterator[tuple[str, Imported]]:
    for text in _statements(lines, ("import", "export", "const", "let", "var"), "{}"):
        # Test first: the pattern searches for these words at each character.
        found = _SCRIPT.match(text) if "from" in text or "require" in text else None
        if found is None or not found[2].startswith("."):
            continue
        file = posixpath.normpath(PurePosixPath(path).parent / found[2])
        module = _module(PurePosixPath(file))
        for name, alias in _SCRIPT_NAME.findall(found[1]):
            yield alias or name, Imported(module, name, is_whole=True)


def _module(file: PurePosixPath) -> tuple[str, ...]:
    return (*file.parts[:-1], file.stem)
