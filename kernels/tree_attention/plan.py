"""How a tree of rows is cut into runs that each read one straight line of keys."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch

CHUNK = 512  # slots that are reduced together; runs read whole chunks


@dataclass(frozen=True)
class TreeRun:
    """A piece of a path, whose last `num_rows` rows are answered by this run.

    `path` int64 [depth of the last row + 1] leads from the root to its end.
    """

    path: torch.Tensor
    num_rows: int

    @cached_property
    def rows(self) -> torch.Tensor:
        """int64 [num_rows], the rows that this run answers."""
        return self.path[len(self.path) - self.num_rows :]

    @cached_property
    def leads(self) -> bool:
        """True where the path's rows already stand in the order of their positions."""
        return bool(torch.equal(self.path, torch.arange(len(self.path))))


class TreePlan:
    """What all layers of a step share: how the tree is cut, and what each run's rows may see."""

    def __init__(self, parents: np.ndarray, length: int) -> None:
        """`parents` int32 [rows], parents before children; `length` committed tokens."""
        self.parents = parents
        self.length = length
        self._masks: dict[tuple[int, int, int], torch.Tensor] = {}

    @cached_property
    def ancestors(self) -> torch.Tensor:
        """bool [rows, rows]: row i sees row j, that is j is i or one of its ancestors."""
        mask = np.eye(len(self.parents), dtype=bool)
        for row in range(1, len(self.parents)):
            mask[row] |= mask[self.parents[row]]
        return torch.from_numpy(mask)

    @cached_property
    def runs(self) -> tuple[TreeRun, ...]:
        """Runs that answer each row once: from each leaf up to a row that is answered already."""
        inner = set(self.parents.tolist())
        answered: set[int] = set()
        runs = []
        for leaf in (row for row in range(len(self.parents)) if row not in inner):
            path = self._path(leaf)
            fresh = [row for row in path if row not in answered]
            answered.update(fresh)
            runs.append(TreeRun(torch.tensor(path), len(fresh)))
        return tuple(runs)

    def mask(self, run: TreeRun, group: int, padding: int, dtype: torch.dtype) -> torch.Tensor:
        """[num_rows * group + padding, slots]: 0 where a packed query row may look, else -inf.

        `slots` are the whole chunks up to the run's end. Padding rows see what the first row sees.
        """
        end = self.length + len(run.path)
        key = (end, run.num_rows, group)
        if key not in self._masks:
            last = torch.arange(end - run.num_rows, end).repeat_interleave(group)
            last = torch.cat([last, last[:1].expand(padding)])
            slots = torch.arange(-(-end // CHUNK) * CHUNK)
            hidden = slots > last[:, None]
            self._masks[key] = torch.zeros(hidden.shape, dtype=dtype).masked_fill_(
                hidden, -torch.inf
            )
        return self._masks[key]

    def _path(self, row: int) -> list[int]:
        path = []
        while row >= 0:
            path.append(row)
            row = int(self.parents[row])
        return path[::-1]
