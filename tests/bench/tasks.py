"""The task sets of `fim` and `crossfile`: a larger draw begins with the tasks of a smaller one."""

import random
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Self, TypeVar

from engine.bench.task_sets import SetItem, grouped, read_rows
from engine.errors import InputError
from engine.request import Buffer

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class FimTask(SetItem):
    """A hole in a program of HumanEval, in the two layouts that it is published in.

    `check` is what must run through behind the program; None: it cannot be run.
    """

    language: str
    middle: str
    check: str | None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        # The single-line set has no task ids, and its middles lack their line ends.
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
        """The file with `completion` in the hole, and its check. The task must have one."""
        return f"{self.prefix}{completion}{self.suffix}\n{self.check}"


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossfileTask(SetItem):
    """A cursor in a released package whose answer stands in another file of the package.

    Open is what a person would have open, the last import first.
    """

    stratum: str  # cross_file, or random_line, where no other file need be known
    kind: str
    target: str
    package: str = ""
    root: Path = Path()  # of the package's files; `path` lies below it
    definition_text: str = ""  # what the answer uses, its file in a comment above each

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
        """The file that the answer's first name is defined in; "" where the set does not say."""
        return self.definition_text.partition("\n")[0].removeprefix("# ")


def load_fim_tasks(path: Path, count: int | None = None) -> list[FimTask]:
    """Read a set, or `count` tasks drawn from all over it: neighbours are holes in one problem."""
    return _drawn(read_rows(path, FimTask.from_row, "fill-in-the-middle task"), count)


def load_crossfile_tasks(path: Path, trees: Path, count: int | None = None) -> list[CrossfileTask]:
    """Read a set, or `count` tasks drawn from each stratum."""
    tasks = read_rows(path, lambda row: CrossfileTask.from_row(row, trees), "cross-file task")
    strata = grouped(tasks, lambda task: task.stratum)
    return [task for members in strata.values() for task in _drawn(members, count)]


def is_inside(path: str) -> bool:
    """Whether a path of a set names something below the folder that it is put in."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts


def _drawn(tasks: list[T], count: int | None) -> list[T]:
    """The same `count` tasks at each call; None is all, in the order of the file."""
    if count is not None:
        random.Random(0).shuffle(tasks)  # noqa: S311 - a draw, no secret
    return tasks[:count]


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}; name the --trees") from error
