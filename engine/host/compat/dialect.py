"""What a drop-in API is: it reads a body into a request, and writes the answer in its own form.

Streams are server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self

import msgspec
from litestar.handlers import HTTPRouteHandler

from engine.host.compat.text_request import TextRequest
from engine.host.protocol import Done, Problem
from engine.host.service import CompletionService
from engine.request import Chunk

HEALTH = "/v1/health"  # of all drop-in APIs
Body = Mapping[str, Any]  # a JSON object
KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


def data(content: object) -> bytes:
    """One event whose data is JSON, which has no line ends."""
    return b"data: " + _encode(content) + b"\n\n"


@dataclass(frozen=True, slots=True)
class Served:
    """What answers say of the host."""

    model: str
    fingerprint: str  # changes with the model and the form of its weights
    context_len: int = 0

    @classmethod
    def by(cls, service: CompletionService) -> Self:
        """Raises NotReadyError while there is no engine."""
        info = service.engine_thread.ready_engine().info
        form = "\0".join([info.model, info.device, info.dtype])
        digest = hashlib.sha256(form.encode()).hexdigest()
        return cls(info.model, f"fp_{digest[:10]}", info.context_len)


class Exchange(Protocol):
    """One request, and how it is answered: as a whole, or as a stream of frames."""

    @property
    def request(self) -> TextRequest:
        """What is to be completed."""
        ...

    @property
    def is_streamed(self) -> bool:
        """Whether the client reads chunks."""
        ...

    def whole(self, chunks: Sequence[Chunk], done: Done) -> object:
        """The answer, as JSON can have it. `chunks` hold the text in pieces."""
        ...

    def frame(self, chunk: Chunk) -> bytes:
        """A chunk in a stream; empty: nothing is sent."""
        ...

    def last_frames(self, done: Done) -> bytes:
        """The end of a stream."""
        ...


class Dialect(Protocol):
    """A drop-in API. It has no state."""

    name: str  # in `serve --api`
    paths: tuple[str, ...]  # where it completes what is posted
    other_paths: tuple[str, ...] = ()  # of its other routes; what lies below them is its own, too
    told_by: str = "`prompt`"  # by what `is_meant` tells, in words for whom it is refused

    def is_meant(self, body: Body) -> bool:
        """Whether a body at a path that others have, too, is for this one."""
        return "prompt" in body

    def read(self, path: str, body: Body, served: Served) -> Exchange:
        """Read a body. Raises InputError and msgspec's ValidationError."""
        ...

    def refusal(self, status: int, problem: Problem) -> object:
        """The body of an answer with this HTTP status, as JSON can have it."""
        ...

    def health(self, service: CompletionService) -> Body:  # noqa: ARG002 - for those that say more
        """What `/v1/health` says besides whether the host is well."""
        return {}

    def routes(self, service: CompletionService) -> Sequence[HTTPRouteHandler]:  # noqa: ARG002 - likewise
        """The other routes that it has. What they raise is answered by `refusal`."""
        return []
