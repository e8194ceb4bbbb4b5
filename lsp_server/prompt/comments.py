"""How languages write comments, and where on a line one begins."""

from lsp_server.prompt.brackets import Balance, balance

_LONG = 2_000  # characters of a line that nobody has written by hand
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
_SIGNS = {
    "python": ("#",),
    "ruby": ("#",),
    "shellscript": ("#",),
    "yaml": ("#",),
    "toml": ("#",),
    "dockerfile": ("#",),
    "makefile": ("#",),
    "r": ("#",),
    "julia": ("#",),
    "perl": ("#",),
    "elixir": ("#",),
    "powershell": ("#",),
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


def comment_signs(language_id: str) -> tuple[str, ...]:
    """What begins a comment that ends with its line."""
    return _SIGNS.get(language_id, _C_LIKE)


def scan_line(text: str, signs: tuple[str, ...]) -> Balance:
    """Read a line, which begins outside of strings and comments; a very long one tells nothing."""
    return Balance() if len(text) > _LONG else balance(text, signs)


def code_of(line: str, signs: tuple[str, ...]) -> str:
    """The line without its comment and without blanks at its end."""
    return line[: scan_line(line, signs).comment].rstrip()
