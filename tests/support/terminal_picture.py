"""A terminal's screen as an SVG."""

import io
import re

from rich.ansi import AnsiDecoder
from rich.console import Console
from rich.terminal_theme import TerminalTheme

# The colours of Neovim's own dark scheme around the text, and quiet ones in it.
THEME = TerminalTheme(
    (20, 22, 27),
    (224, 226, 234),
    [
        (20, 22, 27),
        (255, 192, 185),
        (179, 246, 192),
        (252, 224, 148),
        (166, 219, 255),
        (255, 202, 255),
        (140, 248, 247),
        (224, 226, 234),
    ],
)
_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)


def to_svg(captured: str, *, title: str, width: int) -> str:
    """What `tmux capture-pane -p -e` printed, as a picture that asks for nothing elsewhere."""
    console = Console(record=True, width=width, file=io.StringIO(), color_system="truecolor")
    for text in AnsiDecoder().decode(captured.rstrip("\n")):
        text.pad_right(max(0, width - text.cell_len))
        console.print(text, no_wrap=True, crop=True)
    picture = console.export_svg(title=title, theme=THEME, unique_id="foregram")
    return _ELSEWHERE.sub("", picture).replace("Fira Code", "DejaVu Sans Mono")
