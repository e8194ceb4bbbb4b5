"""Finds a model's chat template and its special tokens in a folder or in GGUF metadata."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from engine.errors import ModelCorruptError
from engine.model.tokenizer import TokenizerDocument

_NAMES = ("bos_token", "eos_token")  # of those that a configuration names, templates write these


def with_chat(
    document: TokenizerDocument, template: object, names: Mapping[str, object]
) -> TokenizerDocument:
    """Add a template, if there is one, and its special tokens. Raises ModelCorruptError."""
    if not isinstance(template, str):
        return document
    told = {key: name for key, name in names.items() if isinstance(name, str)}
    try:
        "".join([template, *told.values()]).encode()
    except UnicodeEncodeError as error:
        raise ModelCorruptError(f"the chat template cannot be read: {error}") from error
    return msgspec.structs.replace(document, chat_template=template, chat_names=told)


def folder_chat(folder: Path) -> tuple[object, dict[str, object]]:
    """Read `chat_template.jinja` or `tokenizer_config.json`. Raises ModelCorruptError."""
    path, beside = folder / "tokenizer_config.json", folder / "chat_template.jinja"
    config = read_json(path) if path.exists() else {}
    names = {key: _content(config.get(key)) for key in _NAMES}
    if not beside.exists():
        return _default(config.get("chat_template")), names
    try:
        return beside.read_text("utf-8"), names
    except (OSError, ValueError) as error:
        raise ModelCorruptError(f"{beside} cannot be read: {error}") from error


def gguf_chat(metadata: Mapping[str, Any]) -> tuple[object, dict[str, object]]:
    """Read the default template of a GGUF file's metadata."""
    names = dict(enumerate(metadata["tokenizer.ggml.tokens"]))
    ids = {key: metadata.get(f"tokenizer.ggml.{key}_id") for key in _NAMES}
    told = {key: names.get(one) for key, one in ids.items() if isinstance(one, int)}
    return metadata.get("tokenizer.chat_template"), told


def read_json(path: Path) -> dict[str, Any]:
    """Read a JSON object from a file. Raises ModelCorruptError."""
    try:
        content = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ModelCorruptError(f"{path} holds no JSON object")
    return content


def _default(template: object) -> object:
    """Return the template named `default` of several."""
    if not isinstance(template, list):
        return template
    named = [one for one in template if isinstance(one, dict) and one.get("name") == "default"]
    return named[0].get("template") if named else None


def _content(token: object) -> object:
    return token.get("content") if isinstance(token, dict) else token
