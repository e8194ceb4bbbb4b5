"""Edits to ask for in words, made of the functions in packages, and checks of the answers.

Nothing here judges style: a check says whether the request was met, and nothing else changed.
"""

import ast
import random
import re
import zipfile
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, field
from itertools import chain, zip_longest
from pathlib import Path

from engine.errors import InputError
from engine.request import EditOutcome, EditTask
from tests.bench.edit_items import EditItem

_OF_EACH = 10
_LINES = range(6, 41)  # of a function
_COMMON = (0, 1, 2)  # numbers that need no name
_SKIPPED = ("/_vendor", "/tests/", "/testing/", ".dist-info/")
Function = ast.FunctionDef | ast.AsyncFunctionDef
Check = Callable[[ast.Module, Function], bool]  # of the changed lines, and their one function


@dataclass(frozen=True, slots=True)
class Wish:
    """What to ask for, and whether an answer does it."""

    instruction: str
    is_met: Check


def _type_hints(function: Function) -> Iterator[Wish]:
    if _parameters(function) and _bare(function) == ast.dump(function):
        yield Wish(
            "Add type hints.",
            lambda _, new: (
                new.returns is not None
                and all(one.annotation for one in _parameters(new))
                and _bare(new) == _bare(function)
            ),
        )


def _renamed_variable(function: Function) -> Iterator[Wish]:
    names = [one for one in ast.walk(function) if isinstance(one, ast.Name)]
    for name in sorted({one.id for one in names if isinstance(one.ctx, ast.Store)}):
        if sum(one.id == name for one in names) > 2:
            yield _renaming(function, name, f"current_{name}")


def _renaming(function: Function, name: str, other: str) -> Wish:
    return Wish(
        f"Rename the variable `{name}` to `{other}`.",
        lambda _, new: _with_name(function, name, other) == ast.dump(new),
    )


def _docstring(function: Function) -> Iterator[Wish]:
    if not ast.get_docstring(function):
        yield Wish(
            "Add a docstring.",
            lambda _, new: (
                bool(ast.get_docstring(new)) and _dumps(new.body[1:]) == _dumps(function.body)
            ),
        )


def _constant(function: Function) -> Iterator[Wish]:
    if function.col_offset == 0:  # else the constant would belong to the class
        yield from map(_extraction, dict.fromkeys(one.value for one in _numbers(function)))


def _extraction(value: object) -> Wish:
    return Wish(
        f"Extract the number {value!r} into a constant above the function.",
        lambda module, new: (
            any(one.value == value for one in _numbers(module))
            and all(one.value != value for one in _numbers(new))
        ),
    )


def _f_strings(function: Function) -> Iterator[Wish]:
    if _formatted(function):
        yield Wish(
            "Convert the string formatting to f-strings.",
            lambda _, new: (
                not _formatted(new) and any(isinstance(one, ast.JoinedStr) for one in ast.walk(new))
            ),
        )


def _none(function: Function) -> Iterator[Wish]:
    used = {
        one.value.id
        for one in ast.walk(function)
        if isinstance(one, ast.Attribute | ast.Subscript) and isinstance(one.value, ast.Name)
    }
    for parameter in _parameters(function):
        if (name := parameter.arg) in used and not _compares_none(function, name):
            yield _guard(function, name)


def _guard(function: Function, name: str) -> Wish:
    return Wish(
        f"Return None if `{name}` is None.",
        lambda _, new: (
            _compares_none(new, name) and set(_dumps(function.body)) <= set(_dumps(new.body))
        ),
    )


