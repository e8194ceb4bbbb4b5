"""What a host is doing, for people and for programs that wait for it."""

from typing import Literal, Self

from engine.host.protocol.completion import Done
from engine.host.protocol.message import Message, Problem

HostState = Literal["loading", "ready", "failed", "stopping"]


class LoadProgress(Message, frozen=True):
    """How far the model is loaded."""

    task: str
    done: int
    total: int


class PromptUse(Message, frozen=True):
    """What the last prompt was made of. It names no file, as it may be another client's."""

    tokens: int
    reused_tokens: int
    neighbour_tokens: int
    num_neighbours: int
    num_open: int
    repository_tokens: int = 0
    num_repository: int = 0

    @classmethod
    def of(cls, done: Done) -> Self:
        """The prompt of a completion."""
        return cls(
            tokens=done.prompt_tokens,
            reused_tokens=done.reused_tokens,
            neighbour_tokens=done.neighbour_tokens,
            num_neighbours=len(done.neighbours),
            num_open=done.num_open,
            repository_tokens=done.repository_tokens,
            num_repository=len(done.repository),
        )


class Status(Message, frozen=True):
    """What a host is doing."""

    protocol: int
    version: str
    state: HostState
    pid: int
    uptime_s: float
    progress: LoadProgress | None = None
    problem: Problem | None = None
    requested_model: str = ""  # the name under which the host was told to load it
    model: str = ""
    device: str = ""
    dtype: str = ""
    place: str = ""  # a sentence: the device, what runs there and why, and what was found
    num_running: int = 0
    num_waiting: int = 0
    num_clients: int = 0
    num_other_clients: int = 0  # than the one that `?client=` names
    num_buffers: int = 0
    pool_tokens: int = 0
    kv_bytes: int = 0
    memory_mb: float = 0.0
    last_prompt: PromptUse | None = None
    lost: tuple[str, ...] = ()  # phrases: what there is not, as another program generates
    idle_s: float = 0.0  # since anybody used the host; 0 while it is busy
