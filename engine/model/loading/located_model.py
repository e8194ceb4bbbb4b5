"""A model that is found but not opened. Finding is quick: it reads no weights.

`fingerprint` is hexadecimal and changes whenever the model's files do; `scratch_bytes` is the disk
space that opening takes besides those files.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from engine.errors import ModelCorruptError
from engine.model.loading.weight_source import FolderSource, GgufSource, read_json
from engine.model.model_config import QWEN2, ModelConfig
from engine.offline_parts import OfflineModel, find_parts, join_parts
from engine.progress import Progress

_SAMPLE = 1 << 20


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn what the system says of a model's files into an error of the model."""
    try:
        yield
    except OSError as error:
        raise ModelCorruptError(f"{path} cannot be read: {error}") from error


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """A model in data packages. It has its name and fingerprint even where these are missing."""

    parts: OfflineModel

    @property
    def name(self) -> str:
        """What to call it in reports."""
        return self.parts.name

    @property
    def fingerprint(self) -> str:
        """The known sum of the joined file."""
        return self.parts.sha256

    @property
    def scratch_bytes(self) -> int:
        """The joined file."""
        return self.parts.num_bytes

    def open(self, scratch: Path, progress: Progress) -> GgufSource:
        """Join the parts inside the folder `scratch`. Raises what `find_parts` and the sum do."""
        parts = find_parts(self.parts)
        joined = scratch / "joined.gguf"
        with joined.open("wb") as target:
            join_parts(self.parts, parts, target, progress)
        return GgufSource(joined)


@dataclass(frozen=True, slots=True)
class GgufModel:
    """A model in a GGUF file of the user's."""

    path: Path
    scratch_bytes: ClassVar[int] = 0

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @property
    def fingerprint(self) -> str:
        """From size, time and the ends of the file: the middle would take seconds to read."""
        with _readable(self.path), self.path.open("rb") as file:
            stat = self.path.stat()
            total = hashlib.blake2b(f"{stat.st_size} {stat.st_mtime_ns}".encode())
            total.update(file.read(_SAMPLE))
            file.seek(max(0, stat.st_size - _SAMPLE))
            total.update(file.read(_SAMPLE))
        return total.hexdigest()

    def open(self, scratch: Path, progress: Progress) -> GgufSource:  # noqa: ARG002 - as the others
        """Map the file."""
        return GgufSource(self.path)


@dataclass(frozen=True, slots=True)
class FolderModel:
    """A model in a Hugging Face folder, a snapshot of the hub among them."""

    folder: Path
    name: str
    scratch_bytes: ClassVar[int] = 0

    @property
    def fingerprint(self) -> str:
        """From names, sizes and times of the files, and the text of the small ones."""
        total = hashlib.blake2b()
        with _readable(self.folder):
            for path in sorted(self.folder.glob("*.safetensors")):
                stat = path.stat()
                total.update(f"{path.name} {stat.st_size} {stat.st_mtime_ns}\n".encode())
            for path in sorted(self.folder.glob("*.json")):
                total.update(path.name.encode() + path.read_bytes())
        return total.hexdigest()

    @property
    def architecture(self) -> str:
        """The class that the configuration names. Raises ModelCorruptError when it names none."""
        names = read_json(self.folder / "config.json").get("architectures")
        if not isinstance(names, list) or not names:
            raise ModelCorruptError(f"{self.folder / 'config.json'} names no architecture")
        return str(names[0])

    @property
    def is_plain_qwen2(self) -> bool:
        """True where our own forward pass can run the model."""
        if self.architecture != QWEN2:
            return False
        config = read_json(self.folder / "config.json")
        return ModelConfig.from_hugging_face(config).is_plain_qwen2

    def open(self, scratch: Path, progress: Progress) -> FolderSource:  # noqa: ARG002 - as the others
        """Read the folder's configuration."""
        return FolderSource(self.folder)


LocatedModel = EmbeddedModel | GgufModel | FolderModel
