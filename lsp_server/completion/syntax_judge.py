"""Judges by the parser whether an insertion breaks code."""

from collections.abc import Iterator
from functools import cache, cached_property
from typing import NamedTuple

from engine.text.brackets import balance
from engine.text.confidence import ends_in_joint
from engine.text.lines import last_line, leading_space
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.judge import ApostropheJudge, DocumentJudge, LineJudge
from lsp_server.language_names import APOSTROPHES
from lsp_server.prompt.parsed_line import EditedText, Fault, ParsedLine

_PATIENCE = 60_000  # bytes to parse per judgement, about 20 ms, so that load changes no verdict
_TRY_BYTES = 1_500  # bytes that each try costs at least
_COPIED_BYTES = 100  # bytes of text that a try copies in the time of parsing one
_FILLINGS = ("", "x", "x:")  # tried at a cursor where code is missing
_PYTHON_LINES = ("pass", "if x:", "elif x:", "except:", "case x:")  # tried in place of a line
_MOST_MISSING = 3  # most open brackets before the cursor for which closers are tried
_MANY = 1_000  # more faults than any filling leaves


class _Baseline(NamedTuple):
    """The faults around the cursor with the best filling."""

    is_torn: bool  # no filling mends the text, nor does removing the cursor's block
    faults: frozenset[Fault]  # in other lines, whatever is inserted or if the line were blank
    num_here: int  # faults in the cursor's own line
    closers: str
    is_python: bool  # Python reads the statements


