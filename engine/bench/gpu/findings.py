"""What a run has found, as one object and in a file."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.bench.report import plain
from engine.errors import ConfigurationError


@dataclass(slots=True)
class Findings:
    """What became of each section, by its name."""

    facts: dict[str, str]
    results: dict[str, Any] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """Everything."""
        return {
            "machine": self.facts,
            "sections": {name: plain(result) for name, result in self.results.items()},
            "failures": self.failures,
            "section_seconds": plain(self.seconds),
        }

    def save(self, path: Path) -> None:
        """Write the object. Raises ConfigurationError where the file cannot be written."""
        try:
            path.write_text(json.dumps(self.as_json(), indent=1) + "\n", "utf-8")
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be written: {error}") from error
