"""Work that is done in turns, so that several pieces of it can go on side by side."""

from collections.abc import Generator
from typing import TypeVar

_Result = TypeVar("_Result")
Turns = Generator[None, None, _Result]  # yields after each turn, returns its result


def run_to_end(turns: Turns[_Result]) -> _Result:
    """Take all turns at once."""
    while True:
        try:
            next(turns)
        except StopIteration as end:
            result: _Result = end.value
            return result