KINDS: dict[str, Callable[[Function], Iterator[Wish]]] = {
    "type hints": _type_hints,
    "rename": _renamed_variable,
    "docstring": _docstring,
    "constant": _constant,
    "f-strings": _f_strings,
    "None": _none,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedEdit(EditItem):
    """A function of a package, and an instruction for it."""

    is_met: Check = field(compare=False)

    def judged(self, outcome: EditOutcome) -> dict[str, float]:
        """Whether the file parses after the edit, and whether the request was met."""
        if outcome.refusal:
            return {"parses": False, "done": False}
        indented = ["if True:"] if outcome.lines[0][:1].isspace() else []
        try:
            ast.parse("\n".join(self.changed(outcome)))
            module = ast.parse("\n".join([*indented, *outcome.lines]))
        except SyntaxError:
            return {"parses": False, "done": False}
        if indented and isinstance(block := module.body[0], ast.If):
            module = ast.Module(block.body, [])
        functions = [one for one in module.body if isinstance(one, Function)]
        return {"parses": True, "done": len(functions) == 1 and self.is_met(module, functions[0])}


def asked_edits(wheels: Path) -> list[AskedEdit]:
    """Return ten edits of each kind in turn, always the same for a folder of wheels.

    Raises InputError if it has none.
    """
    places = [*_places(sorted(wheels.glob("**/*.whl")))]
    if not places:
        raise InputError(f"{wheels} has no wheels with functions of {_LINES[0]} lines or more")
    taken = set[str]()
    kinds = [_chosen(kind, places, taken) for kind in KINDS]
    return [one for one in chain.from_iterable(zip_longest(*kinds)) if one is not None]


@dataclass(frozen=True, slots=True)
class _Place:
    package: str
    path: str
    text: str
    function: Function

    @property
    def rows(self) -> range:
        """The function's lines, from 0, with its decorators."""
        first = min(one.lineno for one in (self.function, *self.function.decorator_list))
        return range(first - 1, self.function.end_lineno or first)

    def edit(self, kind: str, wish: Wish) -> AskedEdit:
        """Return the edit that asks for a wish."""
        first, end = self.rows.start, self.rows.stop
        above = "".join(f"{line}\n" for line in self.text.split("\n")[:first])
        return AskedEdit(
            id=f"{kind}/{self.path}:{first + 1}",
            kind=kind,
            path=self.path,
            prefix=above,
            suffix=self.text[len(above) :],
            task=EditTask(wish.instruction, first, end),
            is_met=wish.is_met,
        )


def _places(wheels: Sequence[Path]) -> Iterator[_Place]:
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for path in sorted(archive.namelist()):
                if path.endswith(".py") and not any(one in f"/{path}" for one in _SKIPPED):
                    text, package = archive.read(path).decode(), wheel.name.partition("-")[0]
                    nodes = [one for one in ast.walk(ast.parse(text)) if isinstance(one, Function)]
                    places = (_Place(package, path, text, one) for one in nodes)
                    yield from (one for one in places if len(one.rows) in _LINES)


def _chosen(kind: str, places: Sequence[_Place], taken: set[str]) -> list[AskedEdit]:
    """Draw edits from the packages in turn, of functions that are not `taken`."""
    by_package: dict[str, list[_Place]] = {}
    for place in places:
        by_package.setdefault(place.package, []).append(place)
    draw = random.Random(kind)  # noqa: S311 - the same places every time
    for some in by_package.values():
        draw.shuffle(some)
    found = list[AskedEdit]()
    for place in filter(None, chain.from_iterable(zip_longest(*by_package.values()))):
        source = ast.dump(place.function)
        if source not in taken and (wishes := [*KINDS[kind](place.function)]):
            taken.add(source)
            found.append(place.edit(kind, draw.choice(wishes)))
        if len(found) == _OF_EACH:
            break
    return found


def _parameters(function: Function) -> list[ast.arg]:
    """All that can have a hint, without the object."""
    of = function.args
    every = [*of.posonlyargs, *of.args, of.vararg, *of.kwonlyargs, of.kwarg]
    return [one for one in every if one is not None and one.arg not in ("self", "cls")]


def _bare(function: Function) -> str:
    """The function without type hints."""
    copy = deepcopy(function)
    copy.returns = None
    for one in _parameters(copy):
        one.annotation = None
    return ast.dump(copy)


def _with_name(function: Function, name: str, other: str) -> str:
    copy = deepcopy(function)
    for one in ast.walk(copy):
        if isinstance(one, ast.Name) and one.id == name:
            one.id = other
        elif isinstance(one, ast.arg) and one.arg == name:
            one.arg = other
    return ast.dump(copy)


def _numbers(node: ast.AST) -> list[ast.Constant]:
    return [
        one
        for one in ast.walk(node)
        if isinstance(one, ast.Constant)
        and type(one.value) in (int, float)
        and one.value not in _COMMON
    ]


def _formatted(function: Function) -> bool:
    """Whether a text is formatted by `%` or `format`."""
    return bool(re.search(r"""["'](?: % |\.format\()""", ast.unparse(function)))


def _compares_none(function: Function, name: str) -> bool:
    shown = (f"{name} is None", f"{name} is not None")
    return any(
        isinstance(one, ast.Compare) and ast.unparse(one) in shown for one in ast.walk(function)
    )


def _dumps(statements: Sequence[ast.stmt]) -> list[str]:
    return [ast.dump(one) for one in statements]
