"""Languages whose quotes or brackets need no partner, and where a comment begins."""

import re
from functools import cache

from engine.text.brackets import Balance, balance
from lsp_server.language_names import PROSE, block_comments, comment_signs

_LONG = 2_000  # characters of a line that nobody has written by hand
UNPAIRED = (*PROSE, "latex", "vim", "vb")  # brackets neither, or a quote begins a comment
# An apostrophe is no string there.
APOSTROPHES = (
    "clojure",
    "lisp",
    "scheme",
    "racket",
    "ocaml",
    "coq",
    "haskell",
    "agda",
    "lean",
    "idris",
)
UNPAIRED_CLOSERS = ("shellscript",)  # branches of `case`


def scan_line(text: str, signs: tuple[str, ...]) -> Balance:
    """Read a line, which begins outside of strings and comments; a very long one tells nothing."""
    return Balance() if len(text) > _LONG else balance(text, signs)


def code_of(line: str, signs: tuple[str, ...]) -> str:
    """The line without its comment and without blanks at its end."""
    return line[: scan_line(line, signs).comment].rstrip()


def comment_end(text: str, language: str) -> str:
    """What ends the block comment that `text` ends in; "" where it ends in none."""
    ends, at = block_comments(language), 0
    while ends:
        found = next((one for one in _marks(language).finditer(text, at) if one["block"]), None)
        if found is None:
            break
        end = ends[found["block"]]
        at = text.find(end, found.end())
        if at < 0:
            return end
        at += len(end)
    return ""


@cache
def _marks(language: str) -> re.Pattern[str]:
    """Strings and line comments, which may hold what begins a block comment elsewhere."""
    lines = "".join(f"|{re.escape(sign)}[^\n]*" for sign in comment_signs(language))
    blocks = "|".join(map(re.escape, block_comments(language)))
    string = r"""(?P<quote>["`]|(?<!\w)')(?:\\.|(?!(?P=quote))[^\\\n])*(?P=quote)"""
    # An escaped quote begins no string: else each of a line's would be read to its end.
    return re.compile(rf"\\.|{string}|(?P<block>{blocks}){lines}")
