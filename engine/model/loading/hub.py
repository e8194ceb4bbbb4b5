"""Models of the Hugging Face hub, taken from its local cache or downloaded into it.

The cache comes first, so a model stays at the commit of its first download, unless its name has a
revision. `owner/name:Q8_0` names a repository's GGUF file of that quantization, as in llama.cpp.
Without a tag, the name means the only file, else the four-bit one, else the eight-bit one.

The hub's client is imported in functions, since the import takes a quarter of a second.
"""

import hashlib
import os
import re
from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.model.loading.chat_files import read_json
from engine.model.loading.gguf_file import PART
from engine.model_names import gguf_tag, pinned
from engine.progress import Progress, shown

_FILES = ["*.json", "*.jinja", "*.safetensors"]
_INDEX = "model.safetensors.index.json"
_SHA256 = re.compile(r"[0-9a-f]{64}")  # the name of a large file in the hub's cache is its sum
_BLOCK_BYTES = 2**22  # hashed between two reports of progress: a gigabyte has about 240
_PREFERRED = ("Q4_K_M", "Q8_0")
_QUANTIZATION = re.compile(r"(?:^|[-._/])((?:i?q\d|[bf]+16|f32)\w*)\.gguf$", re.IGNORECASE)
_NO_MODEL = "mmproj"  # the image encoder of another model


def hub_folder(repository: str, progress: Progress) -> Path:
    """Return `owner/name[@revision]`'s folder. Raises ModelNotFoundError, ModelCorruptError."""
    folder = _cached_snapshot(repository, _FILES)
    if folder is None or not _is_whole(folder):
        try:
            folder = _downloaded(repository, _FILES, progress)
        except ModelNotFoundError:
            folder = _cached_snapshot(repository)  # it may lack only a file that is not needed
            if folder is None or not _is_whole(folder):
                raise
    check_sums(folder, progress)
    return folder


def is_downloaded(repository: str) -> bool:
    """Whether the cache holds all of a repository, so that `hub_folder` needs no network."""
    from huggingface_hub import constants  # noqa: PLC0415 - see above

    stored = f"models--{repository.replace('/', '--')}"
    if not (Path(constants.HF_HUB_CACHE) / stored).exists():  # spares the import of the client
        return False
    folder = _cached_snapshot(repository, _FILES)
    return folder is not None and _is_whole(folder)


def hub_gguf(name: str, progress: Progress) -> Path:
    """Return `owner/name[:tag][@revision]`'s file. Raises ModelNotFoundError, ModelCorruptError."""
    (repository, tag), revision = gguf_tag(name), pinned(name)[1]
    place = f"{repository}@{revision}" if revision else repository
    cached = _cached_gguf(place, tag)
    if cached is not None:
        check_sums(cached.parent, progress, cached.name)
        if is_meant(name, cached):
            return cached
    from huggingface_hub import list_repo_files  # noqa: PLC0415 - see above

    try:
        files = list_repo_files(repository, revision=revision)
    except Exception as error:  # the errors of its HTTP library come through as they are
        if cached is not None:
            return cached  # the best available without a network
        raise _not_downloaded(name, error) from error
    chosen = _chosen_gguf(files, tag)
    if chosen is None:
        there = ", ".join(sorted(file for file in files if file.endswith(".gguf"))) or "none"
        raise ModelNotFoundError(
            f"{name} names no single GGUF file in one piece; of those in {repository} choose one by "
            f"owner/name:TAG, as in {repository}:Q8_0. There are {there}"
        )
    if cached is not None and cached.as_posix().endswith(f"/{chosen}"):
        return cached
    path = _downloaded(place, [chosen], progress) / chosen
    if not path.exists():
        raise _not_downloaded(name, f"no {chosen} came")
    check_sums(path.parent, progress, path.name)
    return path


