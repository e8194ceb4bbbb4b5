"""Waits for a state of the world, never for a time."""

import asyncio
import time
from collections.abc import Callable
from typing import TypeVar

from engine.errors import ForegramError

_Value = TypeVar("_Value")
What = str | Callable[[], str]  # a name for the condition, or a function that describes the failure


class ServerError(ForegramError):
    """A server did not do what its client needs."""

    code = "server_failed"


def until(
    condition: Callable[[], _Value],
    what: What,
    *,
    limit_s: float = 30.0,
    pause_s: float = 0.05,
    pause: Callable[[float], None] = time.sleep,
) -> _Value:
    """Return the first true value of `condition`. Fails with a description after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(
                f"not within {limit_s:.0f} s: {what if isinstance(what, str) else what()}"
            )
        pause(pause_s)
    return value


async def eventually(condition: Callable[[], object]) -> None:
    """Wait on the event loop until the condition holds, or the test's own time is up."""
    while not condition():
        await asyncio.sleep(0.005)
