"""What could not be measured, in sentences: the rest of a run goes on without it."""

from collections.abc import Iterator
from contextlib import contextmanager

from engine.errors import ForegramError

_MOST_CHARS = 300


class Notes(dict[str, None]):
    """Sentences in the order in which they were met, each once."""

    @contextmanager
    def catching(self, what: str) -> Iterator[None]:
        """Let a block fail; what it was and why becomes a sentence."""
        try:
            yield
        except Exception as error:  # noqa: BLE001 - kernels, drivers and libraries fail in all ways
            self[f"{what}: {sentence(error)}"] = None


def sentence(error: Exception) -> str:
    """One line that says what went wrong; our own errors are sentences already."""
    text = " ".join(str(error).split())[:_MOST_CHARS]
    return text if isinstance(error, ForegramError) else f"{type(error).__name__}: {text}"
