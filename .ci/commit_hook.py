"""Adds `engine/commit.txt` to what is built; `foregram --version` prints it."""

import runpy
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class CommitHook(BuildHookInterface[Any]):
    """Adds the file to a wheel and to a source distribution, not to an editable installation."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Write the commit into a file outside, as a build changes nothing in a clone."""
        commit = runpy.run_path(f"{self.root}/engine/commit.py")["commit"]()
        if version != "editable" and commit:
            self.folder = TemporaryDirectory()
            written = Path(self.folder.name, "commit.txt")
            written.write_text(commit)
            build_data["force_include"][str(written)] = "engine/commit.txt"

    def finalize(self, *_: object) -> None:
        """Remove that file."""
        if hasattr(self, "folder"):
            self.folder.cleanup()
