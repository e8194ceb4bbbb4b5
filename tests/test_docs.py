"""What the documents promise: their length; files, links and commands that are there; code as it is."""

import re
from pathlib import Path

import pytest

from lsp_server.cli.arguments import build_parser
from lsp_server.cli.source_file import MAX_BYTES
from lsp_server.documents.documents import MAX_DOCUMENT_BYTES
from tests.bench.__main__ import build_parser as bench_parser

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
PLUGINS = ROOT / "editor_plugins"
PAGES = [
    README,
    *(ROOT / name for name in ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")),
    *(ROOT / name / "README.md" for name in ("lsp_server", "engine", "engine/host", "kernels")),
    *(ROOT / name / "README.md" for name in ("engine/host/compat", "tests/bench")),
    *(PLUGINS / name for name in ("other_clients.md", "neovim/README.md", "vscode/README.md")),
]
MADE = {"editor_plugins/vscode/foregram.vsix"}  # by `make vsix`
OURS = r"(?:editor_plugins|engine|kernels|lsp_server|tests)/[\w./-]*"
PARSERS = {"foregram": build_parser, "python -m tests.bench": bench_parser}
EVERY_PAGE = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


def test_the_readme_has_at_most_800_words():
    assert len(README.read_text().split()) <= 800


def test_the_readme_says_how_long_a_file_may_be():
    editor, shell = MAX_DOCUMENT_BYTES // 2**20, MAX_BYTES // 2**20
    assert f"at most {editor} MiB in an editor, {shell} MiB in the shell" in README.read_text()


def found(page, name):
    """The files of a name that stands in a page: from the page's folder on, or from the root."""
    return {*page.parent.glob(name), *ROOT.glob(name)}


@EVERY_PAGE
def test_the_files_and_folders_that_a_page_names_are_there(page):
    names = re.findall(rf"`({OURS}|[\w*][\w./*-]*(?:\.(?:lua|md|py|ts)|/))`", page.read_text())
    assert [name for name in set(names) - MADE if not found(page, name)] == []


@EVERY_PAGE
def test_the_commands_that_a_page_names_are_there_with_their_options(page, capsys):
    programs = "|".join(map(re.escape, PARSERS))
    call = rf"(?:`|^    )({programs}) ((?:bench )?[a-z]+)([^`\n]*)"
    for program, command, rest in re.findall(call, page.read_text(), re.M):
        with pytest.raises(SystemExit):
            PARSERS[program]().parse_args([*command.split(), "--help"])
        told = capsys.readouterr()
        assert not told.err, command
        assert [one for one in re.findall(r"--[a-z-]+", rest) if one not in told.out] == []


def anchors(page):
    """What links may name of a page: its headings, as they are written in addresses."""
    headings = re.findall(r"^#+ (.*)", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@EVERY_PAGE
def test_the_links_of_a_page_lead_somewhere(page):
    for path, anchor in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", page.read_text()):
        target = page.parent / path if path else page
        assert target.exists(), path
        assert not anchor or anchor in anchors(target), anchor


def without_indentation(text):
    return "\n".join(line.strip() for line in text.splitlines())


@EVERY_PAGE
def test_the_code_that_a_page_quotes_stands_in_the_file_that_it_names(page):
    text = page.read_text()
    quotes = re.findall(r"`([\w./-]+)`:\n\n *```python\n(.*?)\n *```", text, re.S)
    assert len(quotes) == text.count("```python"), "each is said to be from a file"
    for name, quote in quotes:
        [file] = found(page, name)
        for part in re.split(r"\n *\.\.\.\n", quote):
            assert without_indentation(part) in without_indentation(file.read_text()), name
