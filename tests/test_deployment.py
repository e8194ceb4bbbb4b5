"""What the files to deploy a host promise: every path, option, setting and metric in them is there."""

import http.server
import json
import re
import shlex
import subprocess
import sys
import threading
import tomllib
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path

import msgspec
import pytest
import yaml
from packaging.specifiers import SpecifierSet

from engine import VERSION
from engine.host.protocol import Feedback
from engine.model_names import kind_of
from lsp_server.cli.arguments import build_parser
from lsp_server.settings import Settings, variable_of
from tests.support.held_engine import HeldEngine
from tests.support.running_host import ask, buffer, running_host

ROOT = Path(__file__).parents[1]
FOLDER = ROOT / "engine/host/deploy"
VARIABLES = {variable_of(field.name) for field in msgspec.structs.fields(Settings)}
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


@dataclass(frozen=True)
class Stage:
    """A part of a Dockerfile: its instructions and those of the stage that it is made from."""

    base: str
    steps: tuple[tuple[str, str], ...]

    def all(self, instruction):
        return [what for name, what in self.steps if name == instruction]

    def last(self, instruction):
        return self.all(instruction)[-1]

    @property
    def environment(self):
        words = (word for what in self.all("ENV") for word in shlex.split(what))
        return dict(word.split("=", 1) for word in words)

    @property
    def command(self):
        return [*json.loads(self.last("ENTRYPOINT")), *json.loads(self.last("CMD"))]


def stages():
    """The stages of our Dockerfile by their names, and what stands before them."""
    lines = [line for line in (FOLDER / "Dockerfile").read_text().splitlines() if line[:1] != "#"]
    steps = [step.split(maxsplit=1) for step in "\n".join(lines).replace("\\\n", " ").splitlines()]
    found, name = {"": Stage("", ())}, ""
    for instruction, what in filter(None, steps):
        if instruction == "FROM":
            base, _, name = what.split()
            found[name] = Stage(base, found[base].steps if base in found else ())
        else:
            one = found[name]
            found[name] = Stage(one.base, (*one.steps, (instruction, what)))
    return found


def compose():
    return yaml.safe_load((FOLDER / "compose.yaml").read_text())


def unit():
    """The settings of our unit: each with all its values."""
    found: dict[str, list[str]] = {}
    for line in (FOLDER / "foregram.service").read_text().splitlines():
        if line and line[0] not in "#[":
            name, value = line.split("=", 1)
            found.setdefault(name, []).append(value)
    return found


def parsed(command):
    """A command line that begins with `foregram`; an option that it lacks ends the test."""
    return build_parser().parse_args(command[1:])


def assert_known(environment):
    ours = {name: value for name, value in environment.items() if name.startswith("FOREGRAM_")}
    assert set(ours) <= VARIABLES
    assert kind_of(ours.get("FOREGRAM_MODEL", "offline")) != "unknown"


TARGETS = pytest.mark.parametrize("target", ["cpu", "cuda"])


@TARGETS
def test_an_image_runs_a_command_that_is_there_as_a_user_of_its_own(target):
    stage = stages()[target]
    arguments = parsed(stage.command)
    assert (arguments.host, f"{arguments.port}") == ("0.0.0.0", stage.last("EXPOSE"))
    assert arguments.tls_cert
    assert not arguments.insecure
    assert stage.last("USER").split(":")[0] not in ("0", "root")
    assert [name for name, _ in stage.steps].index("USER") == len(stage.steps) - 1
    assert_known(stage.environment)
    assert stage.environment["FOREGRAM_CACHE"].startswith(stage.last("VOLUME") + "/")


@TARGETS
def test_an_image_holds_no_secret(target):
    stage = stages()[target]
    secrets = re.findall(r"/run/secrets/(\w+)", " ".join(stage.command))
    assert len(secrets) == 3
    settings = [*stage.all("ENV"), *stage.all("ARG")]
    assert not re.search(r"token|secret|password|\bkey\b", " ".join(settings), re.I)
    assert not [one for one in stage.all("COPY") if "secret" in one or "token" in one]


def test_an_image_is_made_of_what_stands_in_the_repository():
    copied = [what.split()[:-1] for what in stages()["wheel"].all("COPY")]
    kept = re.findall(r"^!(.+)", (ROOT / ".dockerignore").read_text(), re.M)
    for name in (name for names in copied for name in names):
        assert (ROOT / name).exists(), name
        assert any(fnmatch(name, pattern) for pattern in kept), f"{name} is ignored"
    packages = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    assert set(packages) <= {name for names in copied for name in names}


def test_the_image_has_the_python_of_the_project():
    before = stages()[""].all("ARG")
    python = next(one for one in before if one.startswith("PYTHON=")).removeprefix("PYTHON=")
    least = PROJECT["requires-python"].removeprefix(">=")
    assert tuple(map(int, python.split("."))) >= tuple(map(int, least.split(".")))


@TARGETS
def test_an_image_is_labelled_as_the_project(target):
    label = shlex.split(stages()[target].last("LABEL"))
    found = {name.rpartition(".")[2]: value for name, value in (one.split("=") for one in label)}
    assert found.pop("description")
    assert found == {
        "title": PROJECT["name"],
        "source": PROJECT["urls"]["Repository"],
        "version": VERSION,
        "licenses": PROJECT["license"],
    }


