"""The template for JetBrains' LSP4IJ has the fields that it reads, and ours mean what we mean."""

import tomllib
from pathlib import Path

import msgspec
import pytest

from lsp_server.cli.arguments import build_parser
from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import GRAMMARS

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "editor_plugins/jetbrains"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


class FileType(msgspec.Struct, forbid_unknown_fields=True):
    patterns: list[str]


class Mapping(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    file_type: FileType
    language_id: str


class Template(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What LSP4IJ reads of template.json (its ServerTemplateJsonDeserializer)."""

    id: str
    name: str
    url: str
    program_args: dict[str, str]
    file_type_mappings: list[Mapping]


class Exec(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    name: str
    command: str | list[str]
    timeout: int | None = None
    ignore_stderr: bool = False
    on_fail: "Task | None" = None


class Task(msgspec.Struct, forbid_unknown_fields=True):
    exec: Exec


class Installer(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """What it reads of installer.json."""

    id: str
    name: str
    execute_on_start_server: bool
    check: Task
    run: Task


class Options(msgspec.Struct, forbid_unknown_fields=True):
    foregram: dict[str, object]


FILES = {"template": Template, "installer": Installer, "initializationOptions": Options}


def read(name):
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=FILES[name])


def commands(task):
    """The commands of a task and of those that follow where it fails."""
    yield task.exec.command
    if task.exec.on_fail is not None:
        yield from commands(task.exec.on_fail)


def test_it_has_files_that_the_client_reads_and_no_other():
    assert {path.stem for path in FOLDER.iterdir()} == FILES.keys()


@pytest.mark.parametrize("name", FILES)
def test_each_file_has_the_fields_that_the_client_reads_and_no_other(name):
    read(name)


def test_its_server_is_ours():
    template = read("template")
    program, *arguments = template.program_args["default"].split()
    assert program in PROJECT["scripts"]
    build_parser().parse_args(arguments)
    page, _, section = template.url.removeprefix(f"{PROJECT['urls']['Repository']}/").partition("#")
    titles = (ROOT / page.removeprefix("blob/HEAD/")).read_text().splitlines()
    assert section in {title.lstrip("# ").lower().replace(" ", "-") for title in titles}


def test_each_pattern_is_of_the_language_that_it_is_given_for():
    for mapping in read("template").file_type_mappings:
        for pattern in mapping.file_type.patterns:
            assert language_of_file(pattern.replace("*", "a")) == mapping.language_id, pattern


def test_each_language_whose_grammar_we_know_is_completed():
    languages = [mapping.language_id for mapping in read("template").file_type_mappings]
    assert set(GRAMMARS) <= set(languages)
    assert len(set(languages)) == len(languages)


def test_it_is_installed_by_the_name_of_our_package():
    installs = [*commands(read("installer").run)]
    assert len(installs) == 2
    assert {one[-1] for one in installs} == {PROJECT["name"]}
