"""What we use of a tokenizer.json: the plain tokenizer, and the special tokens, which are no text."""

import json
from dataclasses import dataclass
from typing import Any, Self

from engine.errors import ModelCorruptError


@dataclass(frozen=True, slots=True)
class TokenizerDocument:
    """`plain` is a tokenizer.json that knows no special tokens; `specials` are their ids by name.

    `start_ids` are what the model expects before any text; `byte_level` tells how the vocabulary
    writes bytes.
    """

    plain: str
    specials: dict[str, int]
    start_ids: tuple[int, ...]
    byte_level: bool

    @classmethod
    def read(cls, text: str) -> Self:
        """Take the content of a tokenizer.json apart. Raises ModelCorruptError."""
        try:
            content = json.loads(text)
            added = content["added_tokens"]
            plain = json.dumps(_plain(content), ensure_ascii=False)
            plain.encode()  # raises for half characters, which no file holds
            return cls(
                plain=plain,
                specials={token["content"]: token["id"] for token in added if not _is_text(token)},
                start_ids=_start_ids(content),
                byte_level='"type": "ByteLevel"'
                in json.dumps([content.get(part) for part in ("pre_tokenizer", "decoder")]),
            )
        except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
            raise ModelCorruptError(f"tokenizer.json cannot be read: {error}") from error


def _is_text(token: dict[str, Any]) -> bool:
    # Some vocabularies add runs of blanks as tokens; these are the only added ones found in text.
    return not token["special"] and token["content"].replace("▁", " ").isspace()


def _plain(content: dict[str, Any]) -> dict[str, Any]:
    """Return the tokenizer without what would read special tokens into a text, or change a text.

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
