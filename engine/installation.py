"""What installs into this environment, or removes it: the program that made it."""

import sys
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that adds an extra of ours here."""
    what = f"'foregram[{extra}]'"
    if _has("uv-receipt.toml"):
        return f"uv tool install {what}"
    if _has("pipx_metadata.json"):
        return f"pipx install --force {what}"
    return f"{sys.executable} -m pip install {what}"


def uninstall_command() -> str:
    """Return the command that removes foregram from here."""
    if _has("uv-receipt.toml"):
        return "uv tool uninstall foregram"
    if _has("pipx_metadata.json"):
        return "pipx uninstall foregram"
    return f"{sys.executable} -m pip uninstall foregram"


def _has(name: str) -> bool:
    """Whether the environment has a file that its maker leaves in it."""
    return Path(sys.prefix, name).exists()
