"""How long to wait for more changes before an index follows them: longer while they go on."""

from dataclasses import dataclass

LEAST_S = 0.5  # a checkout touches many files at once
MOST_S = 30.0  # while a build goes on


@dataclass(slots=True)
class Pace:
    """Counts what is heard, and says how long to wait."""

    wait_s: float = LEAST_S
    _num_heard: int = 0  # since the last wait

    def hear(self) -> None:
        """Something changed."""
        self._num_heard += 1

    def begin(self) -> None:
        """A wait begins: what is heard from now on goes on."""
        self._num_heard = 0

    def end(self) -> None:
        """The wait is over."""
        self.wait_s = min(2 * self.wait_s, MOST_S) if self._num_heard else LEAST_S
