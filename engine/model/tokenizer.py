"""Convert text to token ids and back. Names of special tokens stay text, except in raw prompts."""

import json
import re
from collections.abc import Collection, Iterable, Mapping
from copy import copy
from functools import cached_property
from typing import Any, Self

import msgspec
from tokenizers import Tokenizer as Backend

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.remembered_encoding import SAMPLE, RememberedEncoding, allows_blocks
from engine.model.vocabulary import Vocabulary
from engine.model_names import printable


class TokenizerDocument(msgspec.Struct, frozen=True):
    """A parsed tokenizer.json."""

    specials: dict[str, int]  # ids of special tokens by name
    start_ids: tuple[int, ...]  # precede any text
    end_ids: tuple[int, ...]  # those of the model's configuration
    byte_level: bool  # how the vocabulary spells bytes
    plain: str = ""  # the file's text without special tokens
    chat_template: str = ""  # the source of the model's Jinja template for messages
    chat_names: dict[str, str] = {}  # names of special tokens that it asks for, as `bos_token`

    @classmethod
    def read(cls, text: str, end_ids: tuple[int, ...] = ()) -> Self:
        """Parse the text of a tokenizer.json. Raises ModelCorruptError."""
        try:
            content = json.loads(text)
            return cls.of(content, _start_ids(content), end_ids)
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ModelCorruptError(f"tokenizer.json cannot be read: {error}") from error

    @classmethod
    def of(
        cls, content: dict[str, Any], start_ids: tuple[int, ...], end_ids: tuple[int, ...]
    ) -> Self:
        """Take apart the content of a tokenizer.json. Raises errors of many kinds if it is odd."""
        added = content["added_tokens"]
        specials = {token["content"]: token["id"] for token in added if not _is_text(token)}
        plain = json.dumps(_plain(content), ensure_ascii=False)
        "".join([plain, *specials]).encode()  # raises for lone surrogates, which no file can hold
        kinds = json.dumps([content.get(part) for part in ("pre_tokenizer", "decoder")])
        return cls(specials, start_ids, end_ids, '"type": "ByteLevel"' in kinds, plain)


def _is_text(token: dict[str, Any]) -> bool:
    # Some vocabularies add runs of blanks as tokens. No other added token occurs in text.
    return not token["special"] and token["content"].replace("▁", " ").isspace()


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Remove steps that find special tokens or change a text, as by putting a blank before it."""
    plain = dict(content)
    plain["added_tokens"] = [token for token in content["added_tokens"] if _is_text(token)]
    plain["normalizer"] = _without(content.get("normalizer"))
    plain["pre_tokenizer"] = _without(content.get("pre_tokenizer"))
    plain["post_processor"] = None
    plain["truncation"] = plain["padding"] = None
    return plain


def _without(step: dict[str, Any] | None) -> dict[str, Any] | None:
    if step is None or step["type"] in ("NFC", "NFKC", "NFD", "NFKD", "Prepend"):
        return None
    if step["type"] == "Sequence":
        name = "normalizers" if "normalizers" in step else "pretokenizers"
        return step | {name: [kept for part in step[name] if (kept := _without(part))]}
    if step["type"] == "Metaspace":
        return step | {"prepend_scheme": "never"}
    if step["type"] == "ByteLevel" and "add_prefix_space" in step:
        return step | {"add_prefix_space": False}
    return step


def _start_ids(content: dict[str, Any]) -> tuple[int, ...]:
    """Return the ids that the model's template puts before a text."""
    processor = content.get("post_processor") or {}
    steps = processor.get("processors", [processor])
    for step in steps:
        if step.get("type") != "TemplateProcessing":
            continue
        ids: list[int] = []
        for piece in step["single"]:
            if "Sequence" in piece:
                break
            ids += step["special_tokens"][piece["SpecialToken"]["id"]]["ids"]
        return tuple(ids)
    return ()


_LONG_CHARS = 10_000  # takes about 10 ms; only `encode_batch` lets other threads run meanwhile
_MOST_IDS = 2**24  # far beyond any vocabulary; bounds the list that holds all ids
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = "\ufdd0"  # a noncharacter: in a raw prompt it keeps a name text, and two stand for one
_MARKED = re.compile(f"{_MARK}({_MARK}?)")


