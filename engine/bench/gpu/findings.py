"""What a run has found so far, as one object and in a file."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.gpu.recipe_speeds import OWN_NOTE
from engine.bench.gpu.replays import NOTE
from engine.bench.gpu.thresholds import Threshold, thresholds_of
from engine.bench.report import plain
from engine.errors import ConfigurationError


@dataclass(slots=True)
class Findings:
    """What became of each section, by its name."""

    facts: dict[str, str]
    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def thresholds(self) -> list[Threshold]:
        """What we promise, beside what was found."""
        return thresholds_of(self.results, self.failures)

    def as_json(self) -> dict[str, Any]:
        """Everything, and the thresholds."""
        answer: dict[str, Any] = {
            "machine": self.facts,
            "thresholds": plain([threshold.as_json() for threshold in self.thresholds]),
            "sections": {name: plain(result) for name, result in self.results.items()},
            "failures": self.failures,
            "section_seconds": plain(self.seconds),
            "notes": [NOTE, OWN_NOTE],
        }
        return answer

    def save(self, path: Path) -> None:
        """Write the object. Raises ConfigurationError where the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}") from error
