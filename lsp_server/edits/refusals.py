"""Why no edit was made: a code for programs and a sentence for people."""

from engine.edits.edit_prompt import Refusal
from lsp_server.reasons import Reason

DOCUMENT_CHANGED = "document_changed"
NOT_APPLIED = "not_applied"
OUTSIDE = "outside"
_SENTENCES = {
    DOCUMENT_CHANGED: "the document changed meanwhile, so the edit was dropped",
    NOT_APPLIED: "the editor did not apply the edit",
    OUTSIDE: "the model's answer changes other lines than these",
    Refusal.EMPTY_ANSWER: "the model answered without code; other words may help",
    Refusal.MALFORMED: "the model's answer is not one block of code, so nothing was changed",
    Refusal.NO_CHANGE: "the model would change nothing; other words may help",
    Refusal.TOKEN_LIMIT: "the answer would be too long; ask about fewer lines",
}


class EditRefusedError(Exception):
    """No edit is made, or a ready one is not applied."""

    def __init__(self, code: str, sentence: str = "") -> None:
        """Take a `Reason` or another code; without a sentence, the one of the code."""
        if not sentence and isinstance(code, Reason):
            sentence = code.sentence
        super().__init__(sentence or _SENTENCES.get(code, f"the model made no edit ({code})"))
        self.code = code
