"""A line read character by character: where its code ends, and what is still open there."""

from typing import NamedTuple

_LONG = 2_000  # characters of a line that nobody has written by hand
_QUOTES = "\"'`"
PROSE = ("markdown", "plaintext")  # an apostrophe is no string there; new files are plain text
# Nor is it in these, or a quote begins a comment.
UNPAIRED = (
    *PROSE,
    "clojure",
    "lisp",
    "scheme",
    "racket",
    "ocaml",
    "haskell",
    "latex",
    "tex",
    "vim",
)
UNPAIRED_CLOSERS = ("shellscript",)  # branches of `case`
_MARKS = {
    "python": ("#",),
    "ruby": ("#",),
    "shellscript": ("#",),
    "yaml": ("#",),
    "toml": ("#",),
    "dockerfile": ("#",),
    "makefile": ("#",),
    "lua": ("--",),
    "sql": ("--",),
    "haskell": ("--",),
    "latex": ("%",),
    "clojure": (";",),
    "lisp": (";",),
    "plaintext": (),
    "markdown": (),
    "html": (),
    "css": (),
}
_C_LIKE = ("//",)


class LineScan(NamedTuple):
    """What a piece of a line holds.

    `quote` is the one that is open at its end; `comment` the column where a line comment begins.
    """

    quote: str | None
    comment: int | None


def comment_marks(language_id: str) -> tuple[str, ...]:
    """What begins a comment that ends with its line."""
    return _MARKS.get(language_id, _C_LIKE)


def scan_line(text: str, marks: tuple[str, ...]) -> LineScan:
    """Read a line, which begins outside of strings and comments; a very long one tells nothing."""
    if len(text) > _LONG:
        return LineScan(None, None)
    quote: str | None = None
    skip = False
    for column, character in enumerate(text):
        if skip:
            skip = False
        elif quote is not None:
            skip = character == "\\"
            quote = None if character == quote else quote
        elif text.startswith(marks, column):
            return LineScan(None, column)
        elif character in _QUOTES and not _is_apostrophe(text, column):
            quote = character
    return LineScan(quote, None)


def code_of(line: str, marks: tuple[str, ...]) -> str:
    """The line without its comment and without blanks at its end."""
    return line[: scan_line(line, marks).comment].rstrip()


def _is_apostrophe(text: str, column: int) -> bool:
    """As in "don't", or in a Rust lifetime: `'` there opens no string."""
    before = text[max(column - 1, 0) : column]
    return text[column] == "'" and (before.isalnum() or before in ("<", "&"))
