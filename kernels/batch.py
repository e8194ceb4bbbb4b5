"""The rows of one step, as the kernels read them: one or more token trees over KV slots.

All arrays are int32 on the step's device. R is its row capacity (its bucket), S its sequences, B
its row blocks. Rows that hold tokens come first, each sequence's together and in preorder: a tree's
first branch, then the next one. So a run, the new rows of a branch, is a range of rows.
"""

from dataclasses import dataclass, fields

import torch

from kernels.step_rows import StepRows

ROW_TILE = 64  # packed rows (row * query heads of a group + head) of an attention program
KEY_TILE = 64  # key positions that are reduced together


@dataclass(frozen=True, slots=True)
class BatchMetadata:
    """Token trees and the slots of a KV arena that hold their committed tokens.

    A slot is a range of arena positions. The token at place p of the text stands at arena position
    base + p; a row in flight, o rows behind its sequence's first, at base + length + o.

    Rows [R]: `tokens`; `parents`, rows of this step, -1 at a root; `sequences`, -1 where the row
    holds nothing (its other entries are then 0, its parent -1); `depths`, 0 at a root; `runs`,
    which never fall from row to row.
    Runs [R, R], beyond 128 rows [S, R] as there are chains alone: `paths[run, i]` is the offset behind
    the sequence's first row of the run's ancestor (or own row) of depth i, as far as the run's last row
    is deep.
    Sequences [S]: `bases`, `lengths` in committed tokens, `first_rows`, `num_rows`; 0 rows where
    the place is free.
    Blocks [B]: `block_sequences`, -1 where there is none; `block_starts`, the first packed row of
    the block counted from the sequence's first row; `block_first_runs`, `block_end_runs`, the
    range of runs that its rows belong to.
    Commits: `commit_counts` [S], rows of the step before that are kept; `commit_lengths` [S],
    tokens committed before them; `commit_rows` [S, 128], their offsets, ascending: the step before
    may have had more rows than this one.
    `step_rows` is what the host knows of all this, for operations in PyTorch.
    """

    tokens: torch.Tensor
    parents: torch.Tensor
    sequences: torch.Tensor
    depths: torch.Tensor
    runs: torch.Tensor
    paths: torch.Tensor
    bases: torch.Tensor
    lengths: torch.Tensor
    first_rows: torch.Tensor
    num_rows: torch.Tensor
    block_sequences: torch.Tensor
    block_starts: torch.Tensor
    block_first_runs: torch.Tensor
    block_end_runs: torch.Tensor
    commit_counts: torch.Tensor
    commit_lengths: torch.Tensor
    commit_rows: torch.Tensor
    step_rows: StepRows | None = None

    @property
    def rows_on_host(self) -> StepRows:
        """Return `step_rows`, or read them back from the device, which waits for it."""
        if self.step_rows is not None:
            return self.step_rows
        held = {one.name: getattr(self, one.name) for one in fields(self)}
        arrays = {name: one.cpu().numpy() for name, one in held.items() if torch.is_tensor(one)}
        return StepRows.plan(arrays, self.tokens.device)

    @property
    def capacity(self) -> int:
        """Rows of the step, R."""
        return self.tokens.shape[0]

    @property
    def num_sequences(self) -> int:
        """Sequences that a step has room for, S."""
        return self.bases.shape[0]

    @property
    def num_blocks(self) -> int:
        """Row blocks of its attention, B."""
        return self.block_sequences.shape[0]


def max_blocks(rows: int, sequences: int, group: int) -> int:
    """Most row blocks of `rows` rows of `sequences` sequences."""
    return -(-rows * group // ROW_TILE) + sequences - 1
