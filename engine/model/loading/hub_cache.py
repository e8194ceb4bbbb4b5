"""Look up models in the local cache of the hub, and choose the GGUF file that a name means.

Repositories have a file per quantization. `owner/name:Q8_0` names one, as in llama.cpp. Without a
tag, the name means the only file, else the four-bit one, else the eight-bit one.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model_names import gguf_tag, pinned

_PREFERRED = ("Q4_K_M", "Q8_0")
_QUANTIZATION = re.compile(r"(?:^|[-._/])((?:i?q\d|[bf]+16|f32)\w*)\.gguf$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NO_MODEL = "mmproj"  # the image encoder of another model


def cached_snapshot(name: str, patterns: Sequence[str] = ()) -> Path | None:
    """Return the folder of `owner/name[@revision]` in the local cache, complete or not.

    None if it lacks files of these patterns. Raises ModelNotFoundError for an invalid name.
    """
    # Imported here as it takes a quarter of a second, which other models need not pay.
    from huggingface_hub import errors, snapshot_download  # noqa: PLC0415 - see above

    repository, revision = pinned(name)
    try:
        # An empty list requests no file; None would request the whole repository.
        folder = snapshot_download(
            repository, revision=revision, allow_patterns=list(patterns), local_files_only=True
        )
        return Path(folder)
    except errors.LocalEntryNotFoundError:
        return None
    except errors.HFValidationError as error:
        raise ModelNotFoundError(f"{name} is no name of the hub: {error}") from error


def cached_gguf(name: str) -> Path | None:
    """Return the file of `owner/name[:tag][@revision]` in the cache. Raises ModelNotFoundError."""
    (repository, tag), revision = gguf_tag(name), pinned(name)[1]
    folder = cached_snapshot(f"{repository}@{revision}" if revision else repository)
    if folder is None:
        return None
    chosen = chosen_gguf((str(file.relative_to(folder)) for file in folder.rglob("*.gguf")), tag)
    return folder / chosen if chosen else None


def is_meant(name: str, file: Path) -> bool:
    """Whether a name means this file, whatever other files its repository has.

    Without a tag, the file must have no quantization, the preferred one or the repository name's.
    """
    repository, tag = gguf_tag(name)
    quantization = _QUANTIZATION.search(file.name)
    if tag is not None or quantization is None:
        return True
    return quantization[1].upper() == _PREFERRED[0] or quantization[1].lower() in repository.lower()


def chosen_gguf(files: Iterable[str], tag: str | None) -> str | None:
    """Return the only unsplit file with this tag, or the best tag; None if not unique."""
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
