"""A Markdown page as GitHub shows it: what it links to, what links may name, and its code."""

import re
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from markdown_it.token import Token

ROOT = Path(__file__).parents[2]
_MARKDOWN = MarkdownIt("commonmark").enable("table")
_IN_HTML = re.compile(r"""\b(?:href|src(?:set)?)=["']([^"'\s]+)""")


class MarkdownPage:
    """The page in a file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.text = path.read_text("utf-8")
        self._tokens = list(_flat(_MARKDOWN.parse(self.text)))

    @property
    def links(self) -> Iterator[str]:
        """The addresses of its links and pictures."""
        for token in self._tokens:
            yield from (str(token.attrs[key]) for key in ("href", "src") if key in token.attrs)
            if token.type.startswith("html"):
                yield from _IN_HTML.findall(token.content)

    @property
    def headings(self) -> Iterator[tuple[int, str]]:
        """The level and the text of each heading."""
        for token, inside in zip(self._tokens, self._tokens[1:], strict=False):
            if token.type == "heading_open":
                yield int(token.tag[1]), inside.content

    @property
    def anchors(self) -> Iterator[str]:
        """What a link may name: the headings as GitHub writes them, numbered where they recur."""
        known = Counter[str]()
        for _, text in self.headings:
            name = re.sub(r"[^\w -]", "", text).lower().replace(" ", "-")
            yield f"{name}-{known[name]}" if known[name] else name
            known[name] += 1

    @property
    def spans(self) -> Iterator[str]:
        """The code in its sentences and tables."""
        return (token.content for token in self._tokens if token.type == "code_inline")

    @property
    def code(self) -> Iterator[str]:
        """All its code: spans and blocks."""
        kinds = {"code_block", "code_inline", "fence"}
        return (token.content for token in self._tokens if token.type in kinds)


def _flat(tokens: Iterable[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from _flat(token.children or ())


def _pages() -> Iterator[MarkdownPage]:
    """All pages of the repository, without what is built or fetched into it."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "*.md"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    paths = (ROOT / name for name in sorted(set(listed.split("\0")) - {""}))
    return (MarkdownPage(path) for path in paths if path.exists())


EVERY_PAGE = pytest.mark.parametrize(
    "page", list(_pages()), ids=lambda page: str(page.path.relative_to(ROOT))
)
