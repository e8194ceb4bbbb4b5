"""The Neovim plugin's options: what is checked, and that the documents say what the code does."""

import re

import msgspec
import pytest

from engine import VERSION
from lsp_server.settings import Settings
from tests.support.lua_modules import PLUGIN, load

config = load("config")
HELP = (PLUGIN / "doc/foregram.txt").read_text()
README = (PLUGIN / "README.md").read_text()
SETTINGS = [field.name for field in msgspec.structs.fields(Settings)]


def read(options):
    given, problems = config.read(load.lists(options))
    return given, list(problems.values())


def options(fields):
    return {field.name: field.default for field in fields.values()}


def lua_text(value):
    if value is None:
        return "nil"
    if isinstance(value, str):
        return '"' + value.replace("\\", "\\\\") + '"'
    texts = [lua_text(one) for one in value.values()]
    return "{ " + ", ".join(texts) + " }" if texts else "{}"


def test_without_options_all_have_their_defaults():
    given, problems = read(None)
    assert problems == []
    assert list(given.cmd.values()) == ["foregram", "lsp"]
    assert given.keymaps.accept == "<Tab>"


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"cmd": "foregram lsp"}, "the option `cmd` must be a list of strings, the command and"),
        ({"cmd": []}, "the option `cmd` must be a list of strings"),
        ({"cmd": [1]}, "the option `cmd` must be a list of strings"),
        (
            {"settings": 3},
            "the option `settings` must be a table of the server's settings, not `3`",
        ),
        ({"filetypes": {"lua": True}}, "the option `filetypes` must be a list of filetypes"),
        ({"ghost_text": "new"}, 'the option `ghost_text` must be "auto", "builtin" or "own"'),
        ({"keymaps": {"accept": 1}}, "the option `keymaps.accept` must be a key or false, not a"),
        ({"keymaps": {"acept": "x"}}, "there is no option `keymaps.acept`; there are: accept,"),
        ({"keymap": {}}, "there is no option `keymap`; there are: cmd,"),
        ("all", "setup{} takes a table, not a string"),
    ],
)
def test_a_wrong_option_is_named_and_its_default_holds(wrong, sentence):
    given, [problem] = read(wrong)
    assert problem.startswith(sentence)
    for field in config.options.values():
        if field.default is not None and field.name != "keymaps":
            assert lua_text(given[field.name]) == lua_text(field.default)
    assert given.keymaps.accept == "<Tab>"


def test_the_other_options_hold_beside_a_wrong_one():
    given, [_] = read({"cmd": 1, "ghost_text": "own", "keymaps": {"accept": "<C-y>"}})
    assert (given.ghost_text, given.keymaps.accept) == ("own", "<C-y>")


def test_keys_can_be_left_out_one_by_one_or_all():
    given, problems = read({"keymaps": {"accept": False}})
    assert (given.keymaps.accept, given.keymaps.next, problems) == (False, "<M-]>", [])
    given, problems = read({"keymaps": False})
    assert not any(given.keymaps.values())
    assert problems == []


@pytest.mark.parametrize("document", [HELP, README], ids=["help", "readme"])
def test_the_documents_name_each_option_and_key_with_its_default(document):
    blocks = re.findall(r"setup\(\{\n(.*?)\n *\}\)", document, re.S)
    [block] = [block for block in blocks if "keymaps = " in block]
    for name, default in options(config.options).items():
        if name != "keymaps":
            assert re.search(rf"^\s+{name} = {re.escape(lua_text(default))},", block, re.M), name
    for name, default in options(config.keymaps).items():
        assert re.search(rf"^\s+{name} = {re.escape(lua_text(default))},", block, re.M), name
    named = re.findall(r"^\s+(\w+) = ", block, re.M)
    assert sorted(named) == sorted(options(config.options) | options(config.keymaps))


def test_the_help_describes_each_option_key_command_and_function():
    commands = re.findall(r"^  (\w+) = ", source("commands").split("M.subcommands")[1], re.M)
    functions = re.findall(r"^(?:function )?M\.(\w+)", source("init"), re.M)
    for name in [*options(config.options), "keymaps"]:
        assert f"*foregram-{name}*" in HELP
    for name in options(config.keymaps):
        assert re.search(rf"^{name}\s", HELP, re.M), name
    for name in {*commands} - {"disable"}:
        assert f":Foregram {name}" in HELP, name
    for name in {*functions} - {"is_set_up"}:
        assert f"*foregram.{name}()*" in HELP, name


def test_the_plugin_repeats_no_setting_but_those_that_it_switches():
    """Defaults of the server live in the server alone."""
    text = source("server_settings") + source("variables")
    repeated = {name for name in SETTINGS if re.search(rf"\b{name}\b", text)}
    switched = "cache_folder enable host_url languages model runtime_folder"
    assert repeated == set(switched.split())


def test_the_settings_that_the_documents_name_are_the_servers():
    for document in (HELP, README):
        block = document.split("settings = {\n", 1)[1].split("}", 1)[0]
        named = re.findall(r"^\s+(\w+) = ", block, re.M)
        assert named
        assert set(named) <= set(SETTINGS)


def test_the_variables_of_settings_are_the_servers():
    names = {"cache_folder": "FOREGRAM_CACHE", "runtime_folder": "FOREGRAM_RUNTIME"}
    for setting, variable in names.items():
        assert f'{setting} = "{variable}"' in source("variables")


def source(name):
    return (PLUGIN / f"lua/foregram/{name}.lua").read_text()


def test_the_oldest_server_that_the_plugin_takes_is_not_newer_than_this_one():

    (oldest,) = re.findall(r'M\.VERSION = "([\d.]+)"', source("client"))
    assert not load("parts").is_older(VERSION, oldest)
