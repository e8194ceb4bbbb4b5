"""What the hub's cache holds here: a download's bytes, and the GGUF file that a name means. No torch.

Repositories hold a file per quantization. `owner/name:Q8_0` names one as llama.cpp does; without a
tag it is the only file, else that of four bits, else that of eight.
"""

import re
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model_names import gguf_tag, pinned
from engine.progress import Progress, shown

_LOOK_S = 0.5  # between looks at what has come of a download
_PREFERRED = ("Q4_K_M", "Q8_0")
_QUANTIZATION = re.compile(r"(?:^|[-._/])((?:i?q\d|[bf]+16|f32)\w*)\.gguf$", re.IGNORECASE)
_PART = re.compile(r"-\d{5}-of-\d{5}\.gguf$")
_NO_MODEL = "mmproj"  # the images' side of another model


@contextmanager
def told(name: str, is_wanted: Callable[[str], bool], progress: Progress) -> Iterator[None]:
    """Show how much has come of the wanted files of `owner/name[@revision]` while the block runs.

    The cache is looked at now and then: each version of the hub's client counts in another way.
    """
    from huggingface_hub.utils.tqdm import (  # noqa: PLC0415 - as below
        are_progress_bars_disabled,
        disable_progress_bars,
        enable_progress_bars,
    )

    is_over = threading.Event()
    folder = _folder(name)
    watch = threading.Thread(
        target=_watch, args=(folder, _held(folder), progress, is_over), daemon=True
    )
    is_quiet = are_progress_bars_disabled()
    with shown(progress, f"downloading {name}", _missing(name, folder, is_wanted)):
        disable_progress_bars()
        watch.start()
        try:
            yield
        finally:
            is_over.set()
            watch.join()
            if not is_quiet:
                enable_progress_bars()


def _watch(folder: Path, known: int, progress: Progress, is_over: threading.Event) -> None:
    is_last = False
    while not is_last:
        is_last = is_over.wait(_LOOK_S)
        held = max(known, _held(folder))  # a file that gets its name just now may be missed
        progress.advance(held - known)
        known = held


def _held(folder: Path) -> int:
    """Bytes of the files that are there, whole or not; they come and go meanwhile."""
    total = 0
    for path in folder.glob("*"):
        with suppress(OSError):
            found = path.stat()
            # Of a file that is laid out ahead, what is written.
            total += min(found.st_size, 512 * found.st_blocks)
    return total


def _folder(name: str) -> Path:
    """Where the hub's client keeps the contents of a repository's files."""
    from huggingface_hub import constants  # noqa: PLC0415 - as below
    from huggingface_hub.file_download import repo_folder_name  # noqa: PLC0415 - as below

    folder = repo_folder_name(repo_id=pinned(name)[0], repo_type="model")
    return Path(constants.HF_HUB_CACHE) / folder / "blobs"


def _missing(name: str, folder: Path, is_wanted: Callable[[str], bool]) -> int:
    """Bytes of the wanted files that are not here; 0 where the hub does not say."""
    import huggingface_hub  # noqa: PLC0415 - as below

    repository, revision = pinned(name)
    try:
        info = huggingface_hub.model_info(repository, revision=revision, files_metadata=True)
    except Exception:  # noqa: BLE001 - the download will tell what is wrong
        return 0
    num_bytes = 0
    for one in filter(lambda file: is_wanted(file.rfilename), info.siblings or ()):
        blob = one.lfs.sha256 if one.lfs else one.blob_id  # as the client calls what it holds
        if not (folder / (blob or one.rfilename)).exists():
            num_bytes += one.size or 0
    return num_bytes


def cached_snapshot(name: str) -> Path | None:
    """The folder of `owner/name[@revision]` in the local cache, whole or not.

    Raises ModelNotFoundError for no name of the hub.
    """
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import errors, snapshot_download  # noqa: PLC0415 - see above

    repository, revision = pinned(name)
    try:
        return Path(snapshot_download(repository, revision=revision, local_files_only=True))
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
