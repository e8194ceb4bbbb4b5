"""One GGUF file of a repository of the hub: from its local cache, else downloaded into it.

Repositories hold a file per quantization. `owner/name:Q8_0` names one as llama.cpp does; without a
tag it is the file of four bits, else that of eight, else the only one.
"""

import re
from collections.abc import Iterable
from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model.loading.hub import check_sums, not_downloaded
from engine.model_names import gguf_tag, pinned

_PREFERRED = ("Q4_K_M", "Q8_0")
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NO_MODEL = "mmproj"  # the images' side of another model


def hub_gguf(name: str) -> Path:
    """Return the file that `owner/name[:tag][@revision]` names.

    Raises ModelNotFoundError, and ModelCorruptError for a download with other bytes than it names.
    """
    if (cached := cached_gguf(name)) is not None:
        return cached
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import hf_hub_download, list_repo_files  # noqa: PLC0415 - see above

    repository, tag = gguf_tag(name)
    revision = pinned(name)[1]
    try:
        files = list_repo_files(repository, revision=revision)
    except Exception as error:  # the errors of its HTTP library come through as they are
        raise not_downloaded(name, error) from error
    chosen = _chosen(files, tag)
    if chosen is None:
        there = ", ".join(sorted(file for file in files if file.endswith(".gguf"))) or "none"
        raise ModelNotFoundError(
            f"{name} names no single GGUF file in one piece; of those in {repository} choose one by "
            f"owner/name:TAG, as in {repository}:Q8_0. There are {there}"
        )
    try:
        path = Path(hf_hub_download(repository, chosen, revision=revision))
    except Exception as error:  # as above
        raise not_downloaded(name, error) from error
    check_sums(path.parent, path.name)
    return path


def cached_gguf(name: str) -> Path | None:
    """The file where it is in the local cache. Raises ModelNotFoundError for no name of the hub."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - as above
    from huggingface_hub.errors import (  # noqa: PLC0415 - as above
        HFValidationError,
        LocalEntryNotFoundError,
    )

    repository, tag = gguf_tag(name)
    try:
        folder = Path(
            snapshot_download(repository, revision=pinned(name)[1], local_files_only=True)
        )
    except LocalEntryNotFoundError:
        return None
    except HFValidationError as error:
        raise ModelNotFoundError(f"{name} is no name of the hub: {error}") from error
    files = (str(file.relative_to(folder)) for file in folder.rglob("*.gguf"))
    chosen = _chosen(files, tag)
    return None if chosen is None else folder / chosen


def _chosen(files: Iterable[str], tag: str | None) -> str | None:
    """The one file in one piece with this tag, or of the best tag; None where that is not one."""
    whole = [
        file
        for file in files
        if file.endswith(".gguf") and not _PART.search(file) and _NO_MODEL not in file.lower()
    ]
    if tag is None and len(whole) == 1:
        return whole[0]
    for wanted in (tag,) if tag else _PREFERRED:
        pattern = re.compile(rf"(^|[-._/]){re.escape(wanted)}\.gguf$", re.IGNORECASE)
        if len(found := [file for file in whole if pattern.search(file)]) == 1:
            return found[0]
    return None
