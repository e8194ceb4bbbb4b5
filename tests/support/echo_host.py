"""A completion host as a program, whose completions say which text they were asked to complete.

python -m tests.support.echo_host --socket PATH --token-file FILE
"""

import argparse
import asyncio
import hashlib
import time
from pathlib import Path
from typing import Any

from engine import CompletionChunk, CompletionResult, CompletionStats, FinishReason
from engine.host.options import HostOptions
from engine.host.server import HostServer
from engine.host.service import CompletionService
from engine.request import CompletionRequest
from tests.support.running_host import HeldEngine

_STEP_S = 0.002  # which a step takes, so that there is a middle of a completion


def digest(prefix: str, suffix: str) -> str:
    """What the completion at this place says; halves of characters arrive as question marks."""
    return hashlib.sha256(f"{prefix}\0{suffix}".encode("utf-8", "replace")).hexdigest()


class EchoEngine(HeldEngine):
    """Writes the digest of the text, a piece a step."""

    def completing(self, request: CompletionRequest, *, on_chunk: Any, cancelled: Any) -> Any:
        said = digest(request.prefix, request.suffix)
        for start in range(0, len(said), 8):
            time.sleep(_STEP_S)
            if cancelled():
                return CompletionResult("", (), FinishReason.CANCELLED, _STATS)
            on_chunk(CompletionChunk(said[start : start + 8]))
            yield
        return CompletionResult(said, (1,), FinishReason.END_TOKEN, _STATS)


_STATS = CompletionStats(8, 8, 8, 10, 0, 1.0, 1.0, {"model": 8})


def main() -> None:
    """Serve until told to stop."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--socket", type=Path, required=True)
    parser.add_argument("--token-file", type=Path, required=True)
    arguments = parser.parse_args()
    token = arguments.token_file.read_text().strip()
    service = CompletionService(lambda _: EchoEngine())
    asyncio.run(HostServer(service, HostOptions(arguments.socket, token=token)).run())


if __name__ == "__main__":
    main()
