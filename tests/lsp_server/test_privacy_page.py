"""The page about privacy names all that is kept on disk."""

import re
from pathlib import Path

from lsp_server.cli import uninstall

PAGE = (Path(__file__).parents[2] / "lsp_server/privacy.md").read_text()
OF_OLDER_VERSIONS = {"outcomes"}


def test_the_page_names_each_folder_in_the_cache_that_uninstalling_removes():
    table = PAGE.split("| folder | contents | until |\n")[1].split("\n\n")[0]
    named = {
        name
        for cell in re.findall("^(.*?`) [|]", table, re.M)
        for name in re.findall("`(.*?)`", cell)
    }
    kept = uninstall._CONVERTED.keys() | uninstall._PACKAGES.keys() | uninstall._IN_CACHE.keys()
    assert named == kept - OF_OLDER_VERSIONS
