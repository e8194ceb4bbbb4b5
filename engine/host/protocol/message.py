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
