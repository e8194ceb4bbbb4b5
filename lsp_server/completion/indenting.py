"""Replaces the model's indentation by that of the editor and the document."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise

from engine.text.brackets import BLOCK_OPENERS, LONG_QUOTES
from engine.text.lines import columns, first_of_last, indent_of, leading_space
from lsp_server.completion.cursor_context import CursorContext

_TAB_WIDTH = columns("\t")
_UNIT_LINES = 100  # lines on either side from which the unit of indentation is derived
_UNITS = (2, 3, 4, 8)
_SPANNING = re.compile("|".join((*LONG_QUOTES, "`")))
_TABBED = ("makefile", "go", "go.mod")  # languages whose syntax or formatter wants tabs
_NEAR = 50  # lines above the cursor that are searched for a makefile's rule
_RULE = re.compile(r"[^\s#=][^#=]*:(?!=)")  # the head of a makefile's rule


def indented(text: str, context: CursorContext) -> str:
    """Start the first line at the editor's cursor, and indent the others in the document's unit."""
    lines, unit = text.split("\n"), _unit(context)
    if context.before and not context.before.strip():
        lines[0] = _first_line(lines[0], context, unit or "")
    if context.language_id == "makefile":
        return "\n".join(_recipes(lines, context))
    if unit is None:
        return "\n".join(lines)
    scale = _scale(lines, context, columns(unit))
    base = indent_of(context.before + "x")
    later = [_converted(line, unit, base, scale) for line in lines[1:]]
    return "\n".join([lines[0], *later])


def _unit(context: CursorContext) -> str | None:
    """Return one indentation step, or None; only the cursor's own block decides on tabs."""
    above = context.above[-_UNIT_LINES:]
    own = context.before or next(filter(str.strip, reversed(above)), "")
    if own.startswith("\t") or context.language_id in _TABBED:
        return "\t"
    steps: Counter[str] = Counter()
    previous = 0
    near = (*above, context.before + context.rest, *context.below[: _UNIT_LINES - 1])
    for line in filter(str.strip, _outside_strings(near)):
        space = leading_space(line)
        if space.startswith("\t"):
            steps["\t"] += not own.startswith(" ")
        elif len(space) - previous in _UNITS:
            steps[" " * (len(space) - previous)] += 1
        previous = columns(space)
    return next((unit for unit, count in steps.most_common(1) if count), None)


def _outside_strings(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines that do not begin inside a string, whose indentation is its own."""
    quote = ""
    for line in lines:
        if not quote:
            yield line
        for mark in _SPANNING.findall(line):
            quote = "" if mark == quote else quote or mark


def _first_line(line: str, context: CursorContext, unit: str) -> str:
    """Drop indentation beyond that which the line above calls for."""
    above = next(filter(str.strip, reversed(context.above)), "")
    step = columns(unit) if above.rstrip().endswith(BLOCK_OPENERS) else 0
    missing = max(indent_of(above) + step - columns(context.before), 0)
    space = leading_space(line)
    kept = space if columns(space) <= missing else " " * missing
    return kept + line[len(space) :]


def _recipes(lines: list[str], context: CursorContext) -> list[str]:
    """Put a tab before each command of a makefile, and leave other lines as they are."""
    above = list(context.above[-_NEAR:])
    made: list[str] = []
    for line in lines:
        is_new = bool(made) or not context.before
        is_command = is_new and line.startswith(" ") and _is_in_rule(above)
        made.append("\t" + line.lstrip() if is_command else line)
        above.append(made[-1] if is_new else context.before + line)
    return made


def _is_in_rule(above: list[str]) -> bool:
    """Whether the line below these is a rule's command, unless a backslash continues the last."""
    filled = list(filter(str.strip, ["#", *above]))
    first = first_of_last(filled)
    is_whole = not filled[-1].endswith("\\")
    return is_whole and (first.startswith("\t") or _RULE.match(first) is not None)


def _scale(lines: list[str], context: CursorContext, unit: int) -> tuple[int, int]:
    """Return the indentation steps of the model and the document; equal if nothing need change."""
    depths = [(indent_of(line), line.rstrip()) for line in lines[1:] if line.strip()]
    depths.insert(0, (indent_of(context.before + "x"), (context.before + lines[0]).rstrip()))
    steps = {
        deep - depth
        for (depth, line), (deep, _) in pairwise(depths)
        if deep > depth and line.endswith(BLOCK_OPENERS)
    }
    step = min(steps, default=unit)
    fits = all((depth - depths[0][0]) % step == 0 for depth, _ in depths)
    return (step, unit) if fits and step in (2, 4, 8) and unit in (2, 4, 8) else (unit, unit)


def _converted(line: str, unit: str, base: int, scale: tuple[int, int]) -> str:
    space = leading_space(line)
    old, new = scale
    depth = columns(space)
    if old != new and line.strip():
        depth = base + (depth - base) // old * new
    if unit == "\t":
        tabs, blanks = divmod(depth, _TAB_WIDTH)
        return "\t" * tabs + " " * blanks + line[len(space) :]
    is_foreign = "\t" in space or depth != columns(space)
    return " " * depth + line[len(space) :] if is_foreign else line
