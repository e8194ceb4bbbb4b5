"""The task sets of `fim` and `crossfile`: a larger draw begins with the tasks of a smaller one."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeVar

from engine.bench.task_sets import SetItem, read_rows
from engine.errors import InputError
from engine.request import Buffer

T = TypeVar("T")


def grouped(items: Iterable[T], group: Callable[[T], str]) -> dict[str, list[T]]:
    """Return items by group; groups and their items keep their order."""
    groups: dict[str, list[T]] = {}
    for item in items:
        groups.setdefault(group(item), []).append(item)
    return groups


@dataclass(frozen=True, slots=True, kw_only=True)
class FimTask(SetItem):
    """A hole in a program of HumanEval, in its two published layouts.

    `check` is code that must run after the program; None: the task cannot be run.
    """

    language: str
    middle: str
    check: str | None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        # The single-line set has no task ids, and its middles lack line ends.
        is_python = "task_id" in row
        language = "py" if is_python else str(row["language"])
        return cls(
            id=str(row["task_id" if is_python else "name"]),
            path=f"task.{language}",
            prefix=str(row["prompt"]),
            suffix=str(row["suffix"]),
            language=language,
            middle=str(row["canonical_solution"]),
            check=f"{row['test']}\ncheck({row['entry_point']})\n" if is_python else None,
        )

    def program(self, completion: str) -> str:
        """Return the file with `completion` in the hole, and the check that the task must have."""
        return f"{self.prefix}{completion}{self.suffix}\n{self.check}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossfileTask(SetItem):
    """A cursor in a released package whose answer is in another file of the package.

    The open files are those that a person would have open, the last import first.
    """

    stratum: str  # cross_file, or random_line, which needs no other file
    kind: str
    target: str
    package: str = ""
    root: Path = Path()  # the folder of the package's files; `path` lies below it
    definition_text: str = ""  # definitions that the answer uses, with their files in comments

    @classmethod
    def from_row(cls, row: dict[str, Any], trees: Path) -> Self:
        """Read a line's object, and the open files from the folder `trees`."""
        root = trees / str(row["package_root"])
        names = ("id", "stratum", "kind", "path", "prefix", "target", "suffix")
        opened = [str(path) for path in reversed(row["open_files"])]
        for path in (str(row["package_root"]), str(row["path"]), *opened):
            if not is_inside(path):
                raise ValueError(f"the path {path!r} leads out of the trees")
        buffers = tuple(Buffer(path, _text(root / path)) for path in opened)
        rest = {name: str(row.get(name, "")) for name in ("package", "definition_text")}
        known = {name: str(row[name]) for name in names}
        return cls(**known, **rest, open_buffers=buffers, root=root)

    @property
    def definition_path(self) -> str:
        """The file that defines the answer's first name; "" if the set does not say."""
        return self.definition_text.partition("\n")[0].removeprefix("# ")


def load_fim_tasks(path: Path, count: int | None = None) -> list[FimTask]:
    """Read a set, or `count` tasks drawn from all of it: neighbours are holes in one problem."""
    return _drawn(read_rows(path, FimTask.from_row, "fill-in-the-middle task"), count)


def load_crossfile_tasks(path: Path, trees: Path, count: int | None = None) -> list[CrossfileTask]:
    """Read a set, or `count` tasks drawn from each stratum."""
    tasks = read_rows(path, lambda row: CrossfileTask.from_row(row, trees), "cross-file task")
    strata = grouped(tasks, lambda task: task.stratum)
    return [task for members in strata.values() for task in _drawn(members, count)]


def is_inside(path: str) -> bool:
    """Whether a path of a set stays below the folder that the set is put in."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts


def _drawn(tasks: list[T], count: int | None) -> list[T]:
    """Return `count` tasks, the same at each call; None is all, in the order of the file."""
    if count is not None:
        random.Random(0).shuffle(tasks)  # noqa: S311 - a draw, no secret
    return tasks[:count]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name the --trees") from error
