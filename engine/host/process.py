"""A process that serves one engine: how its interpreter and its allocator are set."""

import gc
import sys
from collections.abc import Callable

from engine.host.served_engine import ServedEngine
from engine.memory import use_few_arenas
from engine.progress import Progress

_SWITCH_S = 0.0005


def become_host() -> None:
    """Set this process up; to be called before there are threads."""
    # The engine's thread gives the interpreter away so often; by default a request waits for 5 ms
    # at each of its steps.
    sys.setswitchinterval(_SWITCH_S)
    use_few_arenas()


def kept_for_good(load: Callable[[Progress], ServedEngine]) -> Callable[[Progress], ServedEngine]:
    """`load`, and no collection of garbage looks through what is loaded then.

    That is some 300,000 objects, most of them torch's: 0.15 s in which everybody waits.
    """

    def loaded(progress: Progress) -> ServedEngine:
        engine = load(progress)
        gc.collect()  # or what loading left behind would be kept, too
        gc.freeze()
        return engine

    return loaded
