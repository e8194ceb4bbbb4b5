"""Whether the numbers of a step are those of PyTorch in float32, but for the rounding of their type."""

import torch

from engine.model.gpu.selfcheck.rows import CHOSEN, LOG_PROBS, LOGITS, DifferenceError, StepAnswer

# In standard deviations of a row's logits, by the root mean square and of one logit. Of the 0.5b in its
# file's form kernels that sum in float32 are off by up to 0.04 and 0.2, as they round what layers hand
# on; with a block of inputs or of outputs left out in every layer by 2.7.
_MOST_ERROR, _MOST_ERROR_OF_ONE = 0.1, 1.0
_LEAST_AGREEMENT = 0.5  # of the tokens chosen: where two are nearly equal, rounding decides
_SUM_ERROR = 0.01  # of a log-probability against that of the same logits


def compare_numbers(found: StepAnswer, expected: StepAnswer) -> None:
    """Raise DifferenceError where more differs than rounding explains.

    A token that is nearly as good as another may be chosen in its place: probabilities are compared
    where the choices agree.
    """
    logits, right = found[LOGITS], expected[LOGITS]
    spread = right.std(dim=1)
    errors = (logits - right).abs() / spread[:, None]
    _require(errors.square().mean(dim=1).sqrt(), _MOST_ERROR, "logits differ from PyTorch's")
    _require(errors, _MOST_ERROR_OF_ONE, "a logit differs from PyTorch's")
    chosen = found[CHOSEN]
    own = logits.log_softmax(dim=1).gather(1, chosen[:, None])[:, 0]
    _require((found[LOG_PROBS] - own).abs(), _SUM_ERROR, "log-probabilities are not the logits'")
    agrees = chosen == expected[CHOSEN]
    _require(
        1 - agrees.float().mean(), 1 - _LEAST_AGREEMENT, "other tokens are chosen than PyTorch's"
    )
    differences = (found[LOG_PROBS] - expected[LOG_PROBS]).abs() / spread
    _require(differences[agrees], _MOST_ERROR_OF_ONE, "log-probabilities differ from PyTorch's")


def _require(errors: torch.Tensor, most: float, phrase: str) -> None:
    worst = float(errors.nan_to_num(nan=torch.inf).max()) if errors.numel() else 0.0
    if worst > most:
        raise DifferenceError(f"{phrase}: by {worst:.2g}, where rounding explains {most:g}")
