"""The page tells what `foregram setup --from-continue` makes of Continue's options."""

import re
from pathlib import Path

import pytest

from lsp_server.cli import continue_options

PAGE = (Path(__file__).parents[2] / "editor_plugins/coming_from.md").read_text()
TABLE = PAGE.split("| in `config.yaml` | in `foregram.toml` |\n")[1].split("\n\n")[0]
NO_OPTIONS = {"model", "apiBase", "apiKey", "autocomplete", ".continueignore"}
GIVEN = {"disable": True, "disableInFiles": ["*.md"], "multilineCompletions": "never"}
TOLD = {
    key: told
    for keys, told in re.findall(r"^\| (.*) \| (.*) \|$", TABLE, re.M)
    for key in re.findall(r"`([\w.]+)`", keys.split(":")[0])
    if key not in NO_OPTIONS
}


@pytest.mark.parametrize("key", TOLD)
def test_an_option_of_continue_becomes_the_setting_that_the_page_names(key):
    taken = dict(continue_options.option(key, GIVEN.get(key, 2)).setting)
    assert [*taken] == re.findall(r"^`(\w+)`", TOLD[key])


def test_the_page_has_every_option_that_becomes_a_setting():
    assert continue_options._SETTINGS.keys() <= TOLD.keys()
