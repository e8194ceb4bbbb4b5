"""A download from the hub as a task with its bytes: a model may take minutes."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from engine.model_names import pinned
from engine.progress import Progress, shown

_LOOK_S = 0.5


@contextmanager
def told(name: str, is_wanted: Callable[[str], bool], progress: Progress) -> Iterator[None]:
    """Show how much has come of the wanted files of `owner/name[@revision]` while the block runs.

    What the hub's cache holds is looked at now and then: its client draws bars in a terminal, and
    has told others in another way in each version.
    """
    # A quarter of a second, that models which are here are spared.
    from huggingface_hub.utils.tqdm import (  # noqa: PLC0415 - see above
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
        try:
            found = path.stat()
        except OSError:
            continue
        # Of a file that is laid out ahead, what is written.
        total += min(found.st_size, 512 * found.st_blocks)
    return total


def _folder(name: str) -> Path:
    """Where the hub's client keeps the contents of a repository's files."""
    from huggingface_hub import constants  # noqa: PLC0415 - as above
    from huggingface_hub.file_download import repo_folder_name  # noqa: PLC0415 - as above

    folder = repo_folder_name(repo_id=pinned(name)[0], repo_type="model")
    return Path(constants.HF_HUB_CACHE) / folder / "blobs"


def _missing(name: str, folder: Path, is_wanted: Callable[[str], bool]) -> int:
    """Bytes of the wanted files that are not here; 0 where the hub does not say."""
    import huggingface_hub  # noqa: PLC0415 - as above

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
