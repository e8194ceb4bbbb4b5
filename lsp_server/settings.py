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
from engine.host.protocol import MAX_TOKENS
from engine.host.runtime import default_runtime_folder
from lsp_server.setting_layers import (
    GoneSetting,
    Layer,
    SettingsProblem,
    default_cache_folder,
    environment_layer,
    file_layer,
    usable_values,
    variable_of,
)

Lines = Literal["auto", "single", "multi"]
# Each number has an end: one beyond it fails here, with its name, and not somewhere below.
_Threads = Annotated[int, Meta(ge=1, le=1_024)]
_Megabytes = Annotated[int, Meta(ge=1, le=10_000_000)]
_Seconds = Annotated[int, Meta(ge=0, le=31_536_000)]  # a year
_Milliseconds = Annotated[int, Meta(ge=1, le=3_600_000)]  # an hour
_Written = Annotated[int, Meta(ge=1, le=MAX_TOKENS)]  # tokens that a host writes at once
_Read = Annotated[int, Meta(ge=1, le=1_000_000)]
_Url = Annotated[
    str, Meta(pattern="^https?://[^/]", extra={"expected": "an http:// or https:// address"})
]
_Device = Annotated[
    str,
    Meta(
        pattern=r"^(auto|cpu|cuda(:\d+)?|mps|xpu)$",
        extra={"expected": "`auto`, `cpu`, `cuda`, `cuda:N`, `mps` or `xpu`"},
    ),
]
_Dtype = Annotated[
    str,
    Meta(
        pattern="^(int8|float32|bfloat16|fp8|int4)$",
        extra={"expected": "one of `int8`, `float32`, `bfloat16`, `fp8`, `int4`"},
    ),
]


def _about(description: str, **extra: object) -> Meta:
    """What a setting means."""
    return Meta(description=description, extra=extra)


