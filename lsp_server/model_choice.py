"""The models to choose from, and whether a name is usable, without loading anything."""

import reprlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from engine.errors import ConfigurationError, ModelNotFoundError
from engine.model_names import AUTO_MODEL, SMALLEST_MODEL, kind_of, near_names, path_of
from engine.offline_parts import OFFLINE_MODELS, find_parts
from lsp_server.setting_layers import Layer, model_name

_TYPED = Layer("what was typed", {})
_OFFERED = {
    AUTO_MODEL: "the default: what this machine runs well; on a CPU, of the installed models",
    SMALLEST_MODEL: "0.5B Instruct, from packages of 0.5 GB: the quickest",
    "offline-1.5b": "1.5B Instruct, from packages of 1.1 GB: better, and slower",
    "0.5b": "0.5B base, made to fill in code: downloads 1.0 GB",
    "1.5b": "downloads 3.1 GB, for a fast CPU or a GPU",
    "sweep-0.5b": "Sweep's model for next edits: downloads 0.5 GB",
    "sweep-1.5b": "the same of 1.5B: downloads 1.5 GB, for a fast CPU or a GPU",
}
# GB of the weights on the hub in bfloat16, and of the GPU memory that they need.
_LARGE = {
    "3b": (6.2, 8),
    "7b": (15.2, 17),
    "14b": (29.5, 32),
    "32b": (65.5, 68),
    "mellum-4b": (8.0, 10),
    "seed-coder-8b": (16.5, 18),
    "sweep-7b": (15.2, 17),
    "zeta": (15.2, 17),
    "zeta-2": (16.5, 18),
}


class Check(msgspec.Struct, frozen=True):
    """The result of a check, with advice if something is wrong."""

    name: str
    state: Literal["ok", "warning", "failed"]
    what: str
    advice: str = ""


def failure(name: str, error: Exception, advice: str = "") -> Check:
    """Return a failed check. `advice` defaults to the error's text after its last semicolon."""
    found, _, remedy = str(error).rpartition("; ")
    if advice or not found:
        return Check(name, "failed", str(error), advice or "fix that and try again")
    return Check(name, "failed", found, remedy)


def offered_models() -> list[dict[str, str]]:
    """Return a `name` and a `description` for each alias."""
    large = {
        name: f"downloads {size} GB, for a GPU with {needed} GB free, else slow on the CPU"
        for name, (size, needed) in _LARGE.items()
    }
    return [{"name": name, "description": what} for name, what in (_OFFERED | large).items()]


def check_name(typed: str) -> dict[str, Any]:
    """Return whether a name is `ok`, names like it in `near`, and what is wrong as `sentence`."""
    name = typed.strip()
    near = near_names(name) if kind_of(name) == "unknown" else []
    if near:
        wrong = f"no model is called {reprlib.repr(name)}"
    else:
        try:
            check = check_model(model_name(name, _TYPED, "model"))
            wrong = f"{check.what}; {check.advice}" if check.state == "failed" else ""
        except ConfigurationError as error:
            wrong = str(error)
    return {"ok": False, "near": near, "sentence": wrong} if wrong else {"ok": True, "near": []}


def check_model(model: str | None) -> Check:
    """Check whether the settings' model exists, without loading it."""
    name = model or AUTO_MODEL
    kind = kind_of(name)
    if kind == "embedded":
        known = OFFLINE_MODELS[name]
        try:
            parts = find_parts(known)
        except ModelNotFoundError as error:
            return failure("model", error)
        return Check("model", "ok", f"{name}: {known.name}, all {len(parts)} parts are installed")
    if kind == "auto":
        return Check("model", "ok", "auto: by this machine's speed and its memory")
    if kind == "path":
        return _at(path_of(name))
    what = f"{name} is looked up on the Hugging Face hub when the host loads it"
    return Check("model", "warning", what, "`foregram doctor --start` loads it now")


def _at(path: Path) -> Check:
    if path.is_dir() and (path / "config.json").is_file():
        return Check("model", "ok", f"the folder {path}")
    if path.is_dir():
        advice = "a model's folder has config.json, tokenizer.json and .safetensors files"
        return Check("model", "failed", f"the folder {path} holds no config.json", advice)
    if path.is_file() and path.suffix == ".gguf":
        return Check("model", "ok", f"{path}, {path.stat().st_size / 1e9:.1f} GB")
    what = f"{path} is not a .gguf file" if path.exists() else f"there is no {path}"
    return Check("model", "failed", what, "set model to a folder, a .gguf file, or an alias")
