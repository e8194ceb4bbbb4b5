"""What the pages promise: their length; files, links and pictures that are there; code as it is."""

import re
from urllib.parse import urlsplit

from lsp_server.cli.source_file import MAX_BYTES
from lsp_server.documents.documents import MAX_DOCUMENT_BYTES
from tests.support.markdown_page import EVERY_PAGE, ROOT, MarkdownPage

README = ROOT / "README.md"
MADE = {"editor_plugins/vscode/foregram.vsix"}  # by `make vsix`
OURS = r"(?:editor_plugins|engine|kernels|lsp_server|tests)/[\w./-]*"


def test_the_readme_has_at_most_800_words():
    assert len(README.read_text().split()) <= 800


def test_the_readme_says_how_long_a_file_may_be():
    editor, shell = MAX_DOCUMENT_BYTES // 2**20, MAX_BYTES // 2**20
    assert f"at most {editor} MiB in an editor, {shell} MiB in the shell" in README.read_text()


def found(page, name):
    """The files of a name that stands in a page: from the page's folder on, or from the root."""
    return {*page.path.parent.glob(name), *ROOT.glob(name)}


@EVERY_PAGE
def test_the_files_and_folders_that_a_page_names_are_there(page):
    form = re.compile(rf"{OURS}|[\w*][\w./*-]*(?:\.(?:lua|md|py|ts)|/)")
    names = filter(form.fullmatch, page.spans)
    assert [name for name in set(names) - MADE if not found(page, name)] == []


def is_well_formed(address: str) -> bool:
    """Whether an address of another site can be one."""
    parts = urlsplit(address)
    return (
        parts.scheme == "https" and "." in (parts.hostname or "") and not re.search(r"\s", address)
    )


def leads_somewhere(link: str, page: MarkdownPage) -> bool:
    """Whether a file of ours is there, with the heading that the link names."""
    path, _, anchor = link.partition("#")
    target = page.path.parent / path if path else page.path
    if not target.exists() or not target.resolve().is_relative_to(ROOT):
        return False
    return not anchor or (target.suffix == ".md" and anchor in MarkdownPage(target).anchors)


@EVERY_PAGE
def test_the_links_and_pictures_of_a_page_lead_somewhere(page):
    dead = [
        link
        for link in page.links
        if not (is_well_formed(link) if ":" in link else leads_somewhere(link, page))
    ]
    assert dead == []


def without_indentation(text):
    return "\n".join(line.strip() for line in text.splitlines())


@EVERY_PAGE
def test_the_code_that_a_page_quotes_stands_in_the_file_that_it_names(page):
    text = page.text
    quotes = re.findall(r"`([\w./-]+)`:\n\n *```python\n(.*?)\n *```", text, re.S)
    assert len(quotes) == text.count("```python"), "each is said to be from a file"
    for name, quote in quotes:
        [file] = found(page, name)
        for part in re.split(r"\n *\.\.\.\n", quote):
            assert without_indentation(part) in without_indentation(file.read_text()), name
