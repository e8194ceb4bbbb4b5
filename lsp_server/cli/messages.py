"""What commands say beside their answers, and a question; none of it can command a terminal."""

import sys

INTERRUPTED = 130  # exit status, as shells report a program that Ctrl-C ended
# What a terminal would obey rather than show. Tab and line feed stay.
_VISIBLE = {code: 0x2400 + code for code in range(32) if chr(code) not in "\t\n"}
_VISIBLE |= {0x7F: 0x2421} | dict.fromkeys(range(0x80, 0xA0), 0xFFFD)


def visible(text: str) -> str:
    """`text` without escape sequences, which names of files and messages of hosts may hold."""
    return text.translate(_VISIBLE)


def note(sentence: str) -> None:
    """Say on stderr what is no command's answer."""
    sys.stderr.write(f"foregram: {visible(sentence)}\n")


def agreed(question: str) -> bool:
    """Whether a person at the terminal says yes."""
    sys.stderr.write(f"foregram: {question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")
