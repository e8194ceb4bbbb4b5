"""What a drop-in API is: it reads a body into a request, and writes the answer in its own form."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from litestar.handlers import HTTPRouteHandler

from engine.host.compat.text_request import TextRequest
from engine.host.protocol import Chunk, Done, Problem
from engine.host.service import CompletionService

HEALTH = "/v1/health"  # of all drop-in APIs
Body = Mapping[str, Any]  # a JSON object


@dataclass(frozen=True, slots=True)
class Served:
    """What answers say of the host."""

    model: str
    fingerprint: str  # changes with the model and the form of its weights
    context_len: int = 0


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
    other_paths: tuple[str, ...]  # of its other routes; what lies below them is its own, too
    told_by: str  # a body at a path that others have, too: in words, for whom it is refused

    def is_meant(self, body: Body) -> bool:
        """Whether a body at a path that others have, too, is for this one."""
        ...

    def read(self, path: str, body: Body, served: Served) -> Exchange:
        """Read a body. Raises InputError and msgspec's ValidationError."""
        ...

    def refusal(self, status: int, problem: Problem) -> object:
        """The body of an answer with this HTTP status, as JSON can have it."""
        ...

    def health(self, service: CompletionService) -> Body:
        """What `/v1/health` says besides whether the host is well."""
        ...

    def routes(self, service: CompletionService) -> Sequence[HTTPRouteHandler]:
        """The other routes that it has. What they raise is answered by `refusal`."""
        ...
