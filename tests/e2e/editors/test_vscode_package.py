"""The packed extension holds what runs, what it installs, and what the stores show; nothing else."""

import json
import re
import zipfile

import pytest

from engine import VERSION
from tests.support.vscode import foregram_extension

ALSO = {  # what vsce makes, and how it names our pages
    "[Content_Types].xml",
    "extension.vsixmanifest",
    "extension/LICENSE.txt",
    "extension/changelog.md",
    "extension/readme.md",
}
OURS = {
    "extension/package.json",
    "extension/dist/extension.js",
    "extension/dist/extension.web.js",
    "extension/dist/uninstall.js",
    "extension/requirements/locked.txt",
    "extension/requirements/locked-gpu.txt",
    f"extension/server/foregram-{VERSION}-py3-none-any.whl",
}


@pytest.fixture(scope="module")
def packed():
    with zipfile.ZipFile(foregram_extension()) as opened:
        yield opened


def test_it_holds_what_belongs_there_and_nothing_else(packed):
    manifest = json.loads(packed.read("extension/package.json"))
    (walkthrough,) = manifest["contributes"]["walkthroughs"]
    shown = {manifest["icon"], *(step["media"]["image"] for step in walkthrough["steps"])}
    pictures = {f"extension/{one}" for one in shown}
    assert set(packed.namelist()) == ALSO | OURS | pictures


def test_every_picture_of_its_page_has_a_full_address(packed):
    page = packed.read("extension/readme.md").decode()
    manifest = json.loads(packed.read("extension/package.json"))
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", page)
    assert pictures
    assert all(one.startswith(manifest["vsce"]["baseImagesUrl"] + "/images/") for one in pictures)
