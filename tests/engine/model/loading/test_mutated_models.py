"""A model file with anything changed in it runs, or is refused with a sentence; nothing else.

`MUTATED_MODELS=2000` tries so many of each kind, and `NUMBA_BOUNDSCHECK=1` checks each index.
"""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.support.mutated_models import KINDS

_COUNT = int(os.environ.get("MUTATED_MODELS", "10"))


@pytest.mark.slow
@pytest.mark.timeout(240 + 3 * _COUNT)
@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_model_file_runs_or_is_refused_with_a_sentence(kind: str, tmp_path: Path) -> None:
    outcomes, faults, first = Counter[str](), list[str](), 0
    while first < _COUNT:
        command = [sys.executable, "-m", "tests.support.mutated_models", kind, str(first)]
        with (tmp_path / "stderr").open("w") as stderr:
            child = subprocess.run(
                [*command, str(_COUNT - first)],
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=os.environ | {"NUMBA_CACHE_DIR": _numba_cache(tmp_path)},
                text=True,
                check=False,
            )
        lines = [json.loads(line) for line in child.stdout.splitlines()]
        for tried, result in zip(lines[::2], lines[1::2], strict=False):
            outcomes[result["outcome"].partition(":")[0]] += 1
            if result["outcome"].startswith("!"):
                faults.append(f"{tried}: {result['outcome']}")
        first += len(lines) // 2
        if first < _COUNT:  # it ended in the middle of one
            assert lines, (tmp_path / "stderr").read_text()[-2000:]
            faults.append(f"{lines[-1]}: the process ended with {child.returncode}")
            first += 1
    sys.stdout.write(f"{kind}: {dict(outcomes)}\n")
    assert not faults, "\n".join(faults)
    assert outcomes["runs"] < sum(outcomes.values())


def _numba_cache(folder: Path) -> str:
    """One of its own where indices are checked: numba does not tell such code apart."""
    is_checked = os.environ.get("NUMBA_BOUNDSCHECK", "0") != "0"
    return str(folder / "numba") if is_checked else os.environ.get("NUMBA_CACHE_DIR", "")
