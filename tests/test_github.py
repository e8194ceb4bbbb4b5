"""What GitHub reads: its schemas accept the files, and what they name is there."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

from engine import VERSION

ROOT = Path(__file__).parents[1]
URLS = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["urls"]
FORMS = sorted((ROOT / ".github/ISSUE_TEMPLATE").iterdir())
WORKFLOWS = sorted((ROOT / ".github/workflows").iterdir())
SCHEMAS = [
    *((one, "github-workflows") for one in WORKFLOWS),
    *((one, f"github-issue-{'config' if one.stem == 'config' else 'forms'}") for one in FORMS),
]
RELEASE = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())["jobs"]


@pytest.mark.parametrize(("file", "schema"), SCHEMAS, ids=lambda one: Path(one).name)
def test_a_file_is_as_githubs_schema_asks(file, schema):
    command = [sys.executable, "-m", "check_jsonschema", f"--builtin-schema=vendor.{schema}", file]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_every_address_of_a_form_and_of_the_security_page_is_the_projects():
    pages = [*FORMS, ROOT / "SECURITY.md"]
    addresses = re.findall(r"https://[^\s)]+", "".join(page.read_text() for page in pages))
    assert addresses
    assert [one for one in addresses if not one.startswith(f"{URLS['Repository']}/")] == []


def test_a_bug_is_reported_with_what_explains_it():
    form = yaml.safe_load((ROOT / ".github/ISSUE_TEMPLATE/bug.yml").read_text())
    labels = " ".join(field["attributes"]["label"] for field in form["body"])
    for command in ("foregram --version", "foregram doctor --json", "foregram why"):
        assert f"`{command}`" in labels


def test_a_release_runs_tests_that_are_there():
    runs = " ".join(step.get("run", "") for step in RELEASE["build"]["steps"])
    tests = re.findall(r"tests/\S+", runs)
    assert tests
    assert [one for one in tests if not (ROOT / one).exists()] == []


def test_a_release_names_the_commit_of_its_tag_in_the_formula(tmp_path):
    """Homebrew takes no tag without it, and no file can know the commit that it is in."""
    (run,) = (
        one["run"] for one in RELEASE["build"]["steps"] if "RUNNER_TEMP" in one.get("run", "")
    )
    given = {"GITHUB_REF_NAME": f"v{VERSION}", "GITHUB_SHA": "0" * 40, "RUNNER_TEMP": str(tmp_path)}
    subprocess.run(run, shell=True, env=given, cwd=ROOT, check=True)
    formula = (tmp_path / "foregram.rb").read_text()
    assert f'tag: "v{VERSION}", revision: "{"0" * 40}"' in formula


def test_a_job_of_a_release_may_do_only_what_it_needs():
    """Nothing in what is built, tests included, can publish: that job runs no code of ours."""
    assert RELEASE["publish"]["permissions"] == {"id-token": "write"}
    assert not [step for step in RELEASE["publish"]["steps"] if "run" in step]
    assert RELEASE["build"]["permissions"]["contents"] == "read"
    assert "environment" not in RELEASE["build"]
