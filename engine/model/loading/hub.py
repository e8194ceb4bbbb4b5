"""Models of the Hugging Face hub: taken from its local cache, else downloaded into it."""

from pathlib import Path

from engine.errors import ModelNotFoundError
from engine.model.loading.folder_model import read_json

_FILES = ["*.json", "*.safetensors"]
_INDEX = "model.safetensors.index.json"


def hub_folder(repository: str) -> Path:
    """Return the local snapshot of `owner/name`. Raises ModelNotFoundError."""
    # Takes a quarter of a second to import, which other models are spared.
    from huggingface_hub.errors import (  # noqa: PLC0415 - see above
        HFValidationError,
        LocalEntryNotFoundError,
    )

    try:
        local = _snapshot(repository, local_only=True)
        if _is_whole(local):
            return local
    except LocalEntryNotFoundError:
        pass
    except HFValidationError as error:
        raise ModelNotFoundError(f"{repository} is no name of the hub: {error}") from error
    try:
        return _snapshot(repository, local_only=False)
    except Exception as error:  # the errors of its HTTP library come through as they are
        raise ModelNotFoundError(
            f"{repository} is not in the local Hugging Face cache, and downloading it failed "
            f"({type(error).__name__}); check the name and the network, or use the embedded model "
            "`offline`, a folder, or a .gguf file"
        ) from error


def _is_whole(folder: Path) -> bool:
    """Tell an interrupted download from a whole one."""
    index = folder / _INDEX
    weights = set(read_json(index)["weight_map"].values()) if index.exists() else set()
    files = ["config.json", "tokenizer.json", *(weights or ["model.safetensors"])]
    return all((folder / file).exists() for file in files)


def _snapshot(repository: str, *, local_only: bool) -> Path:
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - as above

    folder = snapshot_download(repository, allow_patterns=_FILES, local_files_only=local_only)
    return Path(folder)
