"""Models of the Hugging Face hub: taken from its local cache, else downloaded into it."""

from pathlib import Path

from huggingface_hub import snapshot_download
from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

from engine.errors import ModelNotFoundError

_FILES = ["*.json", "*.safetensors"]


def hub_folder(repository: str, hub_cache: Path | None = None) -> Path:
    """Return the local snapshot of `owner/name`. Raises ModelNotFoundError.

    `hub_cache` None is the hub's usual cache folder.
    """
    try:
        local = _snapshot(repository, hub_cache, local_only=True)
        if any(local.glob("*.safetensors")):
            return local
    except LocalEntryNotFoundError:
        pass
    try:
        return _snapshot(repository, hub_cache, local_only=False)
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        raise ModelNotFoundError(
            f"{repository} is not in the local Hugging Face cache, and downloading it failed "
            f"({type(error).__name__}); check the name and the network, or use the embedded model "
            "with --model offline, a folder, or a .gguf file"
        ) from error


def _snapshot(repository: str, hub_cache: Path | None, *, local_only: bool) -> Path:
    return Path(
        snapshot_download(
            repository,
            cache_dir=hub_cache,
            allow_patterns=_FILES,
            local_files_only=local_only,
        )
    )
