"""Finds the definitions in other files that belong to a cursor: of nearby names and their types."""

import re
from collections.abc import Iterable, Sequence
from functools import cache

from lsp_server.repository.cursor_view import CursorView, bases_of, classes_in
from lsp_server.repository.definitions import Definition
from lsp_server.repository.source_text import family_of, words_of, words_of_name
from lsp_server.repository.store import Store, stem_of

_AT_CURSOR = 8.0  # worth of a definition at the cursor; a name near it has at most 1
_MEMBER = 0.5  # share of its class's worth
_FAR_MEMBER = 0.15  # the same if the class is only near the cursor
_UNIMPORTED = 0.4  # share of an imported name's worth
_ONLY_IMPORTED = 0.05  # weight of an imported name that is not near: below that of any near name
_MOST_EQUAL = 6  # definitions of a name; more of them say nothing
_MOST_MEMBERS = 60  # members read of one class or module, more than a prompt shows
_MOST_FAR = 6  # classes near the cursor whose members are read, a query each
_MOST_NAMES = 32  # near names that are looked up, a query each; those of most weight first
_MOST_IMPORTED = 24  # names that are imported but not near, a query each
_RETURNS = re.compile(r"->\s*([^:]+):")
_ANNOTATION = re.compile(r"^\s*(?:self\.)?\w+\s*:\s*([^=\n]+)")


