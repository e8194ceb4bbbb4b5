"""Kinds of model names, by spelling alone, so that no local folder takes a hub model's place."""

import difflib
import re
import reprlib
from pathlib import Path
from typing import Literal

from engine.errors import ConfigurationError

NameKind = Literal["auto", "embedded", "alias", "path", "hub", "unknown"]

AUTO_MODEL = "auto"  # by default: the model that helps most on this machine
SMALLEST_MODEL = "offline"
EMBEDDED = {  # by alias, the names in reports
    SMALLEST_MODEL: "Qwen2.5-Coder-0.5B-Instruct",
    "offline-1.5b": "Qwen2.5-Coder-1.5B-Instruct",
}
_QWEN = {
    size: f"Qwen/Qwen2.5-Coder-{size.upper()}"
    for size in ("0.5b", "1.5b", "3b", "7b", "14b", "32b")
}
HUB_ALIASES = _QWEN | {
    "seed-coder-8b": "ByteDance-Seed/Seed-Coder-8B-Base",
    "mellum-4b": "JetBrains/Mellum-4b-base",
    "sweep-0.5b": "sweepai/sweep-next-edit-0.5B:q8_0",  # Sweep and Zed train for next edits
    "sweep-1.5b": "sweepai/sweep-next-edit-1.5B:q8_0.v2",
    "sweep-7b": "sweepai/sweep-next-edit-v2-7B",
    "zeta": "zed-industries/zeta",
    "zeta-2": "zed-industries/zeta-2",
}
ALIASES = (*HUB_ALIASES, *EMBEDDED)

_HUB_ID = re.compile(
    r"[A-Za-z0-9][\w.-]*/[\w.-]+(:[\w.-]{1,40})?(@[\w.-]{1,100})?",  # owner/name:tag@revision
    re.ASCII,
)
_GGUF_ENDING = "-gguf"
_SIZE = re.compile(r"(\d+(?:\.\d+)?) *b?\b", re.ASCII | re.IGNORECASE)
_PATH_BEGINS = ("/", "./", "../", "~")


def kind_of(name: str) -> NameKind:
    """Return the kind of a name; a path begins with `/`, `./`, `../` or `~` or ends in `.gguf`."""
    if name == AUTO_MODEL:
        return "auto"
    if name in EMBEDDED:
        return "embedded"
    if name in HUB_ALIASES:
        return "alias"
    if name.startswith(_PATH_BEGINS) or name in (".", "..") or name.endswith(".gguf"):
        return "path"
    return "hub" if _HUB_ID.fullmatch(name) else "unknown"


def path_of(name: str) -> Path:
    """Return the path of a name of the kind `path`. Raises ConfigurationError."""
    try:
        return Path(name).expanduser()
    except RuntimeError as error:  # there is no such user
        raise ConfigurationError(f"{name} begins with no known home folder") from error


def pinned(name: str) -> tuple[str, str | None]:
    """Split a hub name, `owner/name@revision`, into repository and revision."""
    repository, _, revision = name.partition("@")
    return repository, revision or None


def gguf_tag(name: str) -> tuple[str, str | None]:
    """Split a hub name, as llama.cpp's `owner/name:Q4_K_M`, into repository and tag."""
    repository, _, tag = pinned(name)[0].partition(":")
    return repository, tag or None


def holds_gguf(name: str) -> bool:
    """Whether a hub name means a GGUF file, by its tag or its repository's name."""
    repository, tag = gguf_tag(name)
    return tag is not None or repository.lower().endswith(_GGUF_ENDING)


def printable(text: str) -> str:
    """`text` on one line, without control characters, which a terminal would obey."""
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text)


def is_same(one: str, other: str) -> bool:
    """Whether two names mean one model; an alias means its model of the hub."""
    return HUB_ALIASES.get(one, one) == HUB_ALIASES.get(other, other)


def serves(wanted: str, requested: str, running: str) -> bool:
    """Whether a host that was asked for `requested`, and runs `running`, has the wanted model."""
    if requested not in ("", AUTO_MODEL) or wanted == requested:
        return is_same(wanted, requested)
    return running.rpartition("/")[2] == title_of(wanted)


def title_of(name: str) -> str:
    """Return the model's name for a sentence."""
    if name == AUTO_MODEL:
        return "the best model for this machine"
    if kind_of(name) == "path":
        path = Path(name)
        return printable(path.stem if path.suffix == ".gguf" else path.name)
    return EMBEDDED.get(name) or gguf_tag(HUB_ALIASES.get(name, name))[0].rpartition("/")[2]


def near_names(name: str) -> list[str]:
    """Return known names to suggest: first similar spellings, then similar sizes."""
    near = difflib.get_close_matches(name.lower(), ALIASES, n=2)
    if sizes := _SIZE.findall(name):
        near += sorted(_QWEN, key=lambda one: abs(float(one[:-1]) - float(sizes[-1])))[:2]
        near = [f"{sizes[-1]}b"] if f"{sizes[-1]}b" in near else near
    return list(dict.fromkeys(near))


def why_unknown(name: str) -> str:
    """A sentence about a name of the kind `unknown`, suggesting near names."""
    near = " or ".join(f"`{one}`" for one in near_names(name))
    hint = f"did you mean {near}?" if near else f"known are {', '.join(ALIASES)}."
    return (
        f"no model is called {reprlib.repr(name)}; {hint} A model of the hub is written owner/name, a folder "
        "or a .gguf file with its path"
    )
