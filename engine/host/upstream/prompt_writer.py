"""Prompts for an upstream, laid out as our own engine lays them out.

With the model's tokenizer a prompt goes out as token ids: exactly what our own engine would read.
Without it a prompt is text, in which the special tokens stand by their names. A name that the user's
own text has there is broken up, so that it stays text.
"""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from engine.model.fim import FimFormat
from engine.model.prompt import Prompt, build_prompt
from engine.model.prompt_window import TextCodec
from engine.model.tokenizer import encodable
from engine.request import CompletionRequest
from engine.snippets import Neighbours

FIRST_TEXT_ID = 256
_PIECE = re.compile(
    r" ?[A-Za-z_]{1,5}|[0-9]|[ \t]*\r?\n[ \t]{0,24}|[ \t]{1,16}"
    r"| ?[!-/:-@\[-^`{-~]{1,2}|[\u0080-\u1fff]{1,2}|.",
    re.DOTALL,
)
_WIDE = 0x10000  # characters from here on, as emoji, are several tokens
_FILLER = 1  # counts as a token and is no text


class EstimatedTokens:
    """Numbers for pieces of text, and for special tokens by their names."""

    def __init__(self, specials: Mapping[str, int]) -> None:
        """`specials` are special tokens' names and their ids, from 2 to 255."""
        self.start_ids: tuple[int, ...] = ()  # the upstream knows them
        self._names = {token_id: name for name, token_id in specials.items()}

    def encode(self, text: str) -> list[int]:
        """Return the ids of the pieces of a text, where a special token's name is plain text."""
        ids: list[int] = []
        for piece in _PIECE.findall(encodable(text)):
            ids.append(int.from_bytes(b"\x01" + piece.encode(), "big"))
            if ord(piece[0]) >= _WIDE:
                ids.append(_FILLER)
        return ids

    def decode(self, token_ids: Iterable[int], /) -> str:
        """Return the text of the ids, special tokens by their names."""
        return "".join(self._names.get(one) or _text_of(one) for one in token_ids)


def _text_of(text_id: int) -> str:
    content = text_id.to_bytes((text_id.bit_length() + 7) // 8, "big")
    return content[1:].decode()


@dataclass(frozen=True, slots=True)
class UpstreamPrompt:
    """What is sent, and what is known of it. The answer must begin with `owed`."""

    sent: str | Sequence[int]
    laid_out: Prompt
    owed: str


@dataclass(slots=True)
class PromptWriter:
    """Lays out prompts in at most `budget` tokens; `names` are the special tokens by their ids.

    `sends_text`: an upstream gets them as text, and puts what begins one there itself.
    """

    codec: TextCodec
    fim: FimFormat
    names: dict[int, str]
    sends_text: bool
    budget: int = 1024
    neighbours: Neighbours = field(init=False)
    _special: re.Pattern[str] = field(init=False)

    def __post_init__(self) -> None:
        self.neighbours = Neighbours(lambda text: len(self.codec.encode(text)))
        longest_first = sorted(self.names.values(), key=len, reverse=True)
        self._special = re.compile("|".join(map(re.escape, longest_first)))

    @property
    def is_estimated(self) -> bool:
        """Whether the lengths of prompts are estimates."""
        return isinstance(self.codec, EstimatedTokens)

    def write(self, request: CompletionRequest, *, is_healed: bool) -> UpstreamPrompt:
        """Lay out a prompt. `is_healed`: the piece at the cursor is left out, and owed by the answer."""
        if request.is_raw:
            return self._raw(request.prefix)
        layout = request.layout if is_healed else "psm"
        laid_out = build_prompt(
            self.codec,
            self.fim,
            request.prefix,
            request.suffix,
            layout,
            self.budget,
            path=request.path,
            snippets=lambda room: self.neighbours.snippets(request, room),
        )
        num_start = len(self.codec.start_ids)
        sent = self._as_text(laid_out.ids[num_start:]) if self.sends_text else laid_out.ids
        return UpstreamPrompt(sent, laid_out, laid_out.dropped.decode())

    def ends(self, request: CompletionRequest) -> Collection[str]:
        """The special tokens that end a text; where the document speaks of one itself, it is text."""
        if request.is_raw:
            return list(self.names.values())
        return [
            name
            for name in self.names.values()
            if name not in request.prefix and name not in request.suffix
        ]

    def _raw(self, text: str) -> UpstreamPrompt:
        """A prompt that its caller laid out: the upstream itself reads the special tokens in it."""
        pieces = self._special.split(text)
        ids = [
            *self.codec.start_ids,
            *(one for piece in pieces for one in self.codec.encode(piece)),
        ]
        ids += [0] * (len(pieces) - 1)  # one for each special token: only their number is asked for
        return UpstreamPrompt(text, Prompt(tuple(ids), b"", b"", ()), owed="")

    def _as_text(self, ids: Sequence[int]) -> str:
        parts: list[str] = []
        run: list[int] = []
        for one in (*ids, -1):
            if one >= 0 and one not in self.names:
                run.append(one)
                continue
            parts += [self._plain(self.codec.decode(run)), self.names.get(one, "")]
            run = []
        return "".join(parts)

    def _plain(self, text: str) -> str:
        """The text without any special token's name: each gets a blank behind its first character."""
        return self._special.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
