"""What a drop-in API is: it reads a body into a request, and writes the answer in its own form."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import msgspec
from litestar.handlers import HTTPRouteHandler

from engine.host.compat.text_request import Body, TextRequest
from engine.host.protocol import Done, Problem
from engine.host.service import CompletionService
from engine.request import Chunk

DONE = b"data: [DONE]\n\n"
Json = dict[str, Any]
_encode = msgspec.json.Encoder().encode


def event(content: object) -> bytes:
    """A server-sent event whose data is JSON, which has no line ends."""
    return b"data: " + _encode(content) + b"\n\n"


@dataclass(frozen=True, slots=True)
class ServedModel:
    """The model that the host serves."""

    name: str
    fingerprint: str  # changes with the model and the form of its weights
    context_len: int = 0

    @classmethod
    def of(cls, service: CompletionService) -> Self:
        """Raises NotReadyError while there is no engine."""
        info = service.engine_thread.ready_engine().info
        form = "\0".join([info.model, info.device, info.dtype])
        digest = hashlib.sha256(form.encode()).hexdigest()
        return cls(info.model, f"fp_{digest[:10]}", info.context_len)


@dataclass(slots=True)
class DropInCompletion:
    """One request, and how it is answered: as a whole, or in server-sent events."""

    request: TextRequest
    model: ServedModel
    is_streamed: bool = False

    def answer(self, chunks: Sequence[Chunk], done: Done) -> object:
        """The whole answer, as JSON can have it. `chunks` hold the text in pieces."""
        raise NotImplementedError

    def piece(self, chunk: Chunk) -> bytes:
        """The event for a piece of the text."""
        raise NotImplementedError

    def end(self, done: Done) -> bytes:
        """The last events of a stream."""
        raise NotImplementedError


class DropInApi:
    """A drop-in API. It has no state."""

    name: str  # in `serve --api`
    paths: tuple[str, ...]  # of completions
    other_paths: tuple[str, ...] = ()  # also of what lies below them
    marker = "prompt"  # the field that no other API at the same path has

    def is_meant(self, body: Body) -> bool:
        """Whether a body at a path that others have, too, is for this one."""
        return self.marker in body

    def read(self, path: str, body: Body, model: ServedModel) -> DropInCompletion:
        """Read a body. Raises InputError and msgspec's ValidationError."""
        raise NotImplementedError

    def refusal(self, status: int, problem: Problem) -> object:
        """The body of an answer with this HTTP status, as JSON can have it."""
        raise NotImplementedError

    def health(self, service: CompletionService) -> Json:  # noqa: ARG002 - for those that say more
        """What `/v1/health` says besides whether the host is well."""
        return {}

    def routes(self, service: CompletionService) -> list[HTTPRouteHandler]:  # noqa: ARG002 - likewise
        """Its other routes. What they raise is answered by `refusal`."""
        return []

    def has(self, path: str) -> bool:
        """Whether a path is one of its own."""
        places = (*self.paths, *self.other_paths)
        return any(path == place or path.startswith(f"{place}/") for place in places)
