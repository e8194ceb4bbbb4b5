"""`foregram edit` as a process, on a real file with the real model."""

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

SHOP = Path(__file__).parents[1] / "data" / "demo" / "inventory.py"
COMMAND = (sys.executable, "-m", "lsp_server", "edit")


@pytest.fixture(autouse=True)
def _cache(cache_folder, monkeypatch):
    monkeypatch.setenv("FOREGRAM_CACHE", str(cache_folder))


@pytest.mark.model
@pytest.mark.timeout(400)  # the first start on a machine converts the model
def test_lookahead_changes_the_steps_of_an_edit_and_not_its_text(tmp_path):
    path = tmp_path / "shop.py"
    before = f"# 🦉\n{SHOP.read_text()}".rstrip().replace("\n", "\r\n").encode()
    path.write_bytes(before)
    off, on = (
        edited(f"{path}:38-54", "Rename the variable items to found.", *options)
        for options in (("--lookahead", "off"), ("--write",))
    )
    assert on["diff"] == off["diff"]
    assert on["tokens"] == off["tokens"] == off["steps"] - 1  # the last step writes the end token
    assert on["steps"] < on["tokens"] / 3
    after = path.read_bytes()
    assert b"    found = []\r\n" in after
    assert after.count(b"\n") == after.count(b"\r\n")
    assert not after.endswith(b"\n")
    ast.parse(after)
    assert after.startswith(before[: before.index(b"def read_items")])
    assert after.endswith(before[before.index(b"def read_deliveries") :])


def edited(*words):
    command = [*COMMAND, *words, "--json"]
    result = subprocess.run(command, capture_output=True, check=False)
    assert result.returncode == 0, result.stderr.decode()
    return json.loads(result.stdout)
