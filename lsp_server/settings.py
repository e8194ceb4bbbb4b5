"""What the user wants: one model of settings, and the one reader of the environment.

Layers, later ones winning: defaults, file, environment, command line, the editor's options. A wrong
or unknown key is a problem with a name; what else its layer says still holds.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from engine.config import Layout
from engine.errors import ConfigurationError
from engine.host.runtime import default_runtime_folder
from lsp_server.setting_layers import (
    Layer,
    SettingsProblem,
    default_cache_folder,
    environment_layer,
    file_layer,
    usable_values,
    variable_of,
)

_OWN = {"own": True}  # of settings that no client over TCP may change
Positive = Annotated[int, Meta(ge=1)]
NotNegative = Annotated[int, Meta(ge=0)]
Url = Annotated[
    str, Meta(pattern="^https?://[^/]", extra={"expected": "an http:// or https:// address"})
]
Device = Annotated[
    str,
    Meta(
        pattern=r"^(auto|cpu|cuda(:\d+)?)$", extra={"expected": "`auto`, `cpu`, `cuda` or `cuda:N`"}
    ),
]


Dtype = Annotated[
    str,
    Meta(
        pattern="^(int8|float32|bfloat16|fp8|int4)$",
        extra={"expected": "one of `int8`, `float32`, `bfloat16`, `fp8`, `int4`"},
    ),
]


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Choices that hold for every command until an option overrides them."""

    cache_folder: Annotated[
        Path,
        Meta(
            description="converted models, learned acceptance",
            extra=_OWN | {"variable": "FOREGRAM_CACHE", "default": "`~/.cache/foregram`"},
        ),
    ]
    runtime_folder: Annotated[
        Path,
        Meta(
            description="socket, token and log of the local host",
            extra=_OWN | {"variable": "FOREGRAM_RUNTIME", "default": "`$XDG_RUNTIME_DIR/foregram`"},
        ),
    ]
    model: Annotated[
        str | None,
        Meta(description="an alias, a hub id, a local folder or a `.gguf` file", extra=_OWN),
    ] = None
    device: Annotated[Device, Meta(description="where the model runs", extra=_OWN)] = "auto"
    dtype: Annotated[
        Dtype | None,
        Meta(description="how weights are held; unset: `int8`, on a GPU `bfloat16`", extra=_OWN),
    ] = None
    threads: Annotated[Positive | None, Meta(description="threads that torch uses", extra=_OWN)] = (
        None
    )
    kv_budget_mb: Annotated[
        Positive | None, Meta(description="memory for keys and values of prompts", extra=_OWN)
    ] = None
    idle_exit_s: Annotated[
        NotNegative,
        Meta(
            description="the local host ends after so long without a client; 0: never", extra=_OWN
        ),
    ] = 1800
    host_url: Annotated[
        Url | None, Meta(description="a remote host instead of a local one", extra=_OWN)
    ] = None
    token_file: Annotated[
        Path | None, Meta(description="holds the remote host's token", extra=_OWN)
    ] = None
    token: Annotated[
        str | None,
        Meta(
            description="the remote host's token itself, for editors that keep secrets",
            extra=_OWN | {"secret": True},
        ),
    ] = None
    insecure_http: Annotated[
        bool,
        Meta(
            description="`host_url` may be plain http to another machine: others on the way can "
            "read code and token",
            extra=_OWN,
        ),
    ] = False
    ca_file: Annotated[
        Path | None, Meta(description="certificates to trust beside the system's own", extra=_OWN)
    ] = None
    enable: Annotated[bool, Meta(description="complete at all")] = True
    languages: Annotated[
        dict[str, bool],
        Meta(
            description="languages switched on or off, by LSP identifier; `markdown` and "
            "`plaintext` are quiet until switched on"
        ),
    ] = {}
    disabled_globs: Annotated[
        tuple[str, ...], Meta(description="files in which nothing is completed")
    ] = ()
    allow_secret_files: Annotated[
        tuple[str, ...], Meta(description="files that look secret and are not", extra=_OWN)
    ] = ()
    layout: Annotated[
        Layout, Meta(description="the cursor's line after the middle token, or in the prefix")
    ] = "line"
    lookahead: Annotated[
        str, Meta(description="`auto`, `off`, a preset or `W,N,G`: how far a step drafts ahead")
    ] = "auto"
    temperature: Annotated[
        Annotated[float, Meta(ge=0, le=10)], Meta(description="how tokens are drawn; 0: greedy")
    ] = 0.0
    seed: Annotated[Annotated[int, Meta(ge=0, le=2**63 - 1)], Meta(description="of sampling")] = 0
    max_tokens: Annotated[Positive, Meta(description="the longest completion")] = 128
    prompt_tokens: Annotated[
        Positive | None,
        Meta(description="the longest prompt; unset: what the machine reads in time"),
    ] = None
    time_limit_ms: Annotated[
        Positive | None, Meta(description="a completion ends at the first line end after this")
    ] = None
    debounce_ms: Annotated[
        Annotated[int, Meta(ge=0, le=10_000)], Meta(description="wait for so long after a key")
    ] = 0
    speculate: Annotated[
        bool, Meta(description="compute ahead what follows the completion shown")
    ] = True
    num_candidates: Annotated[
        Annotated[int, Meta(ge=1, le=10)], Meta(description="completions of an explicit request")
    ] = 3
    completion_fallback: Annotated[
        bool,
        Meta(description="answer `textDocument/completion` too, for clients without ghost text"),
    ] = False
    range_from_line_start: Annotated[
        bool, Meta(description="items replace the line from its start, not from the cursor")
    ] = False
    line_ends: Annotated[
        Literal["auto", "lf", "document"],
        Meta(description="of items: by client, line feeds, or the document's"),
    ] = "auto"
    accept_command: Annotated[
        str, Meta(description="the command that tells of an accept; empty: none")
    ] = "foregram.accept"
    debug: Annotated[
        bool, Meta(description="show the stack of an unexpected failure", extra=_OWN)
    ] = False

    @staticmethod
    def from_environment(environ: Mapping[str, str] | None = None) -> "Settings":
        """Read file and environment; raises ConfigurationError on a wrong or unknown key."""
        loaded = load_settings(environ=environ)
        if loaded.problems:
            raise ConfigurationError("; ".join(map(str, loaded.problems)))
        return loaded.settings


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What could be used, and what could not."""

    settings: Settings
    problems: tuple[SettingsProblem, ...]


def load_settings(*layers: Layer, environ: Mapping[str, str] | None = None) -> LoadedSettings:
    """Defaults, file and environment, then `layers` in their order. It never raises."""
    variables = os.environ if environ is None else environ
    problems: list[SettingsProblem] = []
    chosen: dict[str, Any] = {
        "cache_folder": default_cache_folder(variables),
        "runtime_folder": default_runtime_folder(variables),
    }
    for layer in (file_layer(variables, problems), environment_layer(variables), *layers):
        names = _BY_VARIABLE if layer.is_text else _BY_KEY
        chosen.update(usable_values(layer, names, problems))
    return LoadedSettings(Settings(**chosen), tuple(problems))


_FIELDS = msgspec.structs.fields(Settings)
_BY_VARIABLE = {variable_of(field): field for field in _FIELDS}
_BY_KEY = {name: field for field in _FIELDS for name in (field.name, field.encode_name)}
