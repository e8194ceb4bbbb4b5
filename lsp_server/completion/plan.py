"""The plan of a completion: how much to request, and which part of the answer to show."""

from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from engine.config import StopRules
from engine.request import Done, FinishReason
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.judge import LineJudge
from lsp_server.completion.postprocess import process
from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.syntax_judge import judge_of
from lsp_server.documents.anchor import Anchor
from lsp_server.prompt.place import BOUNDS, Place, place_by_text, scope_at
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

_FEWEST_SHOWN = 3  # characters; shorter suggestions distract
# A whole line needs a share of `min_confidence`: on two kits of places, 0.6 left the best files.
_LINE_SHARE = 0.6
# Probability of each later line, unless `min_confidence` is higher. In simulated typing of 23
# traces, 0.5 made 41 instead of 34 % of the shown characters wrong and saved no key.
_LATER = 0.7

SILENCES = {  # why a text is empty
    FinishReason.END_TOKEN: Reason.MODEL_SAID_NOTHING,
    FinishReason.FIM_TOKEN: Reason.MODEL_SAID_NOTHING,
    FinishReason.SUFFIX: Reason.ONLY_REPEATS_NEXT_LINES,
    FinishReason.UNSURE: Reason.UNSURE,
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The request to the host at `anchor`, and the judge of its text."""

    anchor: Anchor
    stop: StopRules
    judge: LineJudge

    @classmethod
    def at(
        cls, anchor: Anchor, places: Places, settings: Settings, *, is_ahead: bool = False
    ) -> Self:
        """Plan the completion at `anchor`. `is_ahead`: it follows a suggestion not yet accepted."""
        snapshot, position = anchor.snapshot, anchor.position
        syntax = places.syntax(anchor.document)
        if snapshot is anchor.document:
            place = syntax.place(snapshot.lines, position)
        else:
            place = place_by_text(snapshot.lines, position, snapshot.language_id)
        lines = "single" if anchor.is_guess else settings.lines
        scope = scope_at(place, lines, is_invoked=anchor.is_invoked, after_accept=is_ahead)
        context = CursorContext.of(
            snapshot.lines,
            position,
            scope=scope,
            language_id=snapshot.language_id,
            is_in_comment=place is Place.COMMENT,
        )
        # An explicit request shows whatever there is.
        least = 0.0 if anchor.is_invoked else settings.min_confidence
        stop = replace(
            BOUNDS[scope],
            max_tokens=min(BOUNDS[scope].max_tokens, settings.max_tokens),
            time_limit_ms=settings.time_limit_ms or BOUNDS[scope].time_limit_ms,
            min_confidence=least,
            min_line_confidence=_LINE_SHARE * least,
            min_later_confidence=max(_LATER, least) if least else 0.0,
        )
        line = syntax.parsed_line(anchor.document.lines, anchor.row)
        lead = "\n".join((*snapshot.lines[anchor.row : position.line], context.before))
        return cls(anchor, stop, judge_of(line, context, lead))

    def beginning(self, text: str, completion_id: str) -> Suggestion | Reason:
        """Return what to show of a text that the host goes on with, or why to wait for more."""
        return _shown(process(text, self.judge, is_finished=False), completion_id)

    def suggestion(self, done: Done) -> Suggestion | Reason:
        """Return the part of the host's text worth showing, or why there is none."""
        if done.finish_reason == FinishReason.CANCELLED:  # another request replaced it
            return Reason.SUPERSEDED
        is_unsure = done.finish_reason == FinishReason.UNSURE
        if not done.text:
            return SILENCES.get(done.finish_reason, Reason.MODEL_SAID_NOTHING)
        made = process(done.text, self.judge)
        if is_unsure and made is Reason.BREAKS_CODE:  # a text that was cut may not parse
            return Reason.UNSURE
        return _shown(made, done.id, _FEWEST_SHOWN if is_unsure else 0)


def _shown(
    made: Suggestion | Reason, completion_id: str, fewest: int = _FEWEST_SHOWN
) -> Suggestion | Reason:
    if isinstance(made, Reason):
        return made
    is_short = len(made.text.strip()) < fewest
    return Reason.UNSURE if is_short else made._replace(completion_id=completion_id)
