"""What the last prompt was made of, for people."""

import time
from collections.abc import Sequence
from typing import Self

import msgspec

from engine.host.protocol import Done, PromptUse
from lsp_server.reasons import harmless, shown_name


class LastPrompt(msgspec.Struct, frozen=True):
    """What a language server keeps of its last prompt for `foregram why`: no text."""

    time_s: float  # since the epoch
    uri: str
    file: str
    sentence: str

    @classmethod
    def of(cls, uri: str, done: Done) -> Self:
        """The prompt of a document's completion."""
        return cls(time.time(), uri, shown_name(uri), prompt_sentence(done))

    @classmethod
    def from_json(cls, content: bytes) -> Self:
        """What `to_json` wrote. Raises msgspec.MsgspecError."""
        return msgspec.json.decode(content, type=cls)

    def to_json(self) -> bytes:
        """For another process."""
        return msgspec.json.encode(self)


def prompt_sentence(done: Done) -> str:
    """What a completion's prompt was made of, with the names of the files."""
    return prompt_summary(PromptUse.of(done), done.neighbours)


def prompt_summary(use: PromptUse, names: Sequence[str] = ()) -> str:
    """Tokens of a prompt, those that were read before, and those of other open files."""
    reused = f"{use.tokens:,} tokens, {use.reused_tokens:,} of them read before"
    if not use.num_open:
        return f"{reused}; no other file was open"
    files = f"{use.num_neighbours} of {use.num_open} other open files"
    listed = f" ({', '.join(map(harmless, names))})" if names else ""
    return f"{reused}; {use.neighbour_tokens:,} from {files}{listed}"
