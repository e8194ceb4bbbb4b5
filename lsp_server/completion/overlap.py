"""Text that stands behind the cursor already: the rest of its line, and the lines below."""

import re
from itertools import takewhile

from engine.text.brackets import CLOSERS, LONG_QUOTES, balance
from engine.text.lines import indent_of, squeeze
from engine.text.suffix import LETTERS, num_letters
from lsp_server.completion.cursor_context import LONGEST_SIDE, CursorContext

_MOST_LINES = 12  # below that are compared
_MOST_CLOSERS = 12  # behind the cursor that are weighed
_ENDS = ";,"  # of a statement or an argument, which may stand behind closers
_WORD = re.compile(r"\w")
_WHOLE_START = re.compile(r"\w\s*[=(.{:]|\w\s+\w|^\w{3,}\s*$|(?:^|\w\s+)[^\w\s]+\s*\w{2,}$")
_CLOSING_LINE = re.compile(r"\n\s*[)\]}]")


def without_start(text: str, context: CursorContext) -> str:
    """The text without the cursor's line up to it, which some models say again.

    Items of a list and short words may well come twice. Blanks may differ.
    """
    start, blank = context.before.lstrip(), r"[ \t]*"
    if len(start) > LONGEST_SIDE or not _WHOLE_START.search(start):
        return text
    signs = blank.join(map(re.escape, squeeze(start)))
    found = re.match(rf"\s*{signs}{blank if start[-1].isspace() else ''}", text)
    return text if found is None else text[found.end() :]


def not_only_next(text: str, context: CursorContext) -> str:
    """Nothing if the text says what the next lines say."""
    return "" if _repeat_start(text, context) == 0 else text


def replaced_in_line(text: str, context: CursorContext) -> int:
    """How many characters behind the cursor the text has written itself, so that it replaces them.

    Words must agree; for brackets and quotes what counts is that they are as balanced as before.
    """
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
    """How many closing brackets and quotes stand right behind the cursor."""
    return len(list(takewhile(CLOSERS.__contains__, rest[:_MOST_CLOSERS])))


def without_next(text: str, context: CursorContext) -> str:
    """The text up to where it repeats the lines below the cursor."""
    start = _repeat_start(text, context)
    if start is None:
        return text
    return "\n".join(text.split("\n")[:start]).rstrip()


def without_comment(text: str, context: CursorContext) -> str:
    """The text up to a comment at its end, which would swallow the rest of the line."""
    before = context.before[-LONGEST_SIDE:]
    start = balance(before + text, context.comment_signs).comment
    if start is None or start < len(before):  # the cursor itself stands in a comment
        return text
    if not (before + text)[max(start - 1, 0)].isspace():  # `https://`, `a#b`, `$#` begin none
        return text
    return text[: start - len(before)].rstrip()


def without_surplus(text: str, context: CursorContext, replaced: int) -> str:
    """The text without brackets that close what the lines below close already."""
    if context.is_cut or not balance(text, context.comment_signs).surplus:
        return text
    was, now = context.balance(), context.balance(text, replaced)
    if was is None or now is None:
        return text
    for _ in range(now.surplus - was.surplus):
        text = text[: _surplus_start(text, context.comment_signs)]
    return text


def _has_written(text: str, rest: str) -> bool:
    """The rest of the line ends the text's first line, or the whole text."""
    words = squeeze(rest)
    first, last = text.partition("\n")[0], text.rstrip().rpartition("\n")[2]
    return squeeze(first).endswith(words) or squeeze(last).endswith(words)


def _partly_written(text: str, rest: str) -> int:
    """The longest beginning of the rest, up to a word's end, that ends the text."""
    for count in range(min(len(rest) - 1, len(text)), 0, -1):
        splits_word = _WORD.match(rest[count - 1]) and _WORD.match(rest[count])
        if not splits_word and text.endswith(rest[:count]):
            return 0 if set(rest[:count]) <= set(CLOSERS) else count
    return 0


def _closers_written(text: str, context: CursorContext) -> int:
    """How many closing characters right behind the cursor the text has made superfluous."""
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
    """The text closes a brace of the string that `head` ends in, as in `${name}` or f"{name}"."""
    if head.rfind("{") <= head.rfind("}") or balance(head, signs).quote is None:
        return False
    unopened = balance(text, signs).unopened
    return bool(unopened) and text[unopened[0]] == "}"


def _repeat_start(text: str, context: CursorContext) -> int | None:
    """The text's line from which on it says what the lines below say."""
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
    """Where a closing bracket without a partner can be cut off, with what follows it."""
    unopened = balance(text, signs).unopened
    last = len(text.rstrip().rstrip(";,")) - 1
    if last in unopened:
        return len(text[:last].rstrip())
    # Or else the end of the line before the first one that begins with such a bracket.
    lines = (match for match in _CLOSING_LINE.finditer(text) if match.end() - 1 in unopened)
    return next((match.start() for match in lines), None)
