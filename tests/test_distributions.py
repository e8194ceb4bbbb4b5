"""What is built for others to install: the same bytes each time, only what is ours, a page that works.

DISTRIBUTIONS names a folder with a wheel and a source distribution to test instead of fresh ones.
"""

import os
import re
import subprocess
import sys
import tarfile
import tomllib
from email import message_from_string
from pathlib import Path
from zipfile import ZipFile

import pytest

from engine import VERSION
from engine.commit import commit

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ADDRESS = PYPROJECT["project"]["urls"]["Repository"]
PACKAGES = ("engine", "kernels", "lsp_server")
WHEEL, SOURCES = f"foregram-{VERSION}-py3-none-any.whl", f"foregram-{VERSION}.tar.gz"
INFO = f"foregram-{VERSION}.dist-info"
LINKS = re.compile(r"(!?)\[[^\]]*\]\(([^)]+)\)")


def build(target, source, folder):
    command = [sys.executable, "-m", "hatchling", "build", "--target", target, "-d", folder]
    subprocess.run(command, cwd=source, check=True, capture_output=True)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with the wheel and the source distribution."""
    if given := os.environ.get("DISTRIBUTIONS"):
        return Path(given).resolve()
    folder = tmp_path_factory.mktemp("dist")
    build("wheel", ROOT, folder)
    build("sdist", ROOT, folder)
    return folder


@pytest.fixture(scope="module")
def wheel(built):
    with ZipFile(built / WHEEL) as opened:
        yield opened


@pytest.fixture(scope="module")
def metadata(wheel):
    return message_from_string(wheel.read(f"{INFO}/METADATA").decode())


@pytest.fixture(scope="module")
def page(metadata):
    """What PyPI shows."""
    return metadata.get_payload()


def test_each_build_has_the_same_bytes_from_a_clone_and_from_its_source_distribution(
    built, tmp_path
):
    with tarfile.open(built / SOURCES) as sources:
        sources.extractall(tmp_path, filter="data")
    unpacked = tmp_path / f"foregram-{VERSION}"
    for file in unpacked.rglob("*.py"):
        os.utime(file, (1, 1))
    build("wheel", unpacked, tmp_path)
    assert (tmp_path / WHEEL).read_bytes() == (built / WHEEL).read_bytes()


def test_a_wheel_has_all_modules_and_their_data_and_nothing_else(wheel):
    data = {"README.md", "commit.txt", "offline_models.txt", "py.typed"}
    pages = {"models.md", "privacy.md", "troubleshooting.md"}
    modules = {
        str(one.relative_to(ROOT)) for name in PACKAGES for one in (ROOT / name).rglob("*.py")
    }
    others = set(wheel.namelist()) - modules
    assert modules <= set(wheel.namelist())
    packed = {one for one in others if one.split("/")[0] in PACKAGES}
    assert {Path(one).name for one in packed} <= data | pages
    told = {f"{INFO}/{name}" for name in ("METADATA", "RECORD", "WHEEL", "entry_points.txt")}
    assert others - packed == told | {f"{INFO}/licenses/LICENSE"}


def test_a_source_distribution_has_what_builds_the_wheel_and_nothing_else(built, wheel):
    with tarfile.open(built / SOURCES) as sources:
        names = {one.removeprefix(f"foregram-{VERSION}/") for one in sources.getnames()}
    inside = {one for one in names if one.split("/")[0] in PACKAGES}
    assert {one for one in wheel.namelist() if not one.startswith(INFO)} <= inside
    assert names - inside == {
        *(".ci/commit_hook.py", ".gitignore", "CHANGELOG.md", "LICENSE", "PKG-INFO"),
        *("README.md", "pyproject.toml"),
    }


@pytest.mark.skipif(not commit(), reason="this is no clone, so its commit is unknown")
def test_what_is_built_knows_its_commit(wheel):
    assert wheel.read("engine/commit.txt").decode() == commit()


def test_each_address_of_the_project_is_of_one_repository(metadata):
    addresses = [one.split(", ")[1] for one in metadata.get_all("Project-URL")]
    assert addresses
    assert all(one.startswith(ADDRESS) for one in addresses)


def test_every_address_on_pypi_is_full(page):
    assert re.findall(r'(?:\]\(|src(?:set)?=")(?!https://|#).*', page) == []


def test_a_link_or_picture_of_the_readme_leads_to_this_version_of_its_file_on_pypi(page):
    readme = (ROOT / "README.md").read_text()
    names = {(is_image, name) for is_image, name in LINKS.findall(readme) if "//" not in name}
    names = {one for one in names if not one[1].startswith("#")}
    raw = ADDRESS.replace("github.com", "raw.githubusercontent.com")
    assert names
    for is_image, name in names:
        place = f"{raw}/v{VERSION}" if is_image else f"{ADDRESS}/blob/v{VERSION}"
        assert f"]({place}/{name})" in page
    pictures = re.findall(r'src(?:set)?="([^"]+)"', readme)
    assert pictures
    assert [one for one in pictures if f'="{raw}/v{VERSION}/{one}"' not in page] == []


def test_a_test_builds_with_what_builds_everywhere():
    extra = PYPROJECT["project"]["optional-dependencies"]["test"]
    assert set(PYPROJECT["build-system"]["requires"]) <= set(extra)


def test_the_newest_release_in_the_changelog_is_this_version():
    releases = re.findall(r"^## \[(\d.*?)\]", (ROOT / "CHANGELOG.md").read_text(), re.M)
    assert releases[0] == VERSION
