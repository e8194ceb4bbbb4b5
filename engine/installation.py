"""What installs into this environment, or removes it: the program that made it."""

import sys
from pathlib import Path


def install_command(extra: str) -> str:
    """Return the command that adds an extra of ours here."""
    program = _maker()
    again = " --force" if program == "pipx" else ""  # it leaves alone what is there
    return f"{program} install{again} 'foregram[{extra}]'"


def upgrade_command() -> str:
    """Return the command that brings the newest version, and all that it needs, here."""
    program = _maker()
    upgrade = "install --upgrade" if program.endswith(" pip") else "upgrade"
    return f"{program} {upgrade} foregram"


def uninstall_command() -> str:
    """Return the command that removes foregram from here."""
    return f"{_maker()} uninstall foregram"


def _maker() -> str:
    """Return the program that made this environment, by the file that it leaves there."""
    if Path(sys.prefix, "uv-receipt.toml").exists():
        return "uv tool"
    if Path(sys.prefix, "pipx_metadata.json").exists():
        return "pipx"
    return f"{sys.executable} -m pip"
