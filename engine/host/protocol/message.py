"""What every message is made of and goes with: the protocol's version, and where it belongs."""

from typing import Annotated

import msgspec
from msgspec import Meta

PROTOCOL_VERSION = 1
PROTOCOL_HEADER = "foregram-protocol"  # another number, or none, is answered with 426
# Where several hosts serve under one address: what has one value of the first goes to one of them;
# each answer names its host in the second, and so does a request that is to go there, too. They
# share no buffers.
SESSION_HEADER = "x-session-id"
REPLICA_HEADER = "foregram-replica"
MAX_BODY_BYTES = 32 * 1024 * 1024

# Numbers beyond int64 would fail later: in a float, a printed number, an array.
Integer = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
NotNegative = Annotated[int, Meta(ge=0, le=2**53 - 1)]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the protocol; unknown fields are refused by name."""


# The codes of a 409: the documents that it names are held otherwise, or none of the client's is.
UNKNOWN_VERSION, UNKNOWN_CLIENT = "unknown_version", "unknown_client"


class Problem(Message, frozen=True, omit_defaults=True):
    """A refusal: a code for programs and a sentence for people."""

    code: str
    message: str
    uris: tuple[str, ...] = ()  # 409: not held at the version that the request builds on


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
