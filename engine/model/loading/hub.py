"""Models of the Hugging Face hub: taken from its local cache, else downloaded into it.

A model is a folder, or one GGUF file of a repository. As the cache is asked first, it stays at the
commit that was downloaded first; a revision in its name decides which that is.
"""

import hashlib
import os
import re
from fnmatch import fnmatch
from pathlib import Path

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading.folder_model import read_json
from engine.model.loading.hub_cache import cached_gguf, cached_snapshot, chosen_gguf, is_meant, told
from engine.model_names import gguf_tag, pinned
from engine.progress import Progress, shown

_FILES = ["*.json", "*.safetensors"]
_INDEX = "model.safetensors.index.json"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_BLOCK_BYTES = 2**22


def hub_folder(repository: str, progress: Progress) -> Path:
    """Return the local snapshot of `owner/name`, or of `owner/name@revision`.

    Raises ModelNotFoundError, and ModelCorruptError for a download with other bytes than it names.
    """
    local = cached_snapshot(repository)
    if local is not None and _is_whole(local):
        check_sums(local, progress)
        return local
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - see above

    name, revision = pinned(repository)
    try:
        with told(repository, lambda file: any(fnmatch(file, one) for one in _FILES), progress):
            folder = snapshot_download(name, revision=revision, allow_patterns=_FILES)
    except Exception as error:  # the errors of its HTTP library come through as they are
        raise _not_downloaded(repository) from error
    check_sums(Path(folder), progress)
    return Path(folder)


def hub_gguf(name: str, progress: Progress) -> Path:
    """Return the file that `owner/name[:tag][@revision]` names.

    Raises ModelNotFoundError, and ModelCorruptError for a download with other bytes than it names.
    """
    cached = cached_gguf(name)
    if cached is not None:
        check_sums(cached.parent, progress, cached.name)
    if cached is not None and is_meant(name, cached):
        return cached
    from huggingface_hub import hf_hub_download, list_repo_files  # noqa: PLC0415 - as above

    repository, tag = gguf_tag(name)
    revision = pinned(name)[1]
    try:
        files = list_repo_files(repository, revision=revision)
    except Exception as error:  # the errors of its HTTP library come through as they are
        if cached is not None:
            return cached  # all that can be had without a network
        raise _not_downloaded(name) from error
    chosen = chosen_gguf(files, tag)
    if chosen is None:
        there = ", ".join(sorted(file for file in files if file.endswith(".gguf"))) or "none"
        raise ModelNotFoundError(
            f"{name} names no single GGUF file in one piece; of those in {repository} choose one by "
            f"owner/name:TAG, as in {repository}:Q8_0. There are {there}"
        )
    if cached is not None and cached.as_posix().endswith(f"/{chosen}"):
        return cached
    place = f"{repository}@{revision}" if revision else repository
    try:
        with told(place, lambda file: file == chosen, progress):
            path = Path(hf_hub_download(repository, chosen, revision=revision))
    except Exception as error:  # as above
        raise _not_downloaded(name) from error
    check_sums(path.parent, progress, path.name)
    return path


def check_sums(folder: Path, progress: Progress, pattern: str = "*.safetensors") -> None:
    """Compare weights with their SHA-256, after which the hub's cache names its large files.

    Its client checks sizes alone. A mark beside the file tells that it was checked, as a process may
    end before. Raises ModelCorruptError.
    """
    for path in sorted(folder.glob(pattern)):
        stored = path.resolve()
        checked = stored.with_name(f"{stored.name}.checked")
        is_others = not os.access(stored.parent, os.W_OK)  # who downloads may write there
        if not _SHA256.fullmatch(stored.name) or checked.exists() or is_others:
            continue
        if _sum_of(stored, progress) != stored.name:
            stored.unlink()  # the next attempt downloads it again
            raise ModelCorruptError(
                f"{path.name} of {folder} was downloaded with other bytes than the hub names; try "
                "again"
            )
        checked.touch()


def _not_downloaded(repository: str) -> ModelNotFoundError:
    return ModelNotFoundError(
        f"{repository} is not in the local Hugging Face cache and could not be downloaded; check the "
        "name and the network, or use the embedded model `offline`, a folder, or a .gguf file"
    )


def _sum_of(path: Path, progress: Progress) -> str:
    total = hashlib.sha256()
    size = path.stat().st_size
    with path.open("rb") as file, shown(progress, "checking what was downloaded", size):
        while block := file.read(_BLOCK_BYTES):
            total.update(block)
            progress.advance(len(block))
    return total.hexdigest()


def _is_whole(folder: Path) -> bool:
    index = folder / _INDEX
    weights = set(read_json(index)["weight_map"].values()) if index.exists() else set()
    files = ["config.json", "tokenizer.json", *(weights or ["model.safetensors"])]
    return all((folder / file).exists() for file in files)