def _downloaded(place: str, patterns: list[str], progress: Progress) -> Path:
    """Download files, or use the cached ones if the hub fails. Raises ModelNotFoundError."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - see above

    repository, revision = pinned(place)
    download: Any = partial(
        snapshot_download,
        repository,
        revision=revision,
        allow_patterns=patterns,
        tqdm_class=_counting(progress),
    )
    try:
        missing = sum(one.file_size for one in download(dry_run=True) if one.will_download)
    except Exception:  # noqa: BLE001 - the download uses cached files, or reports the error
        missing = 0
    try:
        with shown(progress, f"downloading {place}", missing):
            return Path(download())
    except Exception as error:  # the errors of its HTTP library come through as they are
        raise _not_downloaded(place, error) from error


def _counting(progress: Progress) -> Any:  # noqa: ANN401 - a class of the hub's client
    """Return a silent bar class that reports to `progress`; bars may count bytes twice."""
    from huggingface_hub.utils.tqdm import tqdm  # noqa: PLC0415 - see above

    told, lock = 0, Lock()  # files are downloaded on several threads

    class Counting(tqdm):
        def __init__(self, *args: object, **options: Any) -> None:  # noqa: ANN401 - as tqdm's
            super().__init__(*args, **(options | {"disable": True}))  # type: ignore[no-untyped-call]
            self.is_of_bytes, self.num_bytes = options.get("unit") == "B", 0

        def update(self, n: float | None = 1) -> None:
            nonlocal told
            with lock:
                self.num_bytes += int(n or 0) if self.is_of_bytes else 0
                if self.num_bytes > told:
                    progress.advance(self.num_bytes - told)
                    told = self.num_bytes

    return Counting


def check_sums(folder: Path, progress: Progress, pattern: str = "*.safetensors") -> None:
    """Check weights by SHA-256, as the client checks only sizes. Raises ModelCorruptError."""
    for path in sorted(folder.glob(pattern)):
        stored = path.resolve()
        checked = stored.with_name(f"{stored.name}.checked")
        is_others = not os.access(stored.parent, os.W_OK)
        if not _SHA256.fullmatch(stored.name) or checked.exists() or is_others:
            continue
        if _sum_of(stored, progress) != stored.name:
            stored.unlink()  # the next attempt downloads it again
            raise ModelCorruptError(
                f"{path.name} of {folder} was downloaded with other bytes than the hub names; try "
                "again"
            )
        checked.touch()  # a process may end between a download and its check


def _not_downloaded(repository: str, told: object) -> ModelNotFoundError:
    """Return a sentence that says what helps, by what the hub's client has `told`."""
    from engine.fetch_failures import HUB, remedy  # noqa: PLC0415 - it imports the client

    if helps := remedy(HUB, str(told).partition("\n")[0]):
        instead = "or use the embedded model `offline`"
        return ModelNotFoundError(f"{repository} cannot be downloaded: {helps}, {instead}")
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


def _cached_snapshot(name: str, patterns: Sequence[str] = ()) -> Path | None:
    """Return the cached folder; None if it lacks files of `patterns`. Raises ModelNotFoundError."""
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


def _cached_gguf(place: str, tag: str | None) -> Path | None:
    folder = _cached_snapshot(place)
    if folder is None:
        return None
    chosen = _chosen_gguf((str(file.relative_to(folder)) for file in folder.rglob("*.gguf")), tag)
    return folder / chosen if chosen else None


def is_meant(name: str, file: Path) -> bool:
    """Whether a name means this file, whatever other files its repository has."""
    repository, tag = gguf_tag(name)
    quantization = _QUANTIZATION.search(file.name)
    if tag is not None or quantization is None:
        return True
    return quantization[1].upper() == _PREFERRED[0] or quantization[1].lower() in repository.lower()


def _chosen_gguf(files: Iterable[str], tag: str | None) -> str | None:
    """Return the only unsplit file with this tag, or the best tag; None if not unique."""
    whole = [
        file
        for file in files
        if file.endswith(".gguf") and not PART.search(file) and _NO_MODEL not in file.lower()
    ]
    if tag is None and len(whole) == 1:
        return whole[0]
    for wanted in (tag,) if tag else _PREFERRED:
        ending = re.compile(rf"(^|[-._/]){re.escape(wanted)}\.gguf$", re.IGNORECASE)
        if len(found := list(filter(ending.search, whole))) == 1:
            return found[0]
    return None
