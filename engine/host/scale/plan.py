"""What a replica is made of. It is pickled, and unpickled on the machine that the replica is on."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from engine.host.principals import KnownToken
from engine.host.served_engine import ServedEngine
from engine.progress import Progress


@dataclass(frozen=True, slots=True)
class ReplicaPlan:
    """How its engine is loaded, and how it answers."""

    load: Callable[[Progress], ServedEngine]
    requested_model: str
    quotas: tuple[str, ...]  # as NAME=VALUE; of each replica
    apis: str
    is_loopback: bool  # it serves programs of this machine alone, by its name
    is_debugging: bool = False


def written(tokens: Iterable[KnownToken]) -> dict[str, Any]:
    """Tokens as Ray keeps them, in JSON: by their digests, from which nobody learns them."""
    return {"tokens": [[one.name, one.digest.hex(), one.line] for one in tokens]}


def read(config: Mapping[str, Any]) -> tuple[KnownToken, ...]:
    """What `written` has written."""
    return tuple(
        KnownToken(name, bytes.fromhex(digest), line) for name, digest, line in config["tokens"]
    )
