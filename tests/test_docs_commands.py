"""What the pages tell people to type and to set: the real parsers and settings know all of it."""

import argparse
import json
import re
import shlex
from contextlib import suppress
from functools import cache
from importlib.util import find_spec

import msgspec

from lsp_server.cli.arguments import build_parser
from lsp_server.commands import COMMANDS
from lsp_server.settings import GONE, Settings, variable_of
from tests.bench.__main__ import build_parser as bench_parser
from tests.support.markdown_page import EVERY_PAGE, ROOT, MarkdownPage

PARSERS = {"foregram": build_parser, "python -m tests.bench": bench_parser}
_PROGRAM = "|".join(map(re.escape, PARSERS))
CALL = re.compile(rf"""(?<![\w./:"-])({_PROGRAM}) (?=[a-z-])([^\n|;&)]*)""")
FIELDS = [field.name for field in msgspec.structs.fields(Settings)]
VARIABLES = {*map(variable_of, FIELDS), "FOREGRAM_CONFIG"}
NEOVIM = MarkdownPage(ROOT / "editor_plugins/neovim/README.md")  # another test compares its options
OF_OTHERS = {"init_options", "registries"}  # options of Neovim itself and of Mason
FOREIGN = ROOT / "engine/host/compat/README.md"  # it names fields of other programs


def in_code(page, pattern):
    """All matches in the code of a page."""
    return {match for code in page.code for match in re.findall(pattern, code)}


def complaint(program, call, capsys):
    """What the real parser has against a call. A mere mention of a command needs no more."""
    words = shlex.split(re.sub(r"[\[\]]", "", call))
    is_mention = all(re.fullmatch("[a-z]+", word) for word in words)
    with suppress(SystemExit):
        PARSERS[program]().parse_args([*words, "--help"] if is_mention else words)
    said = capsys.readouterr().err
    return "" if re.search("'[A-Z]+'", said) else said  # a placeholder stands for what fits


@EVERY_PAGE
def test_the_real_parser_takes_each_command_of_a_page(page, capsys):
    calls = in_code(page, CALL)
    assert [said for program, call in calls if (said := complaint(program, call, capsys))] == []


def options_below(parser):
    """All options of a parser and its commands."""
    parser.add_now()
    for action in parser._actions:
        yield from action.option_strings
        if isinstance(action, argparse._SubParsersAction):
            for each in action.choices.values():
                yield from options_below(each)


@cache
def options_of(program):
    return frozenset(options_below(PARSERS[program]()))


@EVERY_PAGE
def test_each_option_that_a_page_names_belongs_to_a_command(page):
    unknown = {span.split()[0] for span in page.spans if re.match("--[a-z]", span)}
    for program in PARSERS:
        if unknown:  # the options of all benchmarks take seconds of imports
            unknown -= options_of(program)
    assert unknown == set()


@EVERY_PAGE
def test_each_target_of_make_that_a_page_names_is_in_the_makefile(page):
    targets = re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(), re.M)
    assert in_code(page, r"(?<![\w-])make ([a-z-]+)") - set(targets) == set()


@EVERY_PAGE
def test_each_module_of_ours_that_a_page_runs_is_there(page):
    named = in_code(page, r"python -m ((?:engine|lsp_server|tests)[\w.]*)")
    assert [name for name in named if find_spec(name) is None] == []


@EVERY_PAGE
def test_each_setting_that_a_page_sets_is_there(page):
    named = {found[1] for span in page.spans if (found := re.match(r"(\w+) = ", span))}
    assert named - {*FIELDS} - in_code(NEOVIM, r"(?m)^ +(\w+) = ") - OF_OTHERS == set()
    assert in_code(page, r"FOREGRAM_\w+") - VARIABLES == set()


@cache
def words_of_the_sources():
    """All names in our code, apart from the settings that were removed."""
    folders = (
        "engine",
        "kernels",
        "lsp_server",
        "editor_plugins/neovim",
        "editor_plugins/vscode/src",
    )
    files = (file for folder in folders for file in (ROOT / folder).rglob("*"))
    texts = (file.read_text() for file in files if file.suffix in {".lua", ".py", ".ts"})
    return {word for text in texts for word in re.findall(r"\w+", text)} - {*GONE}


@EVERY_PAGE
def test_each_name_with_underscores_in_a_page_is_in_our_code(page):
    spans = (span.removeprefix("foregram_").removesuffix("_total") for span in page.spans)
    named = {span for span in spans if re.fullmatch(r"[a-z]+(?:_[a-z0-9]+)+", span)}
    folders = {name for name in named if (ROOT / name).is_dir()}
    assert page.path == FOREIGN or named - folders - words_of_the_sources() == set()


@EVERY_PAGE
def test_each_name_of_ours_for_editors_in_a_page_is_there(page):
    manifest = json.loads((ROOT / "editor_plugins/vscode/package.json").read_text())["contributes"]
    known = {one["command"] for one in manifest["commands"]} | COMMANDS.keys()
    known |= {key for group in manifest["configuration"] for key in group["properties"]}
    named = {span for span in page.spans if re.fullmatch(r"foregram(?:\.\w+)+", span)}
    assert named - known - {"foregram.toml"} == set()
