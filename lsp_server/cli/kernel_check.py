"""The check of the GPU's kernels, as the last load of a model found them. It loads no torch."""

from pathlib import Path

from engine.model.gpu.selfcheck.verdict import kept_verdicts
from lsp_server.model_choice import Check

_ADVICE = "run `foregram bench gpu --check` and send us what it writes"


def check_kernels(cache_folder: Path) -> list[Check]:
    """One check where a model was loaded on a GPU before, of the latest such load."""
    if not (verdicts := kept_verdicts(cache_folder)):
        return []
    latest = verdicts[-1]
    what = f"on {latest.key.get('device', 'a device')} {latest.sentence}"
    if not latest.is_well:
        return [Check("kernels", "warning", what, _ADVICE)]
    return [Check("kernels", "ok", what)]
