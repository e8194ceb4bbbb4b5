"""Judges whether an insertion leaves a line's brackets, quotes and statement whole."""

import json
import re
import tomllib
from collections.abc import Callable
from functools import cached_property

from engine.text.brackets import CLOSERS, QUOTES, Balance, balance
from lsp_server.completion.cursor_context import LONGEST_SIDE, MOST_HEAD, CursorContext
from lsp_server.language_names import TAGGED, UNPAIRED_CLOSERS
from lsp_server.prompt.place import comment_end, is_header, opens_block

_BEGUN = re.compile(r"\s*(\S+\s|[^\s(]+\(|[^\s\w])")  # more than part of a statement's first word
READERS: dict[str, Callable[[str], object]] = {"json": json.loads, "toml": tomllib.loads}
_OPEN_TAG = re.compile(r"(?<![\w)\]])<[a-zA-Z/][^<>]*\Z")
_WITH_DOCUMENTS = ("shellscript", "dockerfile", "ruby", "php", "perl", "terraform")
_DOCUMENT = re.compile(r"<<[-~<]?\s?[\"']?([A-Z_]\w*)")
_WORD_IN_CALL = re.compile(r"\w\(.*\w\s*\Z", re.DOTALL)
_GOES_ON = re.compile(r"[^\w\s\"'@#/}\]]")  # starts a line that closes or continues a call
_MOST_READ = 30_000  # characters of a document; parsing so much TOML takes 10 ms
_FILLINGS = ("", "0", '"', '"x": 0', "x = 0", '": 0', " = 0", ": 0")


class LineJudge:
    """Judges by the cursor's line alone."""

    def __init__(self, context: CursorContext) -> None:
        self.context, self._signs = context, context.comment_signs
        self._before, self._rest = context.before[-LONGEST_SIDE:], context.rest[:LONGEST_SIDE]
        self._is_python = context.language_id == "python"

    def prepare(self) -> None:
        """Count the open brackets and quotes around the cursor."""
        _ = self._was, self._text

    def begin(self) -> None:
        """Begin to judge another text at the same cursor."""

    @cached_property
    def _was(self) -> Balance:
        return balance(self._before + self._rest, self._signs)

    @cached_property
    def _text(self) -> Balance | None:
        """The document's brackets; an insertion may close those that are open."""
        return None if self.context.is_cut else self.context.balance()

    def accepts(self, text: str, replaced: int) -> bool:
        """Whether brackets, quotes and the statement's end are as whole as before."""
        text += self._closers_of_header(text)
        rest = self._rest[replaced:].strip()
        now = balance(self._before + text + self._rest[replaced:], self._signs)
        own = range(len(self._before), len(self._before) + len(text))
        return not (
            len(now.open) > len(self._was.open)
            or any(start in own for start in now.starts)
            or self._leaves_open(text, now)
            or self._closes_otherwise(now)
            or (text.rstrip().endswith(";") and self._goes_on(rest))
            or (not rest and self._ends_in_header(text))
        )

    def _leaves_open(self, _text: str, now: Balance) -> bool:
        return now.quote is not None and self._was.quote is None

    @property
    def _is_begun(self) -> bool:
        return _BEGUN.match(self._before) is not None

    def _closers_of_header(self, text: str) -> str:
        """Return the closers of a block that `text` opens at the end of the user's header."""
        line = self._before + text
        is_header = self._is_begun and "\n" not in text and opens_block(line)
        if not is_header or balance(text, self._signs).open != "{":
            return ""
        return balance(line, self._signs).closers

    def _missing_brackets(self, text: str = "") -> str:
        """Return the closers of all brackets open at the end of `text`, innermost first."""
        is_whole = self._text is not None and not self._text.open
        head = balance(self.context.head[-MOST_HEAD:] + text, self._signs)
        return "" if is_whole else head._replace(quote=None).closers

    @property
    def _missing_ends(self) -> list[str]:
        ends, quote = self.context.text_ends, balance(self._before, self._signs).quote
        return [*ends, quote] if quote else ends

    def _closes_otherwise(self, now: Balance) -> bool:
        """Whether the text after the cursor closes other brackets, or more than were open."""
        if self.context.language_id in UNPAIRED_CLOSERS or self._text is None:
            return False
        was, text = self._was.surplus, self._text
        return not was - text.surplus <= now.surplus <= was + len(text.open)

    def _goes_on(self, rest: str) -> bool:
        return bool(rest) and rest[0] not in CLOSERS + ";," and not rest.startswith(self._signs)

    def _ends_in_header(self, text: str) -> bool:
        """Whether the text ends in a block's header that the user has not, or hardly, begun."""
        *above, last = text.split("\n")
        line = last if above else self._before + last
        is_begun = self._is_begun if self._is_python else bool(self._before.strip())
        return bool(above or not is_begun) and is_header(line)


