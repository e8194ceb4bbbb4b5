"""A completion before it is written: how much to ask for, and what of the answer is worth showing."""

from dataclasses import dataclass
from typing import Self

from msgspec.structs import replace

from engine.config import StopRules
from engine.host.protocol import Done
from engine.request import FinishReason
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import process
from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.syntax_judge import Judge, judge_of
from lsp_server.documents.anchor import Anchor
from lsp_server.prompt.place import BOUNDS, Place, place_by_text, scope_at
from lsp_server.prompt.syntax import Places
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

_FEWEST_SHOWN = 3  # characters: fewer distract


@dataclass(frozen=True, slots=True)
class Plan:
    """What is asked of the host at `anchor`, and what its text is judged against."""

    anchor: Anchor
    stop: StopRules
    context: CursorContext
    judge: Judge

    @classmethod
    def at(
        cls, anchor: Anchor, places: Places, settings: Settings, *, is_ahead: bool = False
    ) -> Self:
        """By the syntax tree, which knows the editor's text alone, or else by the text.

        `is_ahead`: the user goes on there after a suggestion.
        """
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
        stop = replace(
            BOUNDS[scope],
            max_tokens=min(BOUNDS[scope].max_tokens, settings.max_tokens),
            time_limit_ms=settings.time_limit_ms or BOUNDS[scope].time_limit_ms,
            # An explicit request shows what there is.
            min_confidence=0.0 if anchor.is_invoked else settings.min_confidence,
        )
        line = syntax.parsed_line(anchor.document.lines, anchor.row)
        lead = "\n".join((*snapshot.lines[anchor.row : position.line], context.before))
        return cls(anchor, stop, context, judge_of(line, context, lead))

    def suggestion(self, done: Done) -> Suggestion | Reason:
        """What of the host's text is worth showing, or why nothing is."""
        if done.finish_reason == FinishReason.CANCELLED:  # another request took the place
            return Reason.SUPERSEDED
        is_unsure = done.finish_reason == FinishReason.UNSURE
        if not done.text:
            return Reason.UNSURE if is_unsure else Reason.MODEL_SAID_NOTHING
        made = process(done.text, self.context, self.judge)
        if isinstance(made, Reason):
            # What is left of an unsure text may be unable to stand, or too short.
            return Reason.UNSURE if is_unsure and made is Reason.BREAKS_CODE else made
        if is_unsure and len(made.text.strip()) < _FEWEST_SHOWN:
            return Reason.UNSURE
        return made._replace(completion_id=done.id)
