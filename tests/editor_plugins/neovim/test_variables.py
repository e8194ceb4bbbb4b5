"""How the Neovim plugin hands settings to other commands of foregram, in plain Lua."""

import msgspec
import pytest

from lsp_server.settings import load_settings
from tests.support.lua_modules import load

variables = load("variables")
CASES = {
    "text": ({"host_url": "http://gpu:80"}, {"FOREGRAM_HOST_URL": "http://gpu:80"}),
    "number": ({"max_tokens": 64}, {"FOREGRAM_MAX_TOKENS": "64"}),
    "boolean": ({"enable": False}, {"FOREGRAM_ENABLE": "false"}),
    "camelCase": ({"maxTokens": 64}, {"FOREGRAM_MAX_TOKENS": "64"}),
    "short name": ({"cacheFolder": "/c"}, {"FOREGRAM_CACHE": "/c"}),
    "list": ({"disabled_globs": ["*.min.js", "a/*"]}, {"FOREGRAM_DISABLED_GLOBS": "*.min.js,a/*"}),
    "table": (
        {"languages": {"python": True, "markdown": False}},
        {"FOREGRAM_LANGUAGES": "markdown=false,python=true"},
    ),
    "empty table": ({"languages": {}}, {"FOREGRAM_LANGUAGES": ""}),
}


def of(settings):
    return dict(variables.of(load.lists(settings)))


@pytest.mark.parametrize(("settings", "named"), CASES.values(), ids=CASES)
def test_a_setting_of_each_type_becomes_a_variable(settings, named):
    assert of(settings) == named


def test_the_server_reads_lists_and_tables_as_they_were_given():
    given = {"disabled_globs": ["*.min.js", "a/*"], "languages": {"python": True, "latex": False}}
    read = msgspec.structs.asdict(load_settings(environ=of(given)).required())
    assert read["disabled_globs"] == ("*.min.js", "a/*")
    assert read["languages"] == {"python": True, "latex": False}


def test_an_empty_table_is_read_as_the_default_of_the_server():
    assert load_settings(environ=of({"languages": {}})).required().languages == {}