class SyntaxJudge(LineJudge):
    """Judges by the parser; `lead`, the text before the cursor, has more lines after an accept."""

    def __init__(self, line: ParsedLine, context: CursorContext, lead: str) -> None:
        super().__init__(context)
        self._line, self._lead = line, lead
        self._with_text = cache(line.with_text)  # some texts are tried twice
        self.begin()

    def prepare(self) -> None:
        """Find the faults around the cursor, which takes most of the time."""
        _ = self._baseline

    def begin(self) -> None:
        """Take patience anew."""
        self._bytes_left, self._is_first = _PATIENCE, True

    def accepts(self, text: str, replaced: int) -> bool:
        """Whether the insertion adds no fault; a statement begun at a line's end may stay open."""
        if not self._is_first and not super().accepts(text, replaced):
            return False  # unclosed text takes longest to parse
        self._is_first = False
        if self._is_late:
            return super().accepts(text, replaced)
        is_last = not self.context.rest[replaced:].strip()
        if self._is_whole(text, replaced):
            return True
        closers = self._closers_of_header(text)
        ends = (closers, f"{closers};") if closers else ()  # ends of a statement and of a value
        return is_last and (
            self._may_grow(text, replaced)
            or any(self._is_whole(text + end, replaced) for end in ends)
        )

    @property
    def _is_late(self) -> bool:
        return self._bytes_left <= 0

    @cached_property
    def _try_bytes(self) -> int:
        line = self._line
        num_bytes = line.tree.root_node.end_byte
        return _TRY_BYTES + line.statement_bytes + num_bytes // _COPIED_BYTES

    def _is_whole(self, text: str, replaced: int) -> bool:
        edited = self._edited(text, replaced)
        if edited.tree is not None and not edited.faults:
            return edited.is_python is not False or not self._baseline.is_python
        is_old = not edited.num_here and edited.faults_around <= self._baseline.faults
        # A grammar that cannot read the surrounding text cannot tell what an insertion breaks.
        is_unknown = edited.tree is None or self._baseline.is_torn
        return (is_old or is_unknown) and super().accepts(text, replaced)

    def _may_grow(self, text: str, replaced: int) -> bool:
        """Whether the text continues the user's statement and leaves nothing of its own open."""
        if not super().accepts(text, replaced):
            return False
        ends = self._ends(text)
        if any(not self._is_late and self._is_whole(text + end, replaced) for end in ends):
            return True
        baseline, edited = self._baseline, self._edited(text, replaced)
        if edited.faults_around <= baseline.faults and 0 < edited.num_here <= baseline.num_here:
            return True
        is_at_end = "\n" not in text and not self.context.rest.strip()
        return is_at_end and self._is_begun and self._stays_unfinished(text)

    def _ends(self, text: str) -> Iterator[str]:
        """Yield endings that the user may still write after `text` to finish the statement."""
        baseline, is_python, body = self._baseline, self._is_python, self._body(text)
        both = baseline.closers, self._missing_brackets(text)[:_MOST_MISSING]
        closers = list(dict.fromkeys(one[:end] for one in both for end in range(len(one) + 1)))
        yield from closers[1:]
        if baseline.closers or baseline.num_here:  # a string or a comment may be open
            yield from self._missing_ends
        yield from [body] if is_python else filter(None, map(_with_statement_end, closers))
        if self._is_unread:
            yield ";"
        if self._is_begun:  # perhaps an unfinished header
            yield from (closer + (":" if is_python else "") + body for closer in closers)

    @property
    def _is_unread(self) -> bool:
        """Whether the user has begun the line, and the grammar cannot read the text yet."""
        return bool(self._before.strip() and self._edited("").faults)

    def _stays_unfinished(self, text: str) -> bool:
        """Whether no name at the cursor finishes the statement, and `text` may be continued."""
        left, edited = self._edited(""), self._edited(text)
        is_as_before = edited.num_here <= left.num_here and (
            edited.faults_around <= self._baseline.faults | left.faults_around
        )
        goes_on = not balance(text).open and not ends_in_joint(last_line(self._lead + text))
        return goes_on and is_as_before and not self._is_mendable

    @cached_property
    def _is_mendable(self) -> bool:
        """Whether a name at the cursor makes Python read it; True for other languages."""
        closers, ends = ("", self._baseline.closers), ("", f":{self._body()}")
        fillings = (f"x{closer}{end}" for closer in closers for end in ends)
        return any(self._edited(filling).is_python is not False for filling in fillings)

    def _body(self, text: str = "") -> str:
        space = leading_space(last_line(self._lead + text))
        return f"\n{space}    pass" if self._is_python else " {}"

    def _edited(self, text: str, replaced: int = 0) -> EditedText:
        num_known = self._with_text.cache_info().misses
        edited = self._with_text(self._lead + text + self.context.rest[replaced:])
        if self._with_text.cache_info().misses > num_known:
            self._bytes_left -= _PATIENCE if edited.tree is None else self._try_bytes
        return edited

    @cached_property
    def _baseline(self) -> _Baseline:
        """The faults that no filling mends and the best one leaves, found with its own patience."""
        left, self._bytes_left = self._bytes_left, _PATIENCE
        without = self._line.without_block()
        faults = without.faults_around
        num_best, num_here, best_closers = _MANY, 0, ""
        is_python = not self._is_python
        for edited, closers in self._filled():
            faults &= edited.faults_around
            is_python = is_python or edited.is_python is True
            if len(edited.faults) < num_best:
                num_best, num_here, best_closers = len(edited.faults), edited.num_here, closers
            if self._is_late or (not num_best and is_python):
                break
        # As where braces above are not closed yet.
        if not self.context.rest.strip() and self._edited("").faults:
            faults |= self._line.with_text("").faults_around
        self._bytes_left = left
        is_torn = bool(num_best and without.faults)
        return _Baseline(is_torn, faults, num_here, best_closers, is_python)

    def _filled(self) -> Iterator[tuple[EditedText, str]]:
        for filling in _FILLINGS:
            yield self._edited(filling), ""
        brackets = self._missing_brackets()[:_MOST_MISSING]
        closers = [brackets[:count] for count in range(len(brackets) + 1)]
        for closer in closers[1:]:
            for filling in _FILLINGS:
                yield self._edited(filling + closer), closer
        for end in self._missing_ends:
            for closer in closers:
                yield self._edited("x" + end + closer), end + closer
        space = leading_space(last_line(self._lead))
        for filling in _PYTHON_LINES if self._is_python else ("",):
            yield self._line.with_text(space + filling), ""


def _with_statement_end(closers: str) -> str:
    """Put a semicolon before the closers' final braces; empty for braces alone."""
    inner = closers.rstrip("}")
    return f"{inner};{closers[len(inner) :]}" if inner else ""


def judge_of(line: ParsedLine | None, context: CursorContext, lead: str) -> LineJudge:
    """Return the judge at a cursor: by the parser if it can, otherwise by the line."""
    if line is not None:
        return SyntaxJudge(line, context, lead)
    has_apostrophes = context.language_id in APOSTROPHES
    return ApostropheJudge(context) if has_apostrophes else DocumentJudge(context)
