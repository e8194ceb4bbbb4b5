"""The user's settings, and the one reader of the environment."""

import difflib
import os
from collections.abc import Iterable, Iterator, Mapping
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
    Layer,
    SettingsProblem,
    converted,
    default_cache_folder,
    environment_layer,
    file_layer,
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


# A workspace may set these, too. The others, the user's own, decide where text goes and what loads.
SHARED = frozenset(
    (
        *("enable", "languages", "disabled_globs", "layout", "lookahead", "temperature"),
        *("max_tokens", "prompt_tokens", "time_limit_ms", "min_confidence", "lines"),
        *("debounce_ms", "speculate", "num_candidates", "completion_fallback", "line_ends"),
        "next_edits",
    )
)


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Choices for every command, unless an option overrides them; see `lsp_server/README.md`."""

    cache_folder: Path
    runtime_folder: Path
    model: str | None = None
    edit_model: str | None = None
    device: _Device = "auto"
    dtype: _Dtype | None = None
    threads: _Threads | None = None
    kv_budget_mb: _Megabytes | None = None
    idle_exit_s: _Seconds = 1800
    host_url: _Url | None = None
    token_file: Path | None = None
    token: str | None = None
    insecure_http: bool = False
    ca_file: Path | None = None
    enable: bool = True
    languages: dict[str, bool] = {}
    disabled_globs: tuple[str, ...] = ()
    repository: tuple[str, ...] = ("on",)
    allow_secret_files: tuple[str, ...] = ()
    layout: Layout = "line"
    lookahead: str = "auto"
    temperature: Annotated[float, Meta(ge=0, le=10)] = 0.0
    max_tokens: _Written = 128
    prompt_tokens: _Read | None = None
    time_limit_ms: _Milliseconds | None = None
    min_confidence: Annotated[float, Meta(ge=0, le=1)] = 0.5
    lines: Lines = "auto"
    debounce_ms: Annotated[int, Meta(ge=0, le=10_000)] = 0
    speculate: bool = True
    num_candidates: Annotated[int, Meta(ge=1, le=10)] = 3
    completion_fallback: bool = False
    line_ends: Literal["auto", "lf", "document"] = "auto"
    next_edits: Literal["on", "off", "hint"] = "on"
    debug: bool = False

    @property
    def repository_globs(self) -> tuple[str, ...] | None:
        """Patterns of the files to index; empty means all files, None no file."""
        if "off" in self.repository or not self.repository:
            return None
        return () if "on" in self.repository else self.repository


# Removed settings, each with what holds instead, and the value for that: older plugins send it.
GONE: dict[str, tuple[str, object]] = {
    "accept_command": ("an accept always runs `foregram.accept`", "foregram.accept"),
    "calibrate": ("`min_confidence` is what the model says of a suggestion", False),
    "parts": ("a suggestion is shown once all of it is written", False),
    "range_from_line_start": ("a suggestion begins at the cursor", False),
    "seed": ("sampling begins at seed 0; `foregram complete` takes `--seed`", 0),
}


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    """The usable settings, and the problems with others."""

    settings: Settings
    problems: tuple[SettingsProblem, ...]

    def required(self) -> Settings:
        """Return the settings. Raises ConfigurationError on an unusable one that was not removed."""
        if wrong := [str(one) for one in self.problems if not one.is_gone]:
            raise ConfigurationError("; ".join(wrong))
        return self.settings


def load_settings(*layers: Layer, environ: Mapping[str, str] | None = None) -> LoadedSettings:
    """Load defaults, file, environment and `layers`, later ones winning. Never raises."""
    variables = os.environ if environ is None else environ
    problems: list[SettingsProblem] = []
    chosen: dict[str, Any] = {
        "cache_folder": default_cache_folder(variables),
        "runtime_folder": default_runtime_folder(variables),
    }
    for layer in (file_layer(variables, problems), environment_layer(variables), *layers):
        values = dict(_usable(layer, problems))
        if layer.own_elsewhere and "disabled_globs" in values:  # it may only hide more files
            values["disabled_globs"] = *chosen.get("disabled_globs", ()), *values["disabled_globs"]
        chosen.update(values)
    return LoadedSettings(Settings(**chosen), tuple(problems))


def _usable(layer: Layer, problems: list[SettingsProblem]) -> Iterator[tuple[str, Any]]:
    """Yield the valid values of `layer` by field, and add the others to `problems`."""
    names = _BY_VARIABLE if layer.is_text else _BY_KEY
    for key, given in layer.values.items():
        if (field := names.get(key)) is None:
            problems += _unknown(layer.source, key, given, names)
            continue
        try:
            is_own = field.name not in SHARED
            if is_own and layer.own_elsewhere and given not in (None, []):  # [] does no harm
                raise ConfigurationError(f"{key} is taken only from {layer.own_elsewhere}")
            if given is not None and (given != "" or field.default is not None):
                yield field.name, converted(key, given, field, layer)
        except ConfigurationError as error:
            problems.append(SettingsProblem(layer.source, key, str(error)))


def _unknown(
    source: str, key: str, given: object, names: Iterable[str]
) -> Iterator[SettingsProblem]:
    name = key.removeprefix("FOREGRAM_").replace("_", "").lower()  # any layer's spelling
    gone = {one.replace("_", ""): what for one, what in GONE.items()}
    if name not in gone:
        close = difflib.get_close_matches(key, names, n=1, cutoff=0.8)
        hint = "".join(f"; did you mean {name}?" for name in close)
        yield SettingsProblem(source, key, f"unknown setting {key}{hint}")
        return
    meaning, value = gone[name]
    if given not in (None, "") and str(given).lower() != str(value).lower():
        told = f"the setting {key} is gone, remove it: {meaning}"
        yield SettingsProblem(source, key, told, is_gone=True)


def user_file() -> Layer:
    """Return what stands in the user's `foregram.toml`; its path is the layer's source."""
    return file_layer(os.environ, [])


def variable_of(name: str) -> str:
    """Return the environment variable of a setting."""
    return "FOREGRAM_" + name.removesuffix("_folder").upper()


_FIELDS = msgspec.structs.fields(Settings)
_BY_VARIABLE = {variable_of(field.name): field for field in _FIELDS}
_BY_KEY = {name: field for field in _FIELDS for name in (field.name, field.encode_name)}
