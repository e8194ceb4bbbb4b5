"""Prompts for an upstream: text with special tokens by name, of an estimated length."""

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import groupby

from engine.model.fim import find_fim_format
from engine.model.prompt import Prompt, build_prompt
from engine.model.tokenizer import encodable
from engine.model.vocabulary import Vocabulary
from engine.request import CompletionRequest
from engine.snippets import Neighbours

_FIRST_SPECIAL_ID = 2  # behind the filler's; the ids of texts begin at 256
_PIECE = re.compile(
    r" ?[A-Za-z_]{1,5}|[0-9]|[ \t]*\r?\n[ \t]{0,24}|[ \t]{1,16}"
    r"| ?[!-/:-@\[-^`{-~]{1,2}|[\u0080-\u1fff]{1,2}|.",
    re.DOTALL,
)
_WIDE = 0x10000  # characters from here on, such as emoji, are several tokens
_FILLER = 1  # an id that counts as a token without text
_ENDS = ("<|endoftext|>", "<|im_end|>", "<|end_of_text|>", "<|eot_id|>")  # of many families
_PIPED = ("<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>")
_STARCODER = ("<fim_prefix>", "<fim_suffix>", "<fim_middle>", "<fim_pad>", "<|endoftext|>")
_NO_NAME = "(?!)"  # matches no name: only the tokens identify the family
FAMILIES = (  # a pattern for model names, and the special tokens
    (
        r"qwen",
        (*_PIPED, "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>", "<|endoftext|>", "<|im_end|>"),
    ),
    (r"codegemma", (*_PIPED, "<|file_separator|>", "<eos>")),
    (r"granite-?4", (*_PIPED, "<|fim_pad|>", "<|end_of_text|>")),
    (r"mellum", (*_STARCODER, "<filename>", "<reponame>", "<|im_start|>", "<|im_end|>")),
    (r"starcoder-?2", (*_STARCODER, "<file_sep>", "<repo_name>")),
    (r"star-?coder|granite.*code|refact|stable-code", _STARCODER),
    (r"santacoder", ("<fim-prefix>", "<fim-suffix>", "<fim-middle>", "<|endoftext|>")),
    (r"seed-?coder", ("<[fim-prefix]>", "<[fim-suffix]>", "<[fim-middle]>", "<[end▁of▁sentence]>")),
    (
        r"deepseek",
        (
            "<｜fim▁begin｜>",  # noqa: RUF001 - DeepSeek's own
            "<｜fim▁hole｜>",  # noqa: RUF001 - likewise
            "<｜fim▁end｜>",  # noqa: RUF001 - likewise
            "<｜end▁of▁sentence｜>",  # noqa: RUF001 - likewise
        ),
    ),
    (r"glm-?4", ("<|code_prefix|>", "<|code_suffix|>", "<|code_middle|>", "<|endoftext|>")),
    (r"code-?llama", ("▁<PRE>", "▁<SUF>", "▁<MID>")),
    (r"codestral", ("[PREFIX]", "[SUFFIX]")),
    (_NO_NAME, ("<PRE>", "<SUF>", "<MID>")),
    (_NO_NAME, ("<|prefix|>", "<|suffix|>", "<|middle|>")),
)


def names_by_model(*model_names: str) -> tuple[str, ...]:
    """Return the special tokens of the family that one of the names matches, or none."""
    for pattern, names in FAMILIES:
        if any(re.search(pattern, name.lower()) for name in model_names):
            return names
    return ()


class EstimatedTokens:
    """Stands in for the tokenizer: numbers pieces of text, and special tokens by name."""

    def __init__(self, specials: Mapping[str, int]) -> None:
        """`specials` are special tokens' names and their ids, from 2 to 255."""
        self.start_ids: tuple[int, ...] = ()  # the upstream adds its own
        self.names = {token_id: name for name, token_id in specials.items()}

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text's pieces; a special token's name is plain text here."""
        ids: list[int] = []
        for piece in _PIECE.findall(encodable(text)):
            ids.append(int.from_bytes(b"\x01" + piece.encode(), "big"))
            if ord(piece[0]) >= _WIDE:
                ids.append(_FILLER)
        return ids

    def decode(self, token_ids: Iterable[int], /) -> str:
        """Return the text of the ids, with special tokens by name."""
        return "".join(self.names.get(one) or _text_of(one) for one in token_ids)


def _text_of(text_id: int) -> str:
    content = text_id.to_bytes((text_id.bit_length() + 7) // 8, "big")
    return content[1:].decode()


class PromptWriter:
    """Lays out prompts in at most `budget` tokens."""

    def __init__(self, special: Sequence[str], model_name: str) -> None:
        """`special` are the model's special tokens. Raises UnsupportedModelError."""
        self.special = tuple(dict.fromkeys((*special, *_ENDS)))
        ids = {name: number for number, name in enumerate(self.special, _FIRST_SPECIAL_ID)}
        self.codec = EstimatedTokens(ids)
        self.budget = 1024
        self.neighbours = Neighbours(lambda text: len(self.codec.encode(text)))
        vocabulary = Vocabulary(ids, ids.values(), (), byte_level=False)
        self._fim = find_fim_format(vocabulary, model_name)
        self._ids = ids
        longest_first = sorted(self.special, key=len, reverse=True)
        self._names = re.compile("|".join(map(re.escape, longest_first)))

    def write(self, request: CompletionRequest, *, is_healed: bool) -> Prompt:
        """Lay out a prompt. With `is_healed`, the answer owes the piece cut at the cursor."""
        if request.is_raw:
            return self._raw(request.prefix)
        return build_prompt(
            self.codec,
            self._fim,
            request.prefix,
            request.suffix,
            request.layout if is_healed else "psm",
            self.budget,
            path=request.path,
            snippets=lambda room: self.neighbours.snippets(request, room),
        )

    def text_of(self, prompt: Prompt) -> str:
        """Return the text of a prompt, in which the upstream reads special tokens by name."""
        runs = groupby(prompt.ids, lambda one: one in self.codec.names)
        return "".join(
            self.codec.decode(run) if is_special else self._plain(run) for is_special, run in runs
        )

    def ends(self, request: CompletionRequest) -> Collection[str]:
        """Return the special tokens that end a text: all but those named in the document."""
        text = "" if request.is_raw else f"{request.prefix}\0{request.suffix}"
        return [name for name in self.special if name not in text]

    def _raw(self, text: str) -> Prompt:
        first, *pieces = self._names.split(text)
        ids = self.codec.encode(first)
        for name, piece in zip(self._names.findall(text), pieces, strict=True):
            ids += [self._ids[name], *self.codec.encode(piece)]
        return Prompt(tuple(ids), b"", b"", ())

    def _plain(self, ids: Iterable[int]) -> str:
        """Decode text, with a blank in any special token's name, so that it stays text."""
        text = self.codec.decode(ids)
        return self._names.sub(lambda found: f"{found[0][0]} {found[0][1:]}", text)
