"""A prompt that goes on while text is typed at its end, as all before that has been read."""

from dataclasses import dataclass
from typing import Self

from engine.model.prompt import Frame, Prompt
from engine.model.prompt_window import TextCodec
from engine.request import CompletionRequest

_GROWTH = 256  # tokens beyond a new layout's most that it grows by; that is read at the next pause


@dataclass(frozen=True, slots=True)
class StandingPrompt:
    """The latest prompt of a document, and the texts that it was made for."""

    prompt: Prompt
    frame: Frame
    prefix: str
    suffix: str
    path: str
    workspace: str

    @classmethod
    def of(cls, prompt: Prompt, request: CompletionRequest) -> Self | None:
        """Return the prompt of a request; None if text cannot be added at its end."""
        if prompt.frame is None:
            return None
        place = request.prefix, request.suffix, request.path, request.workspace
        return cls(prompt, prompt.frame, *place)

    def grown(
        self, request: CompletionRequest, tokenizer: TextCodec, most_tokens: int
    ) -> Prompt | None:
        """Return this prompt with what was typed since; None after another change of its document.

        Other files keep the text that it shows of them, as long as the request offers them.
        """
        is_same = (
            request.layout == "line"
            and (self.path, self.workspace) == (request.path, request.workspace)
            and self.suffix == request.suffix
            and request.prefix.startswith(self.prefix[: self.frame.start])
            # A file that is no longer offered may be closed, ignored or secret by now.
            and {one.path for one in request.open_buffers}.issuperset(self.prompt.neighbours)
            and {one.path for one in request.repository}.issuperset(self.prompt.repository)
        )
        if not is_same:
            return None
        grown = self.prompt.grown(tokenizer, self.frame, request.prefix)
        return grown if len(grown.ids) <= most_tokens + _GROWTH else None
