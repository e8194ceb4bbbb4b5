"""The check of a model on a device: its rows in all trees, its numbers, its replays."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import torch

from engine.model.causal_lm import StepInput
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.gpu.selfcheck import rows
from engine.model.gpu.selfcheck.rows import DifferenceError, Extent, StepAnswer
from engine.model.token_tree import TokenTree
from engine.progress import Progress, shown

_PATH = (5, 6, 7, 8)  # any tokens
_REPLAYED_ROWS = 16


# In standard deviations of a row's logits, by the root mean square and of one logit. Of the 0.5b in its
# file's form kernels that sum in float32 are off by up to 0.04 and 0.2, as they round what layers hand
# on; with a block of inputs or of outputs left out in every layer by 2.7.
_MOST_ERROR, _MOST_ERROR_OF_ONE = 0.1, 1.0
_LEAST_AGREEMENT = 0.5  # of the tokens chosen: where two are nearly equal, rounding decides
_SUM_ERROR = 0.01  # of a log-probability against that of the same logits


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
        lengths = rows.fitted(self.model, self.extent.lengths)
        try:
            with shown(progress, "checking the kernels", len(lengths) + 2):
                for _ in rows.checks(self.model, self.extent):
                    progress.advance(1)
                self._check_replays()
                progress.advance(1)
                note = self._compare_with_pytorch(lengths)
                progress.advance(1)
        finally:
            rows.clear(self.model)
        return note

    def _check_replays(self) -> None:
        """Run two steps over and over: a race shows by chance alone."""
        for steps in self._replayed():
            first = rows.answers(self.model, steps)
            if self.plain is not None:
                for one, other in zip(rows.answers(self.plain, steps), first, strict=True):
                    rows.compare(one, other, "where kernels start early")
            for _ in range(self.extent.replays - 1):
                for one, other in zip(rows.answers(self.model, steps), first, strict=True):
                    rows.compare(one, other, "from run to run")

    def _replayed(self) -> Iterator[list[StepInput]]:
        """One tree behind a short text, and few rows of four texts that are long."""
        *_, length = rows.fitted(self.model, self.extent.lengths, texts=4)
        tree, few = self._tree(min(_REPLAYED_ROWS, self.extent.most_rows)), self._tree(4)
        yield [StepInput(rows.slot_behind(self.model, self.extent.lengths[0]), tree, rows.DRAWN)]
        slots = [rows.slot_behind(self.model, length)]
        for fewer in (1, 60, 130):
            slots.append(self.model.new_slot(length + rows.ROOM))
            slots[-1].copy_from(slots[0], max(1, slots[0].length - fewer))
        yield [StepInput(slot, few, wants_logits=True) for slot in slots]

    def _compare_with_pytorch(self, lengths: list[int]) -> str:
        """Compare the rows of the largest tree: those of all others have their bits."""
        tree = self._tree(rows.sizes_of(self.model, self.extent.most_rows)[0])
        try:
            for length, sampling in product(lengths, (rows.GREEDY, rows.DRAWN)):
                found, expected = (
                    rows.answer_of(model, rows.slot_behind(model, length), tree, sampling)
                    for model in (self.model, self.pytorch)
                )
                compare_numbers(found, expected)
        except torch.OutOfMemoryError:
            return "PyTorch found no memory to compare numbers with"
        return ""

    def _tree(self, num_rows: int) -> TokenTree:
        return rows.CheckedTree(self.model.vocab_size, _PATH).of(range(num_rows))


def compare_numbers(found: StepAnswer, expected: StepAnswer) -> None:
    """Raise DifferenceError where more differs than rounding explains.

    A token that is nearly as good as another may be chosen in its place: probabilities are compared
    where the choices agree.
    """
    logits, right = found[rows.LOGITS], expected[rows.LOGITS]
    spread = right.std(dim=1)
    errors = (logits - right).abs() / spread[:, None]
    _require(errors.square().mean(dim=1).sqrt(), _MOST_ERROR, "logits differ from PyTorch's")
    _require(errors, _MOST_ERROR_OF_ONE, "a logit differs from PyTorch's")
    chosen = found[rows.CHOSEN]
    own = logits.log_softmax(dim=1).gather(1, chosen[:, None])[:, 0]
    _require(
        (found[rows.LOG_PROBS] - own).abs(), _SUM_ERROR, "log-probabilities are not the logits'"
    )
    agrees = chosen == expected[rows.CHOSEN]
    _require(
        1 - agrees.float().mean(), 1 - _LEAST_AGREEMENT, "other tokens are chosen than PyTorch's"
    )
    differences = (found[rows.LOG_PROBS] - expected[rows.LOG_PROBS]).abs() / spread
    _require(differences[agrees], _MOST_ERROR_OF_ONE, "log-probabilities differ from PyTorch's")


def _require(errors: torch.Tensor, most: float, phrase: str) -> None:
    worst = float(errors.nan_to_num(nan=torch.inf).max()) if errors.numel() else 0.0
    if worst > most:
        raise DifferenceError(f"{phrase}: by {worst:.2g}, where rounding explains {most:g}")
