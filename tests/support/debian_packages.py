"""Packages of another Debian release, unpacked without touching the machine's own."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

Run = Callable[..., str]


def unpack(run: Run, folder: Path, *names: str, suite: str = "forky", alone: bool = False) -> Path:
    """Unpack packages with all dependencies, or `alone`; return the root of the unpacked files."""
    root, apt = folder / "root", folder / "apt"
    for made in (root, apt / "lists/partial", apt / "cache/archives/partial"):
        made.mkdir(parents=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(f"deb [signed-by={keys}] {_mirror(run)} {suite} main\n")
    options = _options(apt)
    run("apt-get", *options, "update", "-qq")
    packages = apt / "cache/archives"
    if alone:
        run("apt-get", *options, "-qq", "download", *names, cwd=packages)
    else:
        run("apt-get", *options, "-qq", "-y", "--download-only", "install", *names)
    for package in packages.glob("*.deb"):
        run("dpkg-deb", "-x", package, root)
    return root


def bring_libraries(run: Run, program: Path, root: Path) -> Path:
    """Have the program load its own release's libraries, libc too; return their folder."""
    architecture = run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    libraries = root / "usr/lib" / architecture
    (loader,) = libraries.glob("ld-linux*.so.*")
    run(
        "patchelf",
        *("--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries),
        program,
    )
    return libraries


def _mirror(run: Run) -> str:
    if mirror := os.environ.get("DEBIAN_MIRROR"):
        return mirror
    places = run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    return next(place for place in places.splitlines() if "security" not in place)


def _options(apt: Path) -> list[str]:
    choices = {
        "Dir::Etc::SourceList": apt / "sources.list",
        "Dir::Etc::SourceParts": "/dev/null",
        "Dir::Etc::Parts": "/dev/null",
        "Dir::State::Lists": apt / "lists",
        "Dir::State::status": "/dev/null",
        "Dir::Cache": apt / "cache",
        "APT::Install-Recommends": "false",
        "APT::Sandbox::User": "root",
    }
    return [word for name, value in choices.items() for word in ("-o", f"{name}={value}")]


def run_quietly(*command: str | Path, cwd: Path | None = None, env: dict[str, str]) -> str:
    """Return a command's output. Raises OSError or subprocess.SubprocessError."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=600,
        check=True,
    )
    return done.stdout
