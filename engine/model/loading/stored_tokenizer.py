"""A model's tokenizer without its weights, where its files are on this machine. No torch.

A converted model keeps it in two files, which are quick to read.
"""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from engine.errors import ModelCorruptError, ModelNotFoundError, UnsupportedModelError
from engine.model.loading import gguf_tokenizer
from engine.model.loading.gguf_file import GgufFile
from engine.model.loading.hub_cache import cached_gguf
from engine.model.tokenizer import Tokenizer, TokenizerDocument
from engine.model_names import EMBEDDED, HUB_ALIASES, holds_gguf, kind_of, path_of

SPECIALS_FILE = "marks.json"
TOKENIZER_FILE = "tokenizer.json"  # without specials, which would cost half a second at each start
_FINGERPRINT = "?" * 16


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


def cached_tokenizer(name: str, cache_folder: Path) -> Tokenizer | None:
    """Return the tokenizer of the model that `name` names; None where it is not on this machine.

    A model is an alias, a hub id, a folder or a .gguf file; nothing is downloaded. Raises
    ModelNotFoundError, ModelCorruptError or UnsupportedModelError for a path that is no model's.
    """
    kind = kind_of(name)
    if kind == "path":
        return _of_path(path_of(name))
    repository = HUB_ALIASES.get(name, name)
    known = readable_name(EMBEDDED.get(name, repository))
    for entry in sorted((cache_folder / "models").glob(f"{known}-{_FINGERPRINT}-*")):
        with suppress(ModelCorruptError, UnsupportedModelError):
            return stored_tokenizer(entry)
    return _of_hub(repository) if kind in ("alias", "hub") else None


def _of_path(path: Path) -> Tokenizer:
    if path.is_dir():
        return folder_tokenizer(path)
    if not path.is_file():
        raise ModelNotFoundError(f"there is no file {path}")
    metadata = GgufFile(path).metadata
    return Tokenizer.from_json(
        gguf_tokenizer.tokenizer_json(metadata), gguf_tokenizer.end_ids(metadata)
    )


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


def _of_hub(repository: str) -> Tokenizer | None:
    """From the hub's cache on this machine."""
    if holds_gguf(repository):
        file = cached_gguf(repository)
        return None if file is None else _of_path(file)
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import try_to_load_from_cache  # noqa: PLC0415 - see above

    found = try_to_load_from_cache(repository, "tokenizer.json")
    with suppress(ModelCorruptError, ModelNotFoundError, UnsupportedModelError):
        return folder_tokenizer(Path(found).parent) if isinstance(found, str) else None
    return None
