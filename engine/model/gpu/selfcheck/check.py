"""Check a model on a device: its rows in all trees, its numbers and its replays."""

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

_PATH = (5, 6, 7, 8)  # arbitrary tokens
_REPLAYED_ROWS = 16  # of the step with one tree: they fill a product's smallest tile


# In standard deviations of a row's logits: root mean square, and of a single logit. On the 0.5b in
# its file's form, rounding of activations gives up to 0.04 and 0.2 with sums in float32. Leaving
# out a block of inputs or outputs in every layer gives 2.7.
_MOST_ERROR, _MOST_ERROR_OF_ONE = 0.1, 1.0
_LEAST_AGREEMENT = 0.5  # share of equal choices: rounding decides between near-equal tokens
_SUM_ERROR = 0.01  # most difference of a log-probability from that of its own logits


@dataclass(frozen=True, slots=True)
class FormCheck:
    """A model in the form under check, with two references that share its weights and cache.

    `pytorch` runs in float32. `plain` starts no kernel early; it is None if `model` starts none.
    """

    model: GpuQwen2
    pytorch: GpuQwen2
    plain: GpuQwen2 | None
    extent: Extent

    def run(self, progress: Progress) -> str:
        """Check, clear the cache and return what could not be compared. Raises DifferenceError."""
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
        """Run two steps many times, since a race shows only by chance."""
        for steps in self._replayed():
            first = rows.answers(self.model, steps)
            if self.plain is not None:
                for one, other in zip(rows.answers(self.plain, steps), first, strict=True):
                    rows.compare(one, other, "where kernels start early")
            for _ in range(self.extent.replays - 1):
                for one, other in zip(rows.answers(self.model, steps), first, strict=True):
                    rows.compare(one, other, "from run to run")

    def _replayed(self) -> Iterator[list[StepInput]]:
        """Yield a step with one tree after a short text, and one with four long texts."""
        *_, length = rows.fitted(self.model, self.extent.lengths, texts=4)
        tree, few = self._tree(min(_REPLAYED_ROWS, self.extent.most_rows)), self._tree(4)
        yield [StepInput(rows.slot_behind(self.model, self.extent.lengths[0]), tree, rows.DRAWN)]
        slots = [rows.slot_behind(self.model, length)]
        for fewer in (1, 60, 130):
            slots.append(self.model.new_slot(length + rows.ROOM))
            slots[-1].copy_from(slots[0], max(1, slots[0].length - fewer))
        yield [StepInput(slot, few, wants_logits=True) for slot in slots]

    def _compare_with_pytorch(self, lengths: list[int]) -> str:
        """Compare the rows of the largest tree, whose bits all other trees share."""
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
    """Raise DifferenceError if more differs than rounding explains.

    Near-equal tokens may swap, so probabilities are compared only where the choices agree.
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
