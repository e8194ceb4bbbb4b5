"""Fill-in-the-middle tasks built on HumanEval, in the two forms that they are published in."""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from engine.bench.rows import read_rows
from engine.errors import InputError
from engine.request import Buffer


@dataclass(frozen=True, slots=True)
class FimTask:
    """A hole in a program. `check` is what must run through behind it; None: it cannot be run."""

    id: str
    language: str
    prefix: str
    suffix: str
    middle: str
    check: str | None

    @classmethod
    def from_row(cls, row: dict[str, Any]) -> Self:
        """Read a line's object. Raises KeyError or TypeError when it is of another form."""
        prefix, suffix = str(row["prompt"]), str(row["suffix"])
        middle = str(row["canonical_solution"])
        if "task_id" not in row:  # the single-line set, whose middles lack their line ends
            return cls(str(row["name"]), str(row["language"]), prefix, suffix, middle, None)
        check = f"{row['test']}\ncheck({row['entry_point']})\n"
        return cls(str(row["task_id"]), "py", prefix, suffix, middle, check)

    @property
    def path(self) -> str:
        """A name for the file, from which the language shows."""
        return f"task.{self.language}"

    @property
    def open_buffers(self) -> tuple[Buffer, ...]:
        """None: the program stands alone."""
        return ()

    @property
    def is_mid_line(self) -> bool:
        """Whether code stands before the cursor on its line."""
        return bool(self.prefix.rpartition("\n")[2].strip())

    def program(self, completion: str) -> str:
        """The file with `completion` in the hole, and its check. The task must have one."""
        return f"{self.prefix}{completion}{self.suffix}\n{self.check}"


def load_fim_tasks(
    path: Path, count: int | None = None, *, mid_line_only: bool = False
) -> list[FimTask]:
    """Read a set, or `count` tasks drawn from all over it, always the same. Raises InputError.

    A larger draw begins with the tasks of a smaller one.
    """
    tasks = read_rows(path, FimTask.from_row, "fill-in-the-middle task")
    if mid_line_only:
        tasks = [task for task in tasks if task.is_mid_line]
    if not tasks:
        raise InputError(f"{path} holds no task with its cursor inside a line")
    if count is not None:
        # Neighbours in the file are holes in one problem.
        random.Random(0).shuffle(tasks)  # noqa: S311 - a draw, no secret
    return tasks[:count]
