"""The check of a model on a device: its rows in all company, its numbers, its replays."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch

from engine.config import Sampling
from engine.model.causal_lm import StepInput
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck.numbers import compare_numbers
from engine.model.gpu.selfcheck.rows import (
    DRAWN,
    GREEDY,
    ROOM,
    CheckedTree,
    Extent,
    StepAnswer,
    answer_of,
    answers,
    check_beside,
    check_company,
    clear,
    compare,
    fitted,
    sizes_of,
    slot_behind,
)
from engine.model.token_tree import TokenTree
from engine.progress import Progress, shown

_PATH = (5, 6, 7, 8)  # any tokens
_REPLAYED_ROWS = 16


@dataclass(frozen=True, slots=True)
class FormCheck:
    """A model in the form that is to run, run by PyTorch in float32, and with no kernel started early.

    They share weights and cache. `plain` is None where `model` is that.
    """

    model: GpuQwen2
    pytorch: GpuQwen2
    plain: GpuQwen2 | None
    extent: Extent

    def run(self, progress: Progress) -> str:
        """Return what could not be compared. Raises DifferenceError; the cache is left empty."""
        lengths = fitted(self.model, self.extent.lengths)
        try:
            with shown(progress, "checking the kernels", len(lengths) + 2):
                for length in lengths:
                    check_company(self.model, length, self.extent.most_rows)
                    progress.advance(1)
                check_beside(self.model, self.extent.most_rows)
                self._check_replays()
                progress.advance(1)
                note = self._compare_with_pytorch(lengths)
                progress.advance(1)
        finally:
            clear(self.model)
        return note

    def _check_replays(self) -> None:
        """Run two steps over and over: a race shows by chance alone."""
        for steps in self._replayed():
            first = answers(self.model, steps)
            if self.plain is not None:
                for one, other in zip(answers(self.plain, steps), first, strict=True):
                    compare(one, other, "where kernels start early")
            for _ in range(self.extent.replays - 1):
                for one, other in zip(answers(self.model, steps), first, strict=True):
                    compare(one, other, "from run to run")

    def _replayed(self) -> Iterator[list[StepInput]]:
        """One tree behind a short text, and few rows of four texts that are long."""
        *_, length = fitted(self.model, self.extent.lengths, texts=4)
        tree, few = self._tree(min(_REPLAYED_ROWS, self.extent.most_rows)), self._tree(4)
        yield [StepInput(slot_behind(self.model, self.extent.lengths[0]), tree, DRAWN)]
        slots = [slot_behind(self.model, length)]
        for fewer in (1, 60, 130):
            slots.append(self.model.new_slot(length + ROOM))
            slots[-1].copy_from(slots[0], max(1, slots[0].length - fewer))
        yield [StepInput(slot, few, wants_logits=True) for slot in slots]

    def _compare_with_pytorch(self, lengths: list[int]) -> str:
        """Compare the rows of the largest tree: those of all others have their bits."""
        try:
            for length, sampling in product(lengths, (GREEDY, DRAWN)):
                compare_numbers(*(self._rows(one, length, sampling) for one in self._both))
        except torch.OutOfMemoryError:
            return "PyTorch found no memory to compare numbers with"
        return ""

    @property
    def _both(self) -> tuple[GpuQwen2, GpuQwen2]:
        return self.model, self.pytorch

    def _rows(self, model: GpuQwen2, length: int, sampling: Sampling) -> StepAnswer:
        tree = self._tree(sizes_of(self.model, self.extent.most_rows)[0])
        return answer_of(model, slot_behind(model, length), tree, sampling)

    def _tree(self, rows: int) -> TokenTree:
        return CheckedTree(self.model.vocab_size, _PATH).of(range(rows))
