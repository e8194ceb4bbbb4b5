"""Languages whose quotes or brackets need no partner, and where on a line a comment begins."""

from engine.stopping.brackets import Balance, balance
from lsp_server.language_names import PROSE

_LONG = 2_000  # characters of a line that nobody has written by hand
# An apostrophe is no string there, or a quote begins a comment.
UNPAIRED = (
    *PROSE,
    *("clojure", "lisp", "scheme", "racket", "ocaml", "coq", "haskell", "agda", "lean", "idris"),
    *("latex", "vim", "vb"),
)
UNPAIRED_CLOSERS = ("shellscript",)  # branches of `case`


def scan_line(text: str, signs: tuple[str, ...]) -> Balance:
    """Read a line, which begins outside of strings and comments; a very long one tells nothing."""
    return Balance() if len(text) > _LONG else balance(text, signs)


def code_of(line: str, signs: tuple[str, ...]) -> str:
    """The line without its comment and without blanks at its end."""
    return line[: scan_line(line, signs).comment].rstrip()