class DefinitionSearch:
    """Asks an index about one cursor; leaves out the cursor's own file."""

    def __init__(self, store: Store, view: CursorView) -> None:
        self._store, self._view = store, view
        self._family = family_of(view.path)
        near = (name for name, weight in view.weights.items() if weight > 0.2)
        self._near_words = words_of(near)  # they tell which members matter
        self._worths: dict[Definition, float] = {}
        self._num_far = 0
        self._called_so = cache(lambda name: store.definitions(name, self._family, _MOST_EQUAL + 1))
        self._file_of = cache(self._find_file)
        self._members = cache(self._find_members)

    def ranked(self) -> list[Definition]:
        """Return the definitions that fit the cursor, the best first."""
        for name, weight in self._names():
            self._add_name(name, weight)
        self._add_at_cursor()
        return sorted(self._worths, key=lambda one: (-self._worths[one], one.path, one.line))

    def _names(self) -> Iterable[tuple[str, float]]:
        weights, imported = self._view.weights, self._view.imports
        near = sorted(weights.items(), key=lambda one: -one[1])[:_MOST_NAMES]
        far = [(name, _ONLY_IMPORTED) for name in imported if name not in weights]
        return [*near, *far[:_MOST_IMPORTED]]

    def _add_name(self, name: str, weight: float) -> None:
        worth = weight * (1.0 if name in self._view.imports else _UNIMPORTED)
        for one in self._definitions(name):
            self._add(one, worth)
            if one.is_class and self._num_far < _MOST_FAR:
                self._num_far += 1
                self._add_members(one, worth * _FAR_MEMBER)

    def _add_at_cursor(self) -> None:
        """Add the members of the object before the cursor's dot, and the function being called."""
        if chain := self._view.chain:
            for path in self._module(chain):
                for member in self._store.members(path, "", _MOST_MEMBERS):
                    self._add(member, _AT_CURSOR * _MEMBER * self._nearness(member))
            for one in self._classes_of(chain):
                self._add(one, _AT_CURSOR)
                self._add_members(one, _AT_CURSOR * _MEMBER)
        for one in self._called(self._view.callee):
            self._add(one, _AT_CURSOR)
            if one.is_class:
                self._add_members(one, _AT_CURSOR * _MEMBER)

    def _called(self, callee: Sequence[str]) -> list[Definition]:
        if not callee:
            return []
        *holder, name = callee
        found: list[Definition] = []
        if holder:
            found = [one for path in self._module(holder) for one in self._top(path, name)]
            for cls in () if found else self._classes_of(holder):
                found += [one for one in self._members(cls) if one.name == name]
        return found or self._definitions(name)

    def _module(self, chain: Sequence[str]) -> list[str]:
        imported = self._view.imports.get(chain[0]) or self._view.imports.get(".".join(chain))
        if imported is None:
            return []
        whole = imported.module + ((imported.name,) if imported.name else ())
        rest = tuple(chain[1:] if imported.name or len(whole) == 1 else ())
        return self._file_of(whole + rest, imported.is_whole)

    def _classes_of(self, chain: Sequence[str]) -> list[Definition]:
        first, *rest = chain
        classes = [one for one in self._definitions(first) if one.is_class]
        if not classes:
            names = self._view.types(first)
            if first in ("self", "cls") and rest:
                own = self._view.types(rest[0])
                names = [*own, *names] if len(rest) == 1 else names
                if classes := self._classes(own):
                    rest = rest[1:]
            classes = classes or self._classes(names) or self._made_by(self._view.makers(first))
        for name in rest:
            members = [m for cls in classes for m in self._members(cls) if m.name == name]
            classes = [cls for member in members for cls in self._result(member)]
        return classes[:_MOST_EQUAL]

    def _made_by(self, makers: Iterable[str]) -> list[Definition]:
        made = [one for maker in makers for one in self._definitions(maker)]
        return [cls for one in made for cls in self._result(one)]

    def _result(self, one: Definition) -> list[Definition]:
        """Return the classes of a function's result or of a field."""
        if one.is_class:
            return [one]
        found = _RETURNS.search(one.text) or _ANNOTATION.match(one.text)
        return self._classes(classes_in(found[1])) if found else []

    def _classes(self, names: Iterable[str]) -> list[Definition]:
        found = (one for name in names for one in self._definitions(name))
        return [one for one in found if one.is_class]

    def _definitions(self, name: str) -> list[Definition]:
        """Return the definitions that a name is imported from, or else all of that name."""
        imported = self._view.imports.get(name)
        if imported is None:
            return self._named(name)
        if not imported.name:
            return []
        files = self._file_of(imported.module, imported.is_whole)
        found = [one for path in files for one in self._top(path, imported.name)]
        if found or not files:
            return found
        # A package re-exports names of its modules.
        package = files[0].rpartition("/")[0]
        named = self._named(imported.name, f"{package}/" if package else "")
        return [one for one in named if not one.parent]

    def _named(self, name: str, below: str = "") -> list[Definition]:
        """Return the definitions of a name; none if there are too many."""
        if len(name) < 3 or name.startswith("__"):
            return []
        found = self._called_so(name)
        if len(found) > _MOST_EQUAL and not below:
            return []
        return [one for one in found if one.path != self._view.path and one.path.startswith(below)]

    def _top(self, path: str, name: str) -> list[Definition]:
        if path == self._view.path:
            return []
        return [one for one in self._store.named_in(path, name) if not one.parent]

    def _find_file(self, module: tuple[str, ...], is_whole: bool) -> list[str]:  # noqa: FBT001 - a key of the cache
        """Return the file of a module, of several the nearest to the cursor's."""
        if not module:
            return []
        tail, start = "/".join(module), 0 if is_whole else -len(module)
        named = (one for one in self._store.files_named(module[-1], self._family) if tail in one)
        fitting = [path for path in named if _module_of(path)[start:] == module]
        return sorted(fitting, key=lambda path: -_common(path, self._view.path))[:1]

    def _find_members(self, cls: Definition) -> list[Definition]:
        if cls.path == self._view.path:
            return []
        named = (one for base in bases_of(cls.text) for one in self._named(base))
        bases = (one for one in named if one.is_class and one.name != cls.name)
        members = (self._store.members(one.path, one.name, _MOST_MEMBERS) for one in (cls, *bases))
        return [member for of_class in members for member in of_class]

    def _add_members(self, cls: Definition, worth: float) -> None:
        for member in self._members(cls):
            self._add(member, worth * self._nearness(member))

    def _nearness(self, one: Definition) -> float:
        """Return more for a name that shares words with the cursor, less for a private one."""
        words = words_of_name(one.name)
        near = sum(word in self._near_words for word in words) / (len(words) or 1)
        hidden = 0.4 if one.name.startswith("_") and one.name != "__init__" else 1.0
        return (0.5 + near) * hidden

    def _add(self, one: Definition, worth: float) -> None:
        if one.path != self._view.path:
            self._worths[one] = max(worth, self._worths.get(one, 0.0))


def _module_of(path: str) -> tuple[str, ...]:
    """Return the parts of a file's path as an import names them."""
    *folders, _ = path.split("/")
    stem = stem_of(path)
    return tuple(folders) if folders[-1:] == [stem] else (*folders, stem)


def _common(one: str, other: str) -> int:
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), 0)
