"""package.json has what the stores show, and its walkthrough leads to what is there."""

import json
import re
import struct
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
FOLDER = ROOT / "editor_plugins/vscode"
ADDRESS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]["Repository"]
README = (FOLDER / "README.md").read_text()


@pytest.fixture(scope="module")
def manifest():
    return json.loads((FOLDER / "package.json").read_text())


@pytest.fixture(scope="module")
def steps(manifest):
    (walkthrough,) = manifest["contributes"]["walkthroughs"]
    return walkthrough["steps"]


def test_the_stores_may_publish_it(manifest):
    assert "private" not in manifest
    assert {"publisher", "displayName", "description", "license", "categories"} <= manifest.keys()
    assert len(manifest["keywords"]) <= 30


def test_the_icon_is_a_square_picture_that_is_large_enough(manifest):
    header = (FOLDER / manifest["icon"]).read_bytes()[:24]
    width, height = struct.unpack(">II", header[16:])
    assert header.startswith(b"\x89PNG")
    assert width == height >= 128


def test_every_address_is_the_projects(manifest):
    fields = ("homepage", "repository", "bugs", "qna", "vsce")
    addresses = re.findall(r"https:[^\"]+", json.dumps([manifest[name] for name in fields]))
    assert {one.removeprefix(ADDRESS)[:1] for one in addresses} <= {"", "/"}
    folder = manifest["repository"]["directory"]
    assert ROOT / folder == FOLDER
    assert manifest["vsce"]["baseImagesUrl"] == f"{ADDRESS}/raw/HEAD/{folder}"
    assert manifest["vsce"]["baseContentUrl"] == f"{ADDRESS}/blob/HEAD/{folder}"


def test_the_pages_pictures_are_there_and_of_a_kind_that_the_stores_show():
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README)
    assert pictures
    for one in pictures:
        assert (FOLDER / one).exists(), one
        assert one.endswith((".png", ".gif"))


def test_the_page_names_the_sizes_that_the_extension_asks_consent_for():
    sizes = re.findall(r"download ([\d.]+ GB) and take ([\d.]+ GB)", source("installation.ts"))
    assert len(sizes) == 2
    for download, disk in sizes:
        assert f"| {download} | {disk} |" in README


def source(name):
    return (FOLDER / "src" / name).read_text()


def test_the_walkthrough_has_three_steps_from_the_server_to_a_suggestion(steps):
    assert [step["id"] for step in steps] == ["install", "model", "suggestion"]


def test_the_walkthrough_runs_commands_and_reads_settings_that_are_there(manifest, steps):
    contributed = manifest["contributes"]
    ours = {one["command"] for one in contributed["commands"]}
    settings = {name for group in contributed["configuration"] for name in group["properties"]}
    text = json.dumps(steps)
    assert set(re.findall(r"(?:command:|onCommand:)(foregram\.\w+)", text)) <= ours
    assert set(re.findall(r"openSettings\?%22([\w.]+)%22", text)) <= settings
    for step in steps:
        assert step["completionEvents"]
        assert (FOLDER / step["media"]["image"]).exists()


def test_each_context_that_completes_a_step_is_set(steps):
    events = [event for step in steps for event in step["completionEvents"]]
    contexts = [event.removeprefix("onContext:") for event in events if "onContext:" in event]
    assert contexts
    code = "".join(path.read_text() for path in (FOLDER / "src").glob("*.ts"))
    assert [one for one in contexts if f'"{one}"' not in code] == []
