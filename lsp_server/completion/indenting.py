"""The indentation that the editor and the document want, in place of the model's own."""

import re
from itertools import pairwise

from engine.stopping.lines import columns, indent_of, leading_space
from lsp_server.completion.cursor_context import CursorContext

_OPENERS = (":", "{", "(", "[")
_TAB_WIDTH = columns("\t")
_RULE = re.compile(r"[^\s#=][^#=]*:(?!=)")  # of a makefile


def indented(text: str, context: CursorContext) -> str:
    """The first line from where the editor has put the cursor, the others in the document's unit.

    Blanks that a model writes for a tab, or four for two, are exchanged.
    """
    lines = text.split("\n")
    if context.before and not context.before.strip():
        lines[0] = _first_line(lines[0], context)
    unit = context.unit
    if context.language_id == "makefile":
        return "\n".join(_recipes(lines, context))
    if unit is None:
        return "\n".join(lines)
    scale = _scale(lines, context, columns(unit))
    base = indent_of(context.before + "x")
    later = [_converted(line, unit, base, scale) for line in lines[1:]]
    return "\n".join([lines[0], *later])


def _first_line(line: str, context: CursorContext) -> str:
    """Without indentation beyond what the line above asks for."""
    above = next(filter(str.strip, reversed(context.above)), "")
    step = columns(context.unit or "") if above.rstrip().endswith(_OPENERS) else 0
    missing = max(indent_of(above) + step - columns(context.before), 0)
    space = leading_space(line)
    kept = space if columns(space) <= missing else " " * missing
    return kept + line[len(space) :]


def _recipes(lines: list[str], context: CursorContext) -> list[str]:
    """The lines of a makefile with a tab before each command, and as they are elsewhere."""
    above = context.before + lines[0]
    above = above if above.strip() else next(filter(str.strip, reversed(context.above)), "")
    made = lines[:1]
    for line in lines[1:]:
        is_command = line.startswith(" ") and (above.startswith("\t") or _RULE.match(above))
        is_command = is_command and not above.endswith("\\")
        above = "\t" + line.lstrip() if is_command else line
        made.append(above)
    return made


def _scale(lines: list[str], context: CursorContext, unit: int) -> tuple[int, int]:
    """The step of the model's text and that of the document; equal if there is nothing to do."""
    depths = [(indent_of(line), line.rstrip()) for line in lines[1:] if line.strip()]
    depths.insert(0, (indent_of(context.before + "x"), (context.before + lines[0]).rstrip()))
    steps = {
        deep - depth
        for (depth, line), (deep, _) in pairwise(depths)
        if deep > depth and line.endswith(_OPENERS)
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