def _own(description: str, **extra: object) -> Meta:
    """The same of a setting that neither a client over TCP nor a workspace may change."""
    return _about(description, own=True, **extra)


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Choices that hold for every command until an option overrides them."""

    cache_folder: Annotated[
        Path,
        _own(
            "converted models, learned acceptance",
            variable="FOREGRAM_CACHE",
            default="`~/.cache/foregram`",
        ),
    ]
    runtime_folder: Annotated[
        Path,
        _own(
            "socket, token and log of the local host",
            variable="FOREGRAM_RUNTIME",
            default="`$XDG_RUNTIME_DIR/foregram`",
        ),
    ]
    model: Annotated[
        str | None, _own("`auto`, an alias, a hub id, a local folder or a `.gguf` file")
    ] = None
    device: Annotated[_Device, _own("where the model runs")] = "auto"
    dtype: Annotated[
        _Dtype | None,
        _own("how weights are held; unset: `int8`, on a GPU as the file has them, or `bfloat16`"),
    ] = None
    threads: Annotated[_Threads | None, _own("threads that torch uses")] = None
    kv_budget_mb: Annotated[_Megabytes | None, _own("memory for the prompt cache")] = None
    idle_exit_s: Annotated[
        _Seconds, _own("the local host ends after this many idle seconds; 0: never")
    ] = 1800
    host_url: Annotated[_Url | None, _own("a remote host instead of a local one")] = None
    token_file: Annotated[Path | None, _own("holds the remote host's token")] = None
    token: Annotated[
        str | None,
        _own("the remote host's token itself, for editors that keep secrets", secret=True),
    ] = None
    insecure_http: Annotated[
        bool,
        _own(
            "`host_url` may be plain http to another machine: others on the way can "
            "read code and token"
        ),
    ] = False
    ca_file: Annotated[Path | None, _own("certificates to trust in addition to the system's")] = (
        None
    )
    enable: Annotated[bool, _about("suggest at all")] = True
    languages: Annotated[
        dict[str, bool],
        _about(
            "languages turned on or off, by the name that any editor has for one; "
            "prose, such as `markdown` and `plaintext`, is quiet until turned on"
        ),
    ] = {}
    disabled_globs: Annotated[tuple[str, ...], _about("files in which nothing is suggested")] = ()
    repository: Annotated[
        tuple[str, ...],
        _own(
            "`on`: suggestions know the files of the workspace that are not open; `off`: they do "
            "not; or patterns of the files that they know"
        ),
    ] = ("on",)
    allow_secret_files: Annotated[tuple[str, ...], _own("files that look secret and are not")] = ()
    layout: Annotated[
        Layout, _about("the last lines up to the cursor after the middle token, or in the prefix")
    ] = "line"
    lookahead: Annotated[
        str, _about("`auto`, `off`, a preset or `W,N,G`: how far a step drafts ahead")
    ] = "auto"
    temperature: Annotated[float, Meta(ge=0, le=10), _about("how tokens are drawn; 0: greedy")] = (
        0.0
    )
    max_tokens: Annotated[_Written, _about("the longest suggestion")] = 128
    prompt_tokens: Annotated[
        _Read | None, _about("the longest prompt; unset: what the machine reads in time")
    ] = None
    time_limit_ms: Annotated[
        _Milliseconds | None,
        _about("a suggestion ends at the first line end after this many milliseconds"),
    ] = None
    min_confidence: Annotated[
        float,
        Meta(ge=0, le=1),
        _about(
            "the model's own probability of a suggestion that comes by itself, at least; 0: any"
        ),
    ] = 0.5
    lines: Annotated[
        Lines, _about("of a suggestion: as the place asks for, one, or several wherever they fit")
    ] = "auto"
    debounce_ms: Annotated[
        int, Meta(ge=0, le=10_000), _about("wait for this many milliseconds after a key")
    ] = 0
    speculate: Annotated[bool, _about("compute ahead what follows the suggestion shown")] = True
    num_candidates: Annotated[
        int, Meta(ge=1, le=10), _about("suggestions of an explicit request")
    ] = 3
    completion_fallback: Annotated[
        bool, _about("answer `textDocument/completion` too, for clients without ghost text")
    ] = False
    line_ends: Annotated[
        Literal["auto", "lf", "document"],
        _about("of items: by client, line feeds, or the document's"),
    ] = "auto"
    debug: Annotated[bool, _own("show the stack of an unexpected failure")] = False

    @property
    def repository_globs(self) -> tuple[str, ...] | None:
        """Patterns of the files to index, none of them where that is all; None: no file."""
        if "off" in self.repository or not self.repository:
            return None
        return () if "on" in self.repository else self.repository

    @staticmethod
    def from_environment(environ: Mapping[str, str] | None = None) -> "Settings":
        """Read file and environment; raises ConfigurationError on a wrong or unknown key."""
        loaded = load_settings(environ=environ)
        loaded.require()
        return loaded.settings


GONE = {
    "accept_command": GoneSetting("an accept always runs `foregram.accept`", "foregram.accept"),
    "calibrate": GoneSetting(
        "`min_confidence` is what the model says of a suggestion", value=False
    ),
    "parts": GoneSetting("a suggestion is shown once all of it is written", value=False),
    "range_from_line_start": GoneSetting("a suggestion begins at the cursor", value=False),
    "seed": GoneSetting("sampling begins at seed 0; `foregram complete` takes `--seed`", value=0),
}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """What could be used, and what could not."""

    settings: Settings
    problems: tuple[SettingsProblem, ...]

    def require(self) -> None:
        """Raise ConfigurationError unless all could be used, or is gone."""
        if wrong := [str(one) for one in self.problems if not one.is_gone]:
            raise ConfigurationError("; ".join(wrong))


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
        values: dict[str, Any] = dict(usable_values(layer, names, GONE, problems))
        if layer.own_elsewhere and "disabled_globs" in values:  # it may hide more, and show no more
            values["disabled_globs"] = *chosen.get("disabled_globs", ()), *values["disabled_globs"]
        chosen.update(values)
    return LoadedSettings(Settings(**chosen), tuple(problems))


_FIELDS = msgspec.structs.fields(Settings)
_BY_VARIABLE = {variable_of(field): field for field in _FIELDS}
_BY_KEY = {name: field for field in _FIELDS for name in (field.name, field.encode_name)}
