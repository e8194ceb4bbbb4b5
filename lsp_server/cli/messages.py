"""Messages and questions of commands, without anything that a terminal would obey."""

import sys

INTERRUPTED = 130  # exit status of a program that Ctrl-C ended, as in shells
# Replaces characters that a terminal would obey. Tab and line feed stay.
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def visible(text: str) -> str:
    """Return `text` without escape sequences, which file names and hosts' messages may hold."""
    return text.translate(_VISIBLE)


def note(sentence: str) -> None:
    """Print a message on stderr, apart from a command's answer."""
    sys.stderr.write(f"foregram: {visible(sentence)}\n")


def agreed(question: str) -> bool:
    """Ask a person at the terminal; return whether the answer is yes."""
    sys.stderr.write(f"foregram: {question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
