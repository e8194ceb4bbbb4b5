"""Removes or replaces text that already follows the cursor, in its line or below."""

import re
from itertools import takewhile

from engine.text.brackets import CLOSERS, LONG_QUOTES, balance
from engine.text.lines import indent_of, squeeze
from engine.text.suffix import LETTERS, num_letters
from lsp_server.completion.cursor_context import LONGEST_SIDE, CursorContext

_MOST_LINES = 12  # lines below the cursor that are compared
_MOST_CLOSERS = 12  # closing characters after the cursor that are considered
_ENDS = ";,"  # ends of statements and arguments, which may follow closing brackets
_WORD = re.compile(r"\w")
_WHOLE_START = re.compile(r"\w\s*[=(.{:]|\w\s+\w|^\w{3,}\s*$|(?:^|\w\s+)[^\w\s]+\s*\w{2,}$")
_CLOSING_LINE = re.compile(r"\n\s*[)\]}]")


def without_start(text: str, context: CursorContext) -> str:
    """Drop the line's start, which some models repeat, unless it may well occur twice."""
    start, blank = context.before.lstrip(), r"[ \t]*"
    if len(start) > LONGEST_SIDE or not _WHOLE_START.search(start):
        return text
    signs = blank.join(map(re.escape, squeeze(start)))
    found = re.match(rf"\s*{signs}{blank if start[-1].isspace() else ''}", text)
    return text if found is None else text[found.end() :]


def not_only_next(text: str, context: CursorContext) -> str:
    """Return an empty text if it only repeats the next lines."""
    return "" if _repeat_start(text, context) == 0 else text


def replaced_in_line(text: str, context: CursorContext) -> int:
    """Count the characters after the cursor that the text repeats, as words or balanced closers."""
    rest = context.rest
    if not rest.strip():
        return 0
    if set(rest) - set(CLOSERS) - {" ", "\t"}:
        if _has_written(text, rest):
            return len(rest)
        partial = _partly_written(text, rest)
        if partial:
            return partial
    count = _closers_written(text, context)
    is_doubled = 0 < count < len(rest) and rest[count] in _ENDS and text.endswith(rest[count])
    return count + is_doubled


def num_closers(rest: str) -> int:
    """Count the closing brackets and quotes right after the cursor."""
    return len(list(takewhile(CLOSERS.__contains__, rest[:_MOST_CLOSERS])))


def without_next(text: str, context: CursorContext) -> str:
    """Cut the text where it begins to repeat the lines below the cursor."""
    start = _repeat_start(text, context)
    if start is None:
        return text
    return "\n".join(text.split("\n")[:start]).rstrip()


def without_comment(text: str, context: CursorContext) -> str:
    """Cut a comment at the text's end, which would swallow the rest of the line."""
    before = context.before[-LONGEST_SIDE:]
    start = balance(before + text, context.comment_signs).comment
    if start is None or start < len(before):  # the cursor itself is in a comment
        return text
    if not (before + text)[max(start - 1, 0)].isspace():  # `https://`, `a#b`, `$#`: no comment
        return text
    return text[: start - len(before)].rstrip()


def without_surplus(text: str, context: CursorContext, replaced: int) -> str:
    """Drop brackets if the lines below already close theirs."""
    if context.is_cut or not balance(text, context.comment_signs).surplus:
        return text
    was, now = context.balance(), context.balance(text, replaced)
    if was is None or now is None:
        return text
    for _ in range(now.surplus - was.surplus):
        text = text[: _surplus_start(text, context.comment_signs)]
    return text


def _has_written(text: str, rest: str) -> bool:
    """Whether the text, or its first line, ends with the rest of the line."""
    words = squeeze(rest)
    first, last = text.partition("\n")[0], text.rstrip().rpartition("\n")[2]
    return squeeze(first).endswith(words) or squeeze(last).endswith(words)


def _partly_written(text: str, rest: str) -> int:
    """Return the length of the longest start of `rest`, in whole words, that ends the text."""
    for count in range(min(len(rest) - 1, len(text)), 0, -1):
        splits_word = _WORD.match(rest[count - 1]) and _WORD.match(rest[count])
        if not splits_word and text.endswith(rest[:count]):
            return 0 if set(rest[:count]) <= set(CLOSERS) else count
    return 0


def _closers_written(text: str, context: CursorContext) -> int:
    """Count the closing characters after the cursor that the text makes superfluous."""
    head, rest = context.before[-LONGEST_SIDE:], context.rest[:LONGEST_SIDE]
    for quote in LONG_QUOTES:
        if rest.startswith(quote) and text.count(quote) % 2:
            return len(quote)
    before = balance(head + rest, context.comment_signs)
    least = int(rest.startswith("}") and _ends_code_in_string(text, head, context.comment_signs))
    faults = []
    for count in range(least, num_closers(rest) + 1):
        after = balance(head + text + rest[count:], context.comment_signs)
        breaks_string = after.quote is not None and before.quote is None
        faults.append(max(after.surplus - before.surplus, 0) + breaks_string)
        if not faults[-1]:
            break
    return least + faults.index(min(faults))


def _ends_code_in_string(text: str, head: str, signs: tuple[str, ...]) -> bool:
    """Whether the text closes a brace in the string that `head` ends in, as in `${name}`."""
    if head.rfind("{") <= head.rfind("}") or balance(head, signs).quote is None:
        return False
    unopened = balance(text, signs).unopened
    return bool(unopened) and text[unopened[0]] == "}"


def _repeat_start(text: str, context: CursorContext) -> int | None:
    """Return the number of the text's line from which it repeats the lines below."""
    lines = text.split("\n")
    own = [n for n, line in enumerate(lines) if line.strip()]
    below = [line for line in context.below if line.strip()][:_MOST_LINES]
    lines[0] = context.before + lines[0]
    for place, number in enumerate(own):
        pairs = zip((lines[n] for n in own[place:]), below, strict=False)
        same = list(takewhile(lambda pair: squeeze(pair[0]) == squeeze(pair[1]), pairs))
        if _is_evidence(same, reaches_end=place + len(same) == len(own)):
            return number
    return None


def _is_evidence(same: list[tuple[str, str]], *, reaches_end: bool) -> bool:
    letters = sum(num_letters(line) for line, _ in same)
    if not reaches_end:
        return len(same) > 1 and letters >= 2 * LETTERS
    is_aligned = all(indent_of(line) == indent_of(other) for line, other in same)
    return bool(same) and (letters >= LETTERS or is_aligned)


def _surplus_start(text: str, signs: tuple[str, ...]) -> int | None:
    """Return where to cut off an unpaired closing bracket with the text after it."""
    unopened = balance(text, signs).unopened
    last = len(text.rstrip().rstrip(";,")) - 1
    if last in unopened:
        return len(text[:last].rstrip())
    # Otherwise, cut at the end of the line before the first one that begins with such a bracket.
    lines = (match for match in _CLOSING_LINE.finditer(text) if match.end() - 1 in unopened)
    return next((match.start() for match in lines), None)
