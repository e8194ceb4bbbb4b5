"""Edits for one model: the raw prompt of each, and the outcome of its answer."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import accumulate

import msgspec

from engine.config import StopRules
from engine.edits.asked import Render, asked_prompt, check_lines
from engine.edits.edit_prompt import EditedDocument, EditPrompt, RefusedEditError
from engine.edits.formats import format_for
from engine.edits.instruct import instruct_prompt
from engine.errors import NoEditModelError
from engine.growing_text import GrowingText
from engine.model.chat_template import chat_template
from engine.model.tokenizer import Tokenizer
from engine.request import CompletionRequest, EditOutcome, EditTask, FinishReason
from engine.text.lines import last_line

_CHARS_PER_TOKEN = 2  # of an answer; code has more
_NEXT_TOKENS = 1024  # that the answer of a next edit may always have, as Sweep's server allows
_GROWTH_TOKENS = 256  # that an answer may add to its block: two long docstrings
_ENDS = (
    FinishReason.END_TOKEN,
    FinishReason.FIM_TOKEN,
    FinishReason.REJOINED,
    FinishReason.STOP_STRING,
)


@dataclass(frozen=True, slots=True)
class LaidOutEdit:
    """A prompt for an edit of a document."""

    prompt: EditPrompt
    document: EditedDocument

    @property
    def shown_paths(self) -> tuple[str, ...]:
        """The paths of other files in the prompt."""
        snippets, history = self.document.snippets, self.document.task.history
        paths = [*(one.path for one in snippets), *(one.path for one in history)]
        return tuple(path for path in dict.fromkeys(paths) if path != self.document.path)

    def as_raw(self, request: CompletionRequest) -> CompletionRequest:
        """Return the request with the raw prompt; of its stop rules, only `max_tokens` stays."""
        block, prompt = self.prompt.block, self.prompt
        most = len(block) // _CHARS_PER_TOKEN + _GROWTH_TOKENS
        if not self.document.task.instruction:
            most = max(most, _NEXT_TOKENS)
        return replace(
            request,
            prefix=prompt.text,
            suffix="",
            is_raw=True,
            copied=block.removeprefix(prompt.prefill),
            stop=msgspec.structs.replace(
                StopRules.verbatim(min(request.stop.max_tokens, most), prompt.stops),
                rejoins=not self.document.task.instruction,
            ),
        )

    def outcome(self, text: GrowingText) -> EditOutcome | None:
        """Return what an ended answer changes, or why nothing; None if only the prompt was read."""
        if text.finish_reason is FinishReason.PREFILLED:
            return None
        try:
            edit = self.prompt.read(text.text, text.finish_reason not in _ENDS)
        except RefusedEditError as refused:
            return EditOutcome(refusal=refused.code)
        log_prob = text.log_prob_of(self._changed(text.text))
        return msgspec.structs.replace(edit, probability=math.exp(log_prob))

    def _changed(self, answer: str) -> Iterator[range]:
        """Yield the lines of the answer that differ from the block, as places in the text.

        The first character behind deleted lines stands for them.
        """
        prefill = self.prompt.prefill
        old, new = self.prompt.block.split("\n"), (prefill + answer).split("\n")
        starts = list(accumulate((len(line) + 1 for line in new), initial=-len(prefill)))
        matcher = SequenceMatcher(None, old, new)
        for tag, _, _, first, end in matcher.get_opcodes():
            if tag != "equal":
                yield range(starts[first], max(starts[end], starts[first] + 1))


class EditLayout:
    """Lays out edits in the forms that a model knows."""

    def __init__(self, model_name: str, tokenizer: Tokenizer, render: Render, room: int) -> None:
        """`room` bounds the characters of a prompt besides its block."""
        self._tokenizer, self._render, self._room = tokenizer, render, room
        self._format = format_for(model_name, tokenizer.special_names)

    def check(self, task: EditTask) -> None:
        """Raise NoChatTemplateError or NoEditModelError if the model was not made for a task."""
        self._check_form(task)
        if not task.instruction and self._format is instruct_prompt:
            raise NoEditModelError(
                "the model was not made for next edits; `edit_model` may name it, or better "
                "a model that was, such as sweep-1.5b"
            )

    def _check_form(self, task: EditTask) -> None:
        if task.instruction:
            chat_template(self._tokenizer)
        elif self._format is None:
            raise NoEditModelError(
                "the model proposes no next edits; name one that does in `edit_model`, such as "
                "sweep-1.5b"
            )

    def laid_out(self, request: CompletionRequest, task: EditTask) -> LaidOutEdit:
        """Lay out an edit in the model's form, whether or not it was made for such edits.

        Raises NoChatTemplateError, NoEditModelError, InputError and RefusedEditError.
        """
        self._check_form(task)
        document = EditedDocument(
            path=request.path,
            lines=(request.prefix + request.suffix).split("\n"),
            row=request.prefix.count("\n"),
            column=len(last_line(request.prefix)),
            task=task,
            snippets=request.repository,
            room=self._room,
            marked=self._tokenizer.marked,
        )
        if self._format is not None and not task.instruction:
            return LaidOutEdit(self._format(document), document)
        check_lines(task, len(document.lines))
        return LaidOutEdit(asked_prompt(document, self._render), document)
