"""Text to token ids and back. Strings that name special tokens are plain text here.

Special tokens enter a prompt by id, from `engine.model.fim`, never from a user's text.
"""

import json
import re
from collections.abc import Iterable
from typing import Any, Self

from tokenizers import Tokenizer as Backend

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.vocabulary import Vocabulary

_SURROGATE = re.compile("[\ud800-\udfff]")


class Tokenizer:
    """A model's tokenizer. Encoding what `decode` returns gives the same text, in any script."""

    def __init__(
        self, backend: Backend, vocabulary: Vocabulary, start_ids: tuple[int, ...]
    ) -> None:
        self._backend = backend
        self.vocabulary = vocabulary
        self.start_ids = start_ids  # what the model expects before any prompt, as a begin-of-text

    @classmethod
    def from_json(cls, text: str, end_ids: Iterable[int] = ()) -> Self:
        """Read a tokenizer.json. Raises ModelCorruptError or UnsupportedModelError."""
        try:
            content = json.loads(text)
            start_ids = _start_ids(content)
            added = content["added_tokens"]
            marks = [token for token in added if not _is_text(token)]
            backend = Backend.from_str(json.dumps(_plain(content)))
            ids = backend.get_vocab() | {token["content"]: token["id"] for token in added}
            byte_level = _has_step(content, "ByteLevel")
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise ModelCorruptError(f"tokenizer.json cannot be read: {error}") from error
        except Exception as error:  # tokenizers raises it bare
            raise UnsupportedModelError(f"tokenizer.json cannot be used: {error}") from error
        specials = (token["id"] for token in marks)
        return cls(backend, Vocabulary(ids, specials, end_ids, byte_level=byte_level), start_ids)

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. Lone surrogates, which no encoding has, become U+FFFD."""
        encoding = self._backend.encode(encodable(text), add_special_tokens=False)
        ids: list[int] = encoding.ids
        return ids

    def decode_bytes(self, token_ids: Iterable[int]) -> bytes:
        """Return the bytes of the tokens; they may end within a character."""
        return b"".join(map(self.vocabulary.bytes_of, token_ids))

    def decode(self, token_ids: Iterable[int]) -> str:
        """Return the text of the tokens; bytes that are no UTF-8 become U+FFFD."""
        return self.decode_bytes(token_ids).decode("utf-8", "replace")


def encodable(text: str) -> str:
    """Return the text with U+FFFD for its lone surrogates."""
    return _SURROGATE.sub("\ufffd", text)


def _is_text(token: dict[str, Any]) -> bool:
    # Some vocabularies add runs of blanks as tokens; these are the only added ones found in text.
    return not token["special"] and token["content"].replace("▁", " ").isspace()


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return the tokenizer without what would read marks into a text, or change a text.

    Blanks put before the text belong to whole documents, but we encode pieces of one. Unicode
    normalisation would give the editor another text than the user's.
    """
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


def _has_step(content: dict[str, Any], kind: str) -> bool:
    return any(
        f'"type": "{kind}"' in json.dumps(content.get(part))
        for part in ("pre_tokenizer", "decoder")
    )


def _start_ids(content: dict[str, Any]) -> tuple[int, ...]:
    """Return the ids that the model's own template puts before a text."""
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
