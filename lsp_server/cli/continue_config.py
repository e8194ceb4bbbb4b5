"""Reads Continue's `config.yaml`: its first model for completion, and what becomes of all else."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import yaml

from engine.errors import InputError
from engine.host.loopback import is_loopback
from engine.model_names import EMBEDDED, HUB_ALIASES, kind_of
from lsp_server.cli.continue_options import Part, not_taken, option, taken
from lsp_server.cli.source_file import read_bytes

_UNREADABLE = (msgspec.ValidationError, yaml.YAMLError, KeyError, RecursionError, ValueError)
_ROLE = "autocomplete"
_FOR_CHAT = ("context", "docs", "mcpServers", "prompts", "rules")
_COMPATIBLE = ("llama.cpp", "llamafile", "lmstudio", "openai", "vllm")  # take prompts as they are
_LOCAL = ("ollama", "huggingface-tgi", *_COMPATIBLE)
_QWEN = re.compile(r"qwen-?2\.5-coder[:-](\d+(?:\.\d+)?b)(.*)", re.IGNORECASE)


class _Model(msgspec.Struct, rename="camel"):
    """What counts of one of Continue's models."""

    name: str = ""
    uses: str = ""
    provider: str = ""
    model: str = ""
    roles: list[str] = []
    api_base: str = ""
    api_key: str = ""
    autocomplete_options: dict[str, Any] = {}
    default_completion_options: dict[str, Any] = {}

    @property
    def is_local(self) -> bool:
        """Whether a program on this machine runs it."""
        if not self.api_base:
            return self.provider in _LOCAL and self.provider != "openai"
        try:
            host = urlsplit(self.api_base).hostname
        except ValueError:  # it is no address
            host = None
        return self.provider in _LOCAL and is_loopback(host or "")


_READ = {field.encode_name for field in msgspec.structs.fields(_Model)}


def read_continue(path: Path) -> list[Part]:
    """Return what becomes of each part of a file. Raises InputError if it is no `config.yaml`."""
    if path.suffix == ".json":  # it is YAML, too, but has other names
        raise InputError(f"{path} is in Continue's older format: only a config.yaml is read")
    try:
        config = msgspec.convert(yaml.safe_load(read_bytes(path)), dict[str, Any])
        entries = msgspec.convert(config["models"], list[dict[str, Any]])
        models = [msgspec.convert(one, _Model) for one in entries]
    except _UNREADABLE as error:
        wrong = (
            "it has no `models`" if isinstance(error, KeyError) else " ".join(str(error).split())
        )
        raise InputError(f"{path} is no config.yaml of Continue: {wrong}") from error
    chosen = next((at for at, one in enumerate(models) if _ROLE in one.roles), None)
    parts = [] if chosen is None else list(_parts(models[chosen], entries[chosen]))
    others = (one for at, one in enumerate(models) if at != chosen)
    parts += [not_taken(one.name or one.uses, _why_not(one)) for one in others]
    return parts + [not_taken(one, "it is for chat") for one in _FOR_CHAT if config.get(one)]


def _why_not(model: _Model) -> str:
    if _ROLE in model.roles:
        return "foregram runs one model"
    if model.uses:
        return "it is described in Continue's hub, not in this file"
    return f"its roles lack {_ROLE}"


def _parts(model: _Model, entry: Mapping[str, Any]) -> Iterator[Part]:
    yield _named(model)
    if model.api_base:
        yield not_taken("apiBase", _instead_of_server(model))
    if model.api_key:
        yield not_taken("apiKey", "foregram asks no other service")
    rest = {key: given for key, given in entry.items() if key not in _READ}
    options = model.autocomplete_options | model.default_completion_options | rest
    yield from (option(key, given) for key, given in options.items())


def _named(model: _Model) -> Part:
    """Return what becomes of a model's name."""
    what = " ".join(filter(None, (model.uses, model.provider, model.model))) or "it"
    if not model.is_local:
        why = "does not run on this machine; `foregram setup` installs the best model for it"
        return not_taken("model", f"{what} {why}")
    name = _known(model.model)
    if name not in EMBEDDED and name not in HUB_ALIASES and kind_of(name) != "hub":
        why = "foregram does not know it; `foregram setup` installs the best model for this machine"
        return not_taken("model", f"{what}: {why}")
    return taken("model", "model", name, f", for {what}")


def _known(name: str) -> str:
    """Return our name of a Qwen2.5-Coder, however a program spells it; other names stay."""
    if (qwen := _QWEN.search(name)) is None:
        return name
    size, rest = qwen[1].lower(), qwen[2].lower()
    is_base = "base" in rest or ("/" in name and "instruct" not in rest)  # as on the hub
    title = f"Qwen2.5-Coder-{size.upper()}-Instruct"
    packaged = (one for one, what in EMBEDDED.items() if what == title and not is_base)
    return next(packaged, size)


def _instead_of_server(model: _Model) -> str:
    if model.provider in _COMPATIBLE:
        command = f"foregram serve --backend openai --upstream {model.api_base}"
        return f"foregram runs a model itself; `{command}` and `host_url` keep this server"
    if model.is_local:
        return "foregram runs a model itself"
    return "run `foregram serve` on that machine, and set `host_url`"
