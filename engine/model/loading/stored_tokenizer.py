"""The tokenizer of a converted model: two files, which are quick to read. No torch."""

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from engine.errors import ModelCorruptError, UnsupportedModelError
from engine.model.tokenizer import Tokenizer, TokenizerDocument

SPECIALS_FILE = "marks.json"
TOKENIZER_FILE = "tokenizer.json"  # without specials, which would cost half a second at each start


def readable_name(model_name: str) -> str:
    """A model's name as the folders of its conversions begin with it."""
    return re.sub(r"[^\w.-]+", "-", model_name)


def stored_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer in a folder. Raises ModelCorruptError."""
    try:
        stored = json.loads((folder / SPECIALS_FILE).read_text("utf-8"))
        document = TokenizerDocument(
            plain=(folder / TOKENIZER_FILE).read_text("utf-8"),
            specials=stored["marks"],
            start_ids=tuple(stored["start_ids"]),
            byte_level=stored["byte_level"],
        )
        return Tokenizer(document, stored["end_ids"])
    except (OSError, ValueError, LookupError, TypeError) as error:
        raise ModelCorruptError(f"the tokenizer in {folder} cannot be read: {error}") from error


def store_tokenizer(document: TokenizerDocument, end_ids: Sequence[int], folder: Path) -> None:
    """Write what `stored_tokenizer` reads."""
    (folder / TOKENIZER_FILE).write_text(document.plain, "utf-8")
    specials = {
        "marks": document.specials,
        "start_ids": document.start_ids,
        "end_ids": list(end_ids),
        "byte_level": document.byte_level,
    }
    (folder / SPECIALS_FILE).write_text(json.dumps(specials, indent=1), "utf-8")


def folder_tokenizer(folder: Path) -> Tokenizer:
    """Read the tokenizer of a folder in Hugging Face's layout.

    Raises ModelCorruptError, and UnsupportedModelError without tokenizer.json.
    """
    return Tokenizer.from_json(folder_tokenizer_json(folder), folder_end_ids(folder))


def folder_tokenizer_json(folder: Path) -> str:
    """Return the content of tokenizer.json. Raises UnsupportedModelError without one."""
    try:
        return (folder / "tokenizer.json").read_text("utf-8")
    except FileNotFoundError as error:
        raise UnsupportedModelError(
            f"{folder} holds no tokenizer.json; transformers writes one with "
            "AutoTokenizer.from_pretrained(folder).save_pretrained(folder)"
        ) from error


def folder_end_ids(folder: Path) -> tuple[int, ...]:
    """Token ids that the configuration and the generation settings call ends of text."""
    ends: list[object] = []
    for name in ("config.json", "generation_config.json"):
        path = folder / name
        value = read_json(path).get("eos_token_id") if path.exists() else None
        ends += value if isinstance(value, list) else [value]
    return tuple(dict.fromkeys(one for one in ends if type(one) is int))


def read_json(path: Path) -> dict[str, Any]:
    """Return an object that a file holds. Raises ModelCorruptError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelCorruptError(f"{path} holds no JSON object")
    return content
