"""What a document's prompt shows of the repository, and for how long that stays.

The prompt begins with it, so another choice has the model read the whole prompt again. So it stays
while the user types along: until the cursor comes to other lines, or something else stands at it
that is defined elsewhere, where a prompt is read quickly.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from engine.steady_lines import STEADY_LINES, last_anchor
from lsp_server.repository.cursor_view import CursorView
from lsp_server.repository.definition_choice import Shown

_MOST_DOCUMENTS = 32


class _Place(NamedTuple):
    """Where a cursor stands, roughly, and what may not be shown there."""

    above: int
    below: int
    excluded: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Choice:
    place: _Place
    names: tuple[str, ...]
    shown: Sequence[Shown]


class KeptChoices:
    """The last choice of each document. For one thread."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Choice] = OrderedDict()

    def shown(
        self,
        document: str,
        view: CursorView,
        excluded: frozenset[str],
        choose: Callable[[], Sequence[Shown]],
        *,
        stands: Callable[[Shown], bool],
        is_quick: bool,
    ) -> Sequence[Shown]:
        """Return what was chosen, as long as all of it `stands`, or else what `choose` returns."""
        place = _Place(
            last_anchor(len(view.before) - 1), len(view.behind) // STEADY_LINES, excluded
        )
        names = (*view.chain, "(", *view.callee)
        kept = self._kept.get(document)
        # One of nothing is none: the index may not have been filled by then.
        if kept is not None and (kept.place != place or not kept.shown):
            kept = None
        if kept is not None and not all(map(stands, kept.shown)):
            kept = None
        if kept is not None and (kept.names == names or not is_quick):
            return kept.shown
        chosen = choose()
        if kept is not None and not _is_news(chosen, kept.shown):
            chosen = kept.shown
        self._keep(document, _Choice(place, names, chosen))
        return chosen

    def _keep(self, document: str, choice: _Choice) -> None:
        self._kept[document] = choice
        self._kept.move_to_end(document)
        if len(self._kept) > _MOST_DOCUMENTS:
            self._kept.popitem(last=False)


def _is_news(chosen: Sequence[Shown], kept: Sequence[Shown]) -> bool:
    """Whether the best that is chosen now is not among what is shown."""
    lines = {line for one in kept for line in one.text.split("\n")}
    best = next((one for one in chosen if one.is_definition), None)
    return best is not None and not lines.issuperset(best.text.split("\n"))
