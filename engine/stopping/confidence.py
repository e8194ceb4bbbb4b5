"""Lines that the model was not confident of: from the second on they are not worth showing."""

from dataclasses import dataclass, field

from engine.stopping.lines import Written


@dataclass(slots=True)
class ConfidenceRule:
    """From the second line on the model's choices have to lead by `min_margin` logits on average.

    A token counts for the line that it begins in.
    """

    min_margin: float
    _margins: list[float] = field(default_factory=list)  # of the growing line's tokens

    def add(self, margin: float) -> None:
        """Add a token's margin, before its text is written."""
        self._margins.append(margin)

    def cut(self, written: Written) -> int | None:
        """Where the line begins that has just ended, if the model was not confident of it."""
        margins, self._margins = self._margins, []
        if len(written.lines) < 2 or not self._is_filled(written):
            return None
        is_unsure = bool(margins) and sum(margins) < self.min_margin * len(margins)
        return written.lines[-1].start if is_unsure else None

    def held(self, written: Written) -> int:
        """How much of the text no later `cut` can take back."""
        return written.line_start if written.lines else len(written.text)

    @staticmethod
    def _is_filled(written: Written) -> bool:
        """The line that has just ended is not blank."""
        line = written.lines[-1]
        return not written.text[line.start + len(line.text) :].rstrip(" \t").count("\n") > 1
