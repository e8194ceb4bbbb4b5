"""What the hub's cache holds here, and the GGUF file that a name means.

Repositories hold a file per quantization. `owner/name:Q8_0` names one as llama.cpp does; without a
tag it is the only file, else that of four bits, else that of eight.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model_names import gguf_tag, pinned

_PREFERRED = ("Q4_K_M", "Q8_0")
_QUANTIZATION = re.compile(r"(?:^|[-._/])((?:i?q\d|[bf]+16|f32)\w*)\.gguf$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NO_MODEL = "mmproj"  # the images' side of another model


def cached_snapshot(name: str, patterns: Sequence[str] = ()) -> Path | None:
    """The folder of `owner/name[@revision]` in the local cache, whole or not.

    None where it is known to lack files of these patterns. Raises ModelNotFoundError for no name of the hub.
    """
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import errors, snapshot_download  # noqa: PLC0415 - see above

    repository, revision = pinned(name)
    try:
        # No patterns ask for no file; the client's default asks for all of the repository.
        folder = snapshot_download(
            repository, revision=revision, allow_patterns=list(patterns), local_files_only=True
        )
        return Path(folder)
    except errors.LocalEntryNotFoundError:
        return None
    except errors.HFValidationError as error:
        raise ModelNotFoundError(f"{name} is no name of the hub: {error}") from error


def cached_gguf(name: str) -> Path | None:
    """The file of `owner/name[:tag][@revision]` in the local cache. Raises ModelNotFoundError."""
    (repository, tag), revision = gguf_tag(name), pinned(name)[1]
    folder = cached_snapshot(f"{repository}@{revision}" if revision else repository)
    if folder is None:
        return None
    chosen = chosen_gguf((str(file.relative_to(folder)) for file in folder.rglob("*.gguf")), tag)
    return folder / chosen if chosen else None


def is_meant(name: str, file: Path) -> bool:
    """Whether a name means this file whatever else its repository holds.

    Without a tag it has no quantization, that of the repository's name, or the preferred one.
    """
    repository, tag = gguf_tag(name)
    quantization = _QUANTIZATION.search(file.name)
    if tag is not None or quantization is None:
        return True
    return quantization[1].upper() == _PREFERRED[0] or quantization[1].lower() in repository.lower()


def chosen_gguf(files: Iterable[str], tag: str | None) -> str | None:
    """Return the one file in one piece with this tag, or of the best tag; None where that is not one."""
    whole = [
        file
        for file in files
        if file.endswith(".gguf") and not _PART.search(file) and _NO_MODEL not in file.lower()
    ]
    if tag is None and len(whole) == 1:
        return whole[0]
    for wanted in (tag,) if tag else _PREFERRED:
        ending = re.compile(rf"(^|[-._/]){re.escape(wanted)}\.gguf$", re.IGNORECASE)
        if len(found := list(filter(ending.search, whole))) == 1:
            return found[0]
    return None
