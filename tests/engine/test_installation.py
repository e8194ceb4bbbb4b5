"""What is told to install or to remove goes by the program that made the environment."""

import sys

import pytest

from engine.installation import install_command, uninstall_command, upgrade_command

PIP = f"{sys.executable} -m pip"


@pytest.mark.parametrize(
    ("left", "install", "upgrade", "uninstall"),
    [
        ("uv-receipt.toml", "uv tool install", "uv tool upgrade", "uv tool uninstall"),
        ("pipx_metadata.json", "pipx install --force", "pipx upgrade", "pipx uninstall"),
        ("pyvenv.cfg", f"{PIP} install", f"{PIP} install --upgrade", f"{PIP} uninstall"),
    ],
)
def test_the_program_that_made_the_environment_is_named(
    monkeypatch, tmp_path, left, install, upgrade, uninstall
):
    """An upgrade by uv would remove what pip has added."""
    (tmp_path / left).touch()
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    assert install_command("gpu") == f"{install} 'foregram[gpu]'"
    assert upgrade_command() == f"{upgrade} foregram"
    assert uninstall_command() == f"{uninstall} foregram"
