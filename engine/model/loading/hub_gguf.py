"""One GGUF file of a repository of the hub: from its local cache, else downloaded into it.

Which one a name means is said in `cached_gguf`.
"""

from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model.loading.cached_gguf import cached_gguf, chosen_gguf, is_meant
from engine.model.loading.hub import check_sums, not_downloaded
from engine.model.loading.hub_download import told
from engine.model_names import gguf_tag, pinned
from engine.progress import NoProgress, Progress


def hub_gguf(name: str, progress: Progress | None = None) -> Path:
    """Return the file that `owner/name[:tag][@revision]` names.

    Raises ModelNotFoundError, and ModelCorruptError for a download with other bytes than it names.
    """
    progress = progress or NoProgress()
    cached = cached_gguf(name)
    if cached is not None:
        check_sums(cached.parent, cached.name, progress)
    if cached is not None and is_meant(name, cached):
        return cached
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub import hf_hub_download, list_repo_files  # noqa: PLC0415 - see above

    repository, tag = gguf_tag(name)
    revision = pinned(name)[1]
    try:
        files = list_repo_files(repository, revision=revision)
    except Exception as error:  # the errors of its HTTP library come through as they are
        if cached is not None:
            return cached  # all that can be had without a network
        raise not_downloaded(name) from error
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
        raise not_downloaded(name) from error
    check_sums(path.parent, path.name, progress)
    return path