@pytest.mark.parametrize(("target", "has_torch"), [("cpu", False), ("cuda", True)])
def test_only_the_image_for_gpus_has_torch(target, has_torch):
    steps = " ".join(stages()[target].all("RUN"))
    listed = re.findall(r"-r /requirements/(\S+)", steps)
    folder = ROOT / "editor_plugins/vscode/requirements"
    texts = [(folder / name).read_text() for name in listed]
    assert any(re.search(r"^torch==", text, re.M) for text in texts) is has_torch


@TARGETS
def test_an_image_fetches_no_package_without_its_hash(target):
    installs = re.findall(r"pip install.*|\$install.*", " ".join(stages()[target].all("RUN")))
    commands = " ".join(installs)
    assert "--no-deps" in commands
    fetching = [one for one in commands.split("&&") if "-r " in one]
    assert fetching
    assert all("$locked" in one for one in fetching)
    assert "--require-hashes" in " ".join(stages()[target].all("RUN"))


@pytest.mark.parametrize(("status", "is_healthy"), [(200, True), (503, False)])
def test_the_health_check_asks_the_host(status, is_healthy):
    asked = []

    class Health(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            asked.append(self.path)
            self.send_response(status)
            self.end_headers()

        def log_message(self, *_):
            """Say nothing."""

    check = stages()["cpu"].last("HEALTHCHECK")
    command = json.loads(check[check.index("[") :])
    with http.server.HTTPServer(("127.0.0.1", 0), Health) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/health"
        done = subprocess.run(
            [sys.executable, *command[1:]],
            env={"HEALTH_URL": url},
            capture_output=True,
            check=False,
        )
    assert asked == ["/health"]
    assert (done.returncode == 0) == is_healthy, done.stderr


@pytest.mark.parametrize("name", ["cpu", "gpu"])
def test_compose_runs_what_the_dockerfile_makes(name):
    service = compose()["services"][name]
    stage = stages()[service["build"]["target"]]
    context = (FOLDER / service["build"]["context"]).resolve()
    assert context == ROOT
    assert context / service["build"]["dockerfile"] == FOLDER / "Dockerfile"
    assert service["image"].split(":")[1] == service["build"]["target"]
    assert_known(service["environment"])
    assert service["ports"] == [f"{stage.last('EXPOSE')}:{stage.last('EXPOSE')}"]
    [volume] = service["volumes"]
    assert volume.split(":") == [next(iter(compose()["volumes"])), stage.last("VOLUME")]
    wanted = re.findall(r"/run/secrets/(\w+)", " ".join(stage.command))
    assert sorted(wanted) == sorted(service["secrets"]) == sorted(compose()["secrets"])
    assert service["read_only"]
    assert service["cap_drop"] == ["ALL"]


def test_the_unit_runs_a_command_that_is_there_with_its_credentials():
    arguments = parsed(shlex.split(unit()["ExecStart"][0]))
    given = {value.split(":")[0] for value in unit()["LoadCredential"]}
    used = (arguments.token_file, arguments.tls_cert, arguments.tls_key)
    assert {f"%d/{name}" for name in given} == set(map(str, used))
    environment = dict(value.split("=", 1) for value in unit()["Environment"])
    assert_known(environment)
    assert environment["FOREGRAM_CACHE"].startswith(f"%C/{unit()['CacheDirectory'][0]}")


def test_the_formula_installs_this_version_from_the_locked_requirements():
    formula = (FOLDER / "foregram.rb").read_text()
    said = dict(re.findall(r'^  (desc|homepage|license|url) "([^"]+)"', formula, re.M))
    assert said["homepage"] == PROJECT["urls"]["Homepage"]
    assert said["license"] == PROJECT["license"]
    assert said["url"] == f"{PROJECT['urls']['Repository']}.git"
    assert f'{said["url"]}", tag: "v{VERSION}"' in formula
    assert len(said["desc"]) < 80
    pythons = set(re.findall(r"python@?(3\.\d+)", formula))
    assert len(pythons) == 1
    assert pythons.pop() in SpecifierSet(PROJECT["requires-python"])
    (listed,) = re.findall(r'"([\w/]+\.txt)"', formula)
    assert (ROOT / listed).exists()
    assert set(re.findall(r"bin/(\w+)", formula)) == set(PROJECT["scripts"])
    (extra,) = re.findall(r"foregram\[(\w+)\]", formula)
    assert extra in PROJECT["optional-dependencies"]


async def test_the_dashboard_shows_metrics_that_the_host_counts(tmp_path):
    async with running_host(tmp_path, HeldEngine()) as host:
        events = [event async for event in host.complete(ask(buffer("a = ")))]
        await host.post("/v1/feedback", Feedback("one", events[-1].id, "accepted"))
        page = (await host.client.get("/metrics")).text
    dashboard = json.loads((FOLDER / "grafana.json").read_text())
    expressions = [one["expr"] for panel in dashboard["panels"] for one in panel["targets"]]
    expressions += [one["query"]["query"] for one in dashboard["templating"]["list"][1:]]
    for expression in expressions:
        for name in re.findall(r"foregram_\w+", expression):
            assert re.search(rf"^{name}[ {{]", page, re.M), name
        for label in re.findall(r"by \((\w+)\)", expression):
            [name] = set(re.findall(r"foregram_\w+", expression))
            assert re.search(rf"^{name}{{.*\b{label}=", page, re.M), expression


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_no_address_of_a_machine_stands_in_a_file(path):
    addresses = re.findall(r"https?://[^\s\"']+", path.read_text())
    ours = PROJECT["urls"]["Repository"]
    assert set(addresses) <= {"https://127.0.0.1:8012/health", ours, f"{ours}.git"}
