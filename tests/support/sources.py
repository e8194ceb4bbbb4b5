"""Small files with places at which the offline model surely writes something."""

from dataclasses import dataclass
from pathlib import Path

SHOP = '''"""A shop's inventory."""


def total_price(items):
    """The price of all items."""
    total = 0
    for item in items:
        total += item.price * item.count
    return total


'''
HEAD = 'def total_weight(items):\n    """The weight of all items."""'
BEGUN = f"{SHOP}{HEAD}\n    total = 0\n"


@dataclass(frozen=True)
class Source:
    """A text and a caret in it, counted from 1."""

    text: str
    line: int
    column: int

    def write(self, folder: Path, name: str = "inventory.py") -> str:
        (folder / name).write_text(self.text)
        return name


def source(marked: str) -> Source:
    """Return the text around `|`, which marks the caret."""
    before, after = marked.split("|")
    return Source(before + after, before.count("\n") + 1, len(before.rpartition("\n")[2]) + 1)


LOOP = source(f"{BEGUN}    for item in items:\n        |\n    return total\n")  # a line is missing
BODY = source(f"{SHOP}{HEAD}|\n")  # several lines are missing, below the caret's
OPEN_ENDED = source('"""A shop."""\n\n\nclass Shop:\n    def |\n')  # open to many continuations
