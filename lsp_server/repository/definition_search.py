"""Which definitions of other files belong to a cursor: of the names near it, and of their types."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from lsp_server.repository.cursor_view import CursorView, classes_in
from lsp_server.repository.definitions import Definition
from lsp_server.repository.imports import Imported
from lsp_server.repository.source_text import family_of, words_of, words_of_name
from lsp_server.repository.store import FoundDefinition, Store, stem_of

_AT_CURSOR = 8.0  # times the worth of a name near it
_MEMBER = 0.5  # of what its class is worth
_FAR_MEMBER = 0.15  # where the class is only near
_UNIMPORTED = 0.4  # of what an imported name is worth
_ONLY_IMPORTED = 0.05
_MOST_EQUAL = 6  # definitions of a name; more of them say nothing
_MOST_MEMBERS = 60
_MOST_FAR = 6  # classes that are only near, whose members are looked at
_MOST_NAMES = 32
_MOST_IMPORTED = 24  # of the names that are imported and not near
_BASES = re.compile(r"\s*class\s+\w+(?:\[[^\]]*\])?\s*\(([^)]*)")
_RETURNS = re.compile(r"->\s*([^:]+):")
_ANNOTATION = re.compile(r"^\s*(?:self\.)?\w+\s*:\s*([^=\n]+)")


@dataclass(frozen=True, slots=True, eq=False)
class Ranked:
    """A definition and what it is worth."""

    worth: float
    found: FoundDefinition


@dataclass
class DefinitionSearch:
    """Asks an index about one cursor; files in `excluded` are not shown."""

    store: Store
    view: CursorView
    excluded: frozenset[str]
    _worths: dict[tuple[str, int, str], float] = field(default_factory=dict)
    _found: dict[tuple[str, int, str], FoundDefinition] = field(default_factory=dict)
    _num_far: int = 0
    _known: dict[str, list[FoundDefinition]] = field(default_factory=dict)  # by name
    _modules_found: dict[tuple[tuple[str, ...], bool], list[str]] = field(default_factory=dict)
    _members_found: dict[tuple[str, str], list[FoundDefinition]] = field(default_factory=dict)

    def ranked(self) -> list[Ranked]:
        """The definitions that are worth anything, the best first."""
        for name, weight in self._names():
            self._add_name(name, weight)
        self._add_at_cursor()
        ranked = [Ranked(worth, self._found[key]) for key, worth in self._worths.items()]
        return sorted(
            ranked, key=lambda one: (-one.worth, one.found.path, one.found.definition.line)
        )

    @cached_property
    def _family(self) -> str:
        return family_of(self.view.path)

    @cached_property
    def _near_words(self) -> set[str]:
        """Words near the cursor, which tell the members that matter."""
        return words_of(name for name, weight in self.view.weights.items() if weight > 0.2)

    def _names(self) -> Iterable[tuple[str, float]]:
        near = sorted(self.view.weights.items(), key=lambda one: -one[1])[:_MOST_NAMES]
        far = [(n, _ONLY_IMPORTED) for n in self.view.imports if n not in self.view.weights]
        return [*near, *far[:_MOST_IMPORTED]]

    def _add_name(self, name: str, weight: float) -> None:
        """Add what a name near the cursor stands for."""
        for one in self._definitions(name):
            factor = 1.0 if name in self.view.imports else _UNIMPORTED
            self._add(one, weight * factor)
            if one.definition.is_class and self._num_far < _MOST_FAR:
                self._num_far += 1
                self._add_members(one, weight * factor * _FAR_MEMBER)

    def _add_at_cursor(self) -> None:
        """Add the members of what stands before the cursor's dot, and what is being called."""
        if self.view.chain:
            self._add_holder(self.view.chain, _AT_CURSOR)
        if self.view.callee:
            *holder, name = self.view.callee
            for one in self._called(holder, name):
                self._add(one, _AT_CURSOR)
                if one.definition.is_class:
                    self._add_members(one, _AT_CURSOR * _MEMBER)

    def _add_holder(self, chain: Sequence[str], worth: float) -> None:
        for path in self._modules(chain):
            for member in self.store.members(path, "", _MOST_MEMBERS):
                self._add(member, worth * _MEMBER * self._nearness(member.definition))
        for one in self._classes_of(chain):
            self._add(one, worth)
            self._add_members(one, worth * _MEMBER)

    def _called(self, holder: Sequence[str], name: str) -> list[FoundDefinition]:
        """What a call names: a function, a class, or a method of what stands before the dot."""
        if not holder:
            return self._definitions(name)
        found = [one for path in self._modules(holder) for one in self._top(path, name)]
        for cls in () if found else self._classes_of(holder):
            members = self._members(cls)
            found += [one for one in members if one.definition.name == name]
        return found or self._definitions(name)

    def _modules(self, chain: Sequence[str]) -> list[str]:
        """The files that a chain of names stands for."""
        imported = self.view.imports.get(chain[0]) or self.view.imports.get(".".join(chain))
        if imported is None:
            return []
        whole = imported.module + ((imported.name,) if imported.name else ())
        rest = tuple(chain[1:] if imported.name or len(whole) == 1 else ())
        return self._files(whole + rest, is_whole=imported.is_whole)

    def _classes_of(self, chain: Sequence[str]) -> list[FoundDefinition]:
        """The classes that the value of a chain of names may be of."""
        first, *rest = chain
        classes = [one for one in self._definitions(first) if one.definition.is_class]
        if not classes:
            names = self.view.types(first)
            if first in ("self", "cls") and rest:
                names = [*self.view.types(rest[0]), *names] if len(rest) == 1 else names
                typed = self._classes(self.view.types(rest[0]))
                if typed:
                    classes, rest = typed, rest[1:]
            classes = classes or self._classes(names)
            if not classes:
                made = [
                    one for maker in self.view.makers(first) for one in self._definitions(maker)
                ]
                classes = [cls for one in made for cls in self._result(one)]
        for name in rest:
            members = [
                m for cls in classes for m in self._members(cls) if m.definition.name == name
            ]
            classes = [cls for member in members for cls in self._result(member)]
        return classes[:_MOST_EQUAL]

    def _result(self, one: FoundDefinition) -> list[FoundDefinition]:
        """The classes that a function returns, or a field holds."""
        if one.definition.is_class:
            return [one]
        text = one.definition.text
        found = _RETURNS.search(text) or _ANNOTATION.match(text)
        return self._classes(classes_in(found[1])) if found else []

    def _classes(self, names: Iterable[str]) -> list[FoundDefinition]:
        found = (one for name in names for one in self._definitions(name))
        return [one for one in found if one.definition.is_class]

    def _definitions(self, name: str) -> list[FoundDefinition]:
        """What a name stands for: what is imported by it, else whatever is called so."""
        imported = self.view.imports.get(name)
        if imported is not None:
            return self._imported(imported)
        return self._named(name)

    def _named(self, name: str, below: str = "") -> list[FoundDefinition]:
        """What is called so, unless too much is."""
        if len(name) < 3 or name.startswith("__"):
            return []
        if name not in self._known:
            most = _MOST_EQUAL + 1
            self._known[name] = self.store.definitions(name, self._family, most)
        found = self._known[name]
        if len(found) > _MOST_EQUAL and not below:
            return []
        return [
            one for one in found if one.path not in self.excluded and one.path.startswith(below)
        ]

    def _imported(self, imported: Imported) -> list[FoundDefinition]:
        if not imported.name:
            return []
        files = self._files(imported.module, is_whole=imported.is_whole)
        found = [one for path in files for one in self._top(path, imported.name)]
        if found or not files:
            return found
        # A package hands on what its modules define.
        package = files[0].rpartition("/")[0]
        named = self._named(imported.name, f"{package}/" if package else "")
        return [one for one in named if not one.definition.parent]

    def _top(self, path: str, name: str) -> list[FoundDefinition]:
        if path in self.excluded:
            return []
        return [one for one in self.store.named_in(path, name) if not one.definition.parent]

    def _files(self, module: tuple[str, ...], *, is_whole: bool) -> list[str]:
        """The file of a module, the one nearest to the cursor's where several may be meant.

        `is_whole`: the module's parts are all of the file's path.
        """
        if not module:
            return []
        key = module, is_whole
        if key not in self._modules_found:
            tail, start = "/".join(module), 0 if is_whole else -len(module)
            paths = self.store.files_named(module[-1], self._family)
            named = [path for path in paths if tail in path]
            fitting = [path for path in named if _module_of(path)[start:] == module]
            nearest = sorted(fitting, key=lambda path: -_common(path, self.view.path))
            self._modules_found[key] = nearest[:1]
        return self._modules_found[key]

    def _members(self, cls: FoundDefinition) -> list[FoundDefinition]:
        """The members of a class and of its nearest bases."""
        if cls.path in self.excluded:
            return []
        key = cls.path, cls.definition.name
        if key not in self._members_found:
            members = self.store.members(*key, _MOST_MEMBERS)
            head = _BASES.match(cls.definition.text)
            for base in self._named_classes(classes_in(head[1]) if head else (), cls):
                members += self.store.members(base.path, base.definition.name, _MOST_MEMBERS)
            self._members_found[key] = members
        return self._members_found[key]

    def _named_classes(
        self, names: Iterable[str], around: FoundDefinition
    ) -> Iterator[FoundDefinition]:
        """Other classes of these names."""
        for name in names:
            for one in self._named(name):
                if one.definition.is_class and one.definition.name != around.definition.name:
                    yield one

    def _add_members(self, cls: FoundDefinition, worth: float) -> None:
        for member in self._members(cls):
            self._add(member, worth * self._nearness(member.definition))

    def _nearness(self, one: Definition) -> float:
        """More where words near the cursor occur in a member's name, less for what is hidden."""
        words = words_of_name(one.name)
        near = sum(word in self._near_words for word in words) / (len(words) or 1)
        hidden = 0.4 if one.name.startswith("_") and one.name != "__init__" else 1.0
        return (0.5 + near) * hidden

    def _add(self, one: FoundDefinition, worth: float) -> None:
        if one.path in self.excluded:
            return
        key = one.path, one.definition.line, one.definition.name
        self._found[key] = one
        self._worths[key] = max(worth, self._worths.get(key, 0.0))


def _module_of(path: str) -> tuple[str, ...]:
    """The parts of a file's path as an import names them."""
    *folders, _ = path.split("/")
    stem = stem_of(path)
    return tuple(folders) if folders[-1:] == [stem] else (*folders, stem)


def _common(one: str, other: str) -> int:
    """How many folders two files share."""
    pairs = zip(one.split("/"), other.split("/"), strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), 0)
