"""Fetches the pinned archives of npm's and Debian's packages, and reads the sources in them."""

import io
import subprocess
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import msgspec

from engine.errors import InputError

_LIST = Path(__file__).with_name("sources.json")
_FETCH_S = 300  # seconds for one archive


class Archive(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A package of one version, whose archive has the sum `sha256` in hexadecimal digits."""

    kind: str  # npm or debian
    name: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True)
class Release:
    """The readable text files of a package: path in its archive -> text."""

    name: str
    version: str
    files: dict[str, str]


def listed(part: str, language: str) -> list[Archive]:
    """Return the archives of a part, `dev` or `held`, in the list."""
    return msgspec.json.decode(_LIST.read_bytes(), type=dict[str, dict[str, list[Archive]]])[part][
        language
    ]


def read_release(archive: Archive, endings: tuple[str, ...], cache: Path) -> Release:
    """Read the files with one of `endings`; the archive is fetched once into `cache`.

    Raises InputError if it cannot be had, or is not the listed one.
    """
    file = _fetched(archive, cache / archive.kind / f"{archive.name.replace('/', '+')}")
    digest = sha256(file.read_bytes()).hexdigest()
    if digest != archive.sha256:
        raise InputError(f"{file} has the SHA-256 {digest}, and the list says {archive.sha256}")
    return Release(archive.name, archive.version, _texts(_tar(archive, file), endings))


def _fetched(archive: Archive, folder: Path) -> Path:
    pattern = f"*{archive.version.replace(':', '%3a')}*.{'tgz' if archive.kind == 'npm' else 'deb'}"
    folder.mkdir(parents=True, exist_ok=True)
    if not (found := sorted(folder.glob(pattern))):
        _run(_command(archive), folder, f"{archive.kind} gave no {archive.name} {archive.version}")
        found = sorted(folder.glob(pattern))
    if len(found) != 1:
        raise InputError(f"{folder} holds {len(found)} archives of {archive.version}, not one")
    return found[0]


def _command(archive: Archive) -> list[str]:
    if archive.kind == "npm":
        return ["npm", "pack", "--silent", f"{archive.name}@{archive.version}"]
    return ["apt-get", "download", "-qq", f"{archive.name}={archive.version}"]


def _tar(archive: Archive, file: Path) -> tarfile.TarFile:
    if archive.kind == "npm":
        return tarfile.open(file)
    command = ["dpkg-deb", "--fsys-tarfile", str(file)]
    return tarfile.open(fileobj=io.BytesIO(_run(command, file.parent, f"{file} is no package")))


def _run(command: list[str], folder: Path, trouble: str) -> bytes:
    """Return what a command prints. Raises InputError, which says its last words."""
    try:
        done = subprocess.run(
            command, check=False, cwd=folder, capture_output=True, timeout=_FETCH_S
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise InputError(f"{trouble}: {error}") from error
    if done.returncode:
        last = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise InputError(f"{trouble}: {last or f'{command[0]} failed without a word'}")
    return done.stdout


def _texts(tar: tarfile.TarFile, endings: tuple[str, ...]) -> dict[str, str]:
    texts = {}
    with tar:
        for member in sorted(tar.getmembers(), key=lambda one: one.name):
            if member.isfile() and member.name.endswith(endings):
                content = tar.extractfile(member)
                texts[member.name.removeprefix("./")] = content.read() if content else b""
    decoded = {path: text.decode("utf-8", "replace") for path, text in texts.items()}
    return {
        path: text for path, text in decoded.items() if "\r" not in text and "\ufffd" not in text
    }
