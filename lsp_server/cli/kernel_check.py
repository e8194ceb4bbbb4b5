"""The check of the GPU's kernels, as the last load of a model found them. It loads no torch."""

from pathlib import Path

from engine.model.gpu.selfcheck.verdict import Verdict, kept_verdicts
from lsp_server.model_choice import Check

_ADVICE = "run `foregram bench gpu --check` and send us what it writes"


def check_kernels(cache_folder: Path) -> list[Check]:
    """One check where a model was loaded on a GPU before, of the latest such load."""
    return [_of(verdict) for verdict in kept_verdicts(cache_folder)[-1:]]


def _of(verdict: Verdict) -> Check:
    what = f"on {verdict.key.get('device', 'a device')} {verdict.sentence}"
    if verdict.replaced or not verdict.is_text_equal:
        return Check("kernels", "warning", what, _ADVICE)
    return Check("kernels", "ok", what)