class Tokenizer:
    """A model's tokenizer. Encoding and decoding a text returns the same text, in any script."""

    def __init__(self, document: TokenizerDocument) -> None:
        """Raise UnsupportedModelError for a document that cannot be used."""
        try:
            self._backend = Backend.from_str(document.plain)
        except Exception as error:  # tokenizers raises a bare Exception
            reason = printable(str(error))
            raise UnsupportedModelError(f"tokenizer.json cannot be used: {reason}") from error
        plain = self._backend.get_vocab()
        written = (*plain.values(), *document.start_ids)
        if not all(
            type(one) is int and 0 <= one < _MOST_IDS
            for one in (*written, *document.specials.values())
        ):
            raise UnsupportedModelError(
                f"tokenizer.json has token ids that are not within 0 and {_MOST_IDS:,}"
            )
        self.start_ids = document.start_ids
        self._num_written = 1 + max(written, default=-1)  # ids of text and its start are below
        self._know(document, plain)

    def _know(self, document: TokenizerDocument, plain: dict[str, int]) -> None:
        self._document = msgspec.structs.replace(document, plain="")
        self.vocabulary = Vocabulary(
            plain | document.specials,
            document.specials.values(),
            document.end_ids,
            byte_level=document.byte_level,
        )
        self._specials = _spelled(document.specials)
        names = sorted(self._specials, key=len, reverse=True)
        either = "|".join(map(re.escape, names)) or r"(?!)"
        self._special = re.compile(either)
        self._start = re.compile(f"(?=(?:{either})).", re.DOTALL)  # first characters of names

    def within(self, num_ids: int) -> Self:
        """Drop special ids from `num_ids` on. Raises ModelCorruptError if a text may have them."""
        if self._num_written > num_ids:
            raise ModelCorruptError(
                f"the tokenizer has {self._num_written:,} tokens, more than the {num_ids:,} of the model"
            )
        if len(self.vocabulary) <= num_ids:
            return self
        near = {name: one for name, one in self._document.specials.items() if one < num_ids}
        other = copy(self)
        document = msgspec.structs.replace(self._document, specials=near)
        other._know(document, self._backend.get_vocab())  # noqa: SLF001 - its own
        return other

    def encode(self, text: str) -> list[int]:
        """Return the token ids of a text. Lone surrogates become U+FFFD."""
        plain = encodable(text)
        if len(text) < _LONG_CHARS:
            encoding = self._backend.encode(plain, add_special_tokens=False)
        else:
            (encoding,) = self._backend.encode_batch([plain], add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids

    def remembering(self, most_chars: int) -> "Tokenizer":
        """Return a caching copy, for one principal: its speed would reveal texts to others."""
        other = copy(self)
        remembered = RememberedEncoding(self.encode, most_chars, in_blocks=self.encodes_blocks)
        other.encode = remembered  # type: ignore[method-assign]
        return other

    @cached_property
    def encodes_blocks(self) -> bool:
        """Whether encoding a text block by block gives the tokens of the whole text."""
        return allows_blocks(SAMPLE, self.encode)

    def encode_raw(self, text: str) -> list[int]:
        """Return a text's token ids after `start_ids`, reading names of special tokens as these.

        Pieces of the text may be `marked`, which keeps the names in them text.
        """
        ids, end = list[int](), 0
        for name in self._special.finditer(text):
            ids += [*self.encode(_unmarked(text[end : name.start()])), self._specials[name[0]]]
            end = name.end()
        ids += self.encode(_unmarked(text[end:]))
        start = list(self.start_ids)
        return ids if ids[: len(start)] == start else [*start, *ids]

    def marked(self, text: str) -> str:
        """Return a text for a part of a raw prompt in which no special token is meant."""
        return self._start.sub(rf"\g<0>{_MARK}", text.replace(_MARK, 2 * _MARK))

    @property
    def special_names(self) -> Collection[str]:
        """The names of all special tokens."""
        return self._document.specials

    @property
    def chat_template(self) -> str:
        """The source of the model's template for messages; empty if it has none."""
        return self._document.chat_template

    @property
    def chat_names(self) -> Mapping[str, str]:
        """Names of special tokens that the template may ask for, as `bos_token`."""
        return self._document.chat_names

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of the tokens; invalid UTF-8 becomes U+FFFD."""
        return self.vocabulary.bytes_of_all(token_ids).decode("utf-8", "replace")


def _spelled(specials: Mapping[str, int]) -> dict[str, int]:
    """Add the usual spellings of special tokens: `▁<PRE>` is written `<PRE>` or ` <PRE>`."""
    spelled = dict(specials)
    for name, token_id in specials.items():
        bare = name.removeprefix("▁")
        for one in (f" {bare}", bare) if bare != name else ():
            spelled.setdefault(one, token_id)
    return spelled


def _unmarked(text: str) -> str:
    return _MARKED.sub(r"\1", text)


def encodable(text: str) -> str:
    """Replace lone surrogates by U+FFFD."""
    return _SURROGATE.sub("\ufffd", text)