class ApostropheJudge(LineJudge):
    """Judges a language in which apostrophes and backquotes do not quote."""

    def accepts(self, text: str, _replaced: int) -> bool:
        """Whether the text closes the brackets and quotes that it opens."""
        own = balance(text.replace("'", " ").replace("`", " "), self._signs)
        is_in_string = self._before.count('"') % 2 == 1
        return not own.open and (own.quote is None or is_in_string)


class DocumentJudge(LineJudge):
    """Judges a language without a grammar; JSON and TOML by the whole document."""

    def accepts(self, text: str, replaced: int) -> bool:
        """Whether a line that ends here is whole, and the document as readable as before."""
        ends_line = not self._rest[replaced:].strip()
        if not super().accepts(text, replaced):
            return False
        if self._reads(text, replaced):
            return True
        return not (ends_line and self._is_cut(text)) and not self._is_readable

    def _leaves_open(self, text: str, now: Balance) -> bool:
        if self._opens_document(text) or (not self._is_in_comment and self._ends_in_comment(text)):
            return True
        if "\n" in text and not self._is_in_string:
            return self._ends_in_string(text)
        return super()._leaves_open(text, now)

    @cached_property
    def _is_in_comment(self) -> bool:
        return self._ends_in_comment("")

    @cached_property
    def _is_in_string(self) -> bool:
        return self._ends_in_string("")

    def _ends_in_comment(self, text: str) -> bool:
        return comment_end(self._head + text, self.context.language_id) != ""

    def _ends_in_string(self, text: str) -> bool:
        return balance(self._head + text, self._signs, QUOTES).quote is not None

    def _opens_document(self, text: str) -> bool:
        """Whether the text opens a here-document that ends neither in it nor below."""
        if self.context.language_id not in _WITH_DOCUMENTS:
            return False
        whole = "\n".join((text, *self.context.below))
        opened = _DOCUMENT.finditer(text)
        return not all(re.search(rf"\n\s*{one[1]}\b", whole[one.end() :]) for one in opened)

    def _is_cut(self, text: str) -> bool:
        line = self._before + text
        found = balance(line, self._signs)
        is_in_line = found.quote is not None or self._is_in_call(line, found)
        return (
            text.rstrip().endswith("=")
            or (text.endswith("\\") and self._takes_next_line)
            or (is_in_line and "\n" not in text)
            or self._is_in_tag(line)
        )

    @property
    def _takes_next_line(self) -> bool:
        """Whether a backslash would join the next statement to this line."""
        below = self.context.below[:1]
        return any(line.strip() and not line[:1].isspace() for line in below)

    def _is_in_call(self, line: str, found: Balance) -> bool:
        """Whether the line ends with a word in a call that no line below continues."""
        before_bracket = found.starts[-1] - 1 if found.starts else -1
        is_in_call = before_bracket >= 0 and _WORD_IN_CALL.match(line, before_bracket)
        return bool(is_in_call) and _GOES_ON.match(self._below) is None

    def _is_in_tag(self, line: str) -> bool:
        """Whether the line ends in a tag that no line below ends."""
        if self.context.language_id not in TAGGED or not _OPEN_TAG.search(line):
            return False
        return ">" not in self._below.partition("<")[0]

    @cached_property
    def _head(self) -> str:
        return self.context.head[-MOST_HEAD:]

    @cached_property
    def _below(self) -> str:
        return "\n".join(self.context.below).lstrip()

    @cached_property
    def _is_readable(self) -> bool:
        """Whether some filling at the cursor makes the document readable."""
        return any(self._reads(filling + end, 0) for filling in _FILLINGS for end in ("", ",", '"'))

    def _reads(self, text: str, replaced: int) -> bool:
        context, read = self.context, READERS.get(self.context.language_id)
        tail = "\n".join((context.rest[replaced:], *context.below))
        if read is None or context.is_cut or len(context.head) + len(tail) > _MOST_READ:
            return False
        try:
            read(context.head + text + tail)
        except (ValueError, RecursionError):
            return False
        return True
