"""The buffers that a client keeps open, as they go to the host."""

from engine.host.protocol.message import Integer, Message, NotNegative


class Position(Message, frozen=True):
    """Line and code point within it, from 0."""

    line: NotNegative
    character: NotNegative


class LineSplice(Message, frozen=True):
    """Lines `start` to `end` (excluded) become `lines`."""

    start: Integer
    end: Integer
    lines: tuple[str, ...]


class BufferSync(Message, frozen=True):
    """A buffer at `version`: its whole `lines`, or `splices` in their order upon `base_version`."""

    uri: str
    path: str  # for people and prompts, relative to the workspace where that is possible
    language: str
    version: Integer
    lines: tuple[str, ...] | None = None
    base_version: Integer | None = None
    splices: tuple[LineSplice, ...] = ()
    notebook: str = ""  # whose cell it is: its cells are one text, and no open files of each other

    def __post_init__(self) -> None:
        if (self.lines is None) == (self.base_version is None) or (self.lines and self.splices):
            raise ValueError("a buffer comes with its lines, or with splices upon a base version")


class SyncRequest(Message, frozen=True):
    """Buffers of one client to be held from now on."""

    client: str  # a random name that one LSP server keeps
    workspace: str
    buffers: tuple[BufferSync, ...]


class CloseRequest(Message, frozen=True):
    """Buffers to forget; None is all of them: the client leaves."""

    client: str
    uris: tuple[str, ...] | None = None
