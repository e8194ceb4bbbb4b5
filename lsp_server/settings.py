"""What the user wants: one model of settings, the one reader of the environment and `foregram.toml`.

Layers, later ones winning: defaults, file, environment, command line, the editor's options. A wrong
or unknown key is a problem with a name; what else its layer says still holds.
"""

import difflib
import os
import reprlib
import sys
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta, inspect
from msgspec.structs import FieldInfo

from engine.config import Layout, Lookahead
from engine.errors import ConfigurationError
from engine.host.runtime import default_runtime_folder

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


class Settings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Choices that hold for every command until an option overrides them."""

    cache_folder: Annotated[
        Path,
        Meta(
            description="converted models, learned acceptance",
            extra={"variable": "FOREGRAM_CACHE", "default": "`~/.cache/foregram`"},
        ),
    ]
    runtime_folder: Annotated[
        Path,
        Meta(
            description="socket, token and log of the local host",
            extra={"variable": "FOREGRAM_RUNTIME", "default": "`$XDG_RUNTIME_DIR/foregram`"},
        ),
    ]
    model: Annotated[
        str | None, Meta(description="an alias, a hub id, a local folder or a `.gguf` file")
    ] = None
    device: Annotated[Device, Meta(description="where the model runs")] = "auto"
    threads: Annotated[Positive | None, Meta(description="threads that torch uses")] = None
    kv_budget_mb: Annotated[
        Positive | None, Meta(description="memory for keys and values of prompts")
    ] = None
    idle_exit_s: Annotated[
        NotNegative,
        Meta(description="the local host ends after so long without a client; 0: never"),
    ] = 1800
    host_url: Annotated[Url | None, Meta(description="a remote host instead of a local one")] = None
    token_file: Annotated[Path | None, Meta(description="holds the remote host's token")] = None
    ca_file: Annotated[
        Path | None, Meta(description="certificates to trust beside the system's own")
    ] = None
    enable: Annotated[bool, Meta(description="complete at all")] = True
    languages: Annotated[
        dict[str, bool], Meta(description="languages switched on or off, by LSP identifier")
    ] = {}
    disabled_globs: Annotated[
        tuple[str, ...], Meta(description="files in which nothing is completed")
    ] = ()
    allow_secret_files: Annotated[
        tuple[str, ...], Meta(description="files that look secret and are not")
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
    debug: Annotated[bool, Meta(description="show the stack of an unexpected failure")] = False

    @staticmethod
    def from_environment(environ: Mapping[str, str] | None = None) -> "Settings":
        """Read file and environment; raises ConfigurationError on a wrong or unknown key."""
        loaded = load_settings(environ=environ)
        if loaded.problems:
            raise ConfigurationError("; ".join(map(str, loaded.problems)))
        return loaded.settings


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one source, by camelCase or snake_case keys.

    None leaves a key to other layers; so does an empty text where a setting may be unset, which is
    what editors send for a field that was not filled in.
    """

    source: str  # for people: a file's path, "command line", "initializationOptions"
    values: Mapping[str, object]
    is_text: bool = False  # of environment variables, by their names


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """A key that could not be used, or a file, where `key` is empty."""

    source: str
    key: str
    message: str

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


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
        "cache_folder": _cache_folder(variables),
        "runtime_folder": default_runtime_folder(variables),
    }
    for layer in (_file_layer(variables, problems), _environment_layer(variables), *layers):
        chosen.update(_usable(layer, problems))
    return LoadedSettings(Settings(**chosen), tuple(problems))


def settings_table() -> str:
    """The README's table of settings, in Markdown."""
    head = "| setting | variable | values | default | meaning |\n| --- | --- | --- | --- | --- |\n"
    return head + "".join(map(_table_row, _BY_VARIABLE.items()))


def _table_row(item: tuple[str, FieldInfo]) -> str:
    variable, field = item
    kind = _metadata(field)
    meaning = (kind.extra_json_schema or {})["description"]
    default = (kind.extra or {}).get("default") or _default(field)
    return f"| `{field.name}` | `{variable}` | {_expected(kind)} | {default} | {meaning} |\n"


def _default(field: FieldInfo) -> str:
    if field.default in (None, "", (), msgspec.NODEFAULT):
        return ""
    return f"`{str(field.default).lower()}`"


def _usable(layer: Layer, problems: list[SettingsProblem]) -> Iterator[tuple[str, object]]:
    names = _BY_VARIABLE if layer.is_text else _BY_KEY
    for key, given in layer.values.items():
        try:
            if key not in names:
                raise ConfigurationError(_unknown(key, names))
            field = names[key]
            if given is not None and (given != "" or field.default is not None):
                yield field.name, _converted(key, given, field, strict=not layer.is_text)
        except ConfigurationError as error:
            problems.append(SettingsProblem(layer.source, key, str(error)))


def _unknown(key: str, names: Mapping[str, FieldInfo]) -> str:
    close = difflib.get_close_matches(key, names, n=1, cutoff=0.8)
    return f"unknown setting {key}" + "".join(f"; did you mean {name}?" for name in close)


def _converted(key: str, given: object, field: FieldInfo, *, strict: bool) -> object:
    kind = _metadata(field)
    raw = given if strict else _split(str(given), kind)
    try:
        value = msgspec.convert(raw, field.type, strict=strict, dec_hook=_as_path)
    except msgspec.ValidationError as error:
        wrong = reprlib.repr(given)
        raise ConfigurationError(f"{key} is {wrong}, not {_expected(kind)}") from error
    if field.name == "lookahead":
        Lookahead.parse(value)
    return value


def _split(text: str, kind: inspect.Metadata) -> object:
    """Lists and tables as a variable holds them: `*.md,*.txt` and `python=true,markdown=false`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(kind.type, inspect.VarTupleType):
        return parts
    if isinstance(kind.type, inspect.DictType):
        pairs = (part.partition("=") for part in parts)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return text


def _as_path(_kind: type, value: object) -> Path:
    if not isinstance(value, str) or not value:
        raise TypeError("not a path")
    return Path(value).expanduser()


def _expected(kind: inspect.Type) -> str:
    """What a value of this type has to be, in words."""
    if isinstance(kind, inspect.Metadata):
        return (kind.extra or {}).get("expected") or _expected(kind.type)
    if isinstance(kind, inspect.UnionType):
        return " or ".join(_expected(one) for one in kind.types if one != inspect.NoneType())
    if isinstance(kind, inspect.LiteralType):
        return "one of " + ", ".join(f"`{value}`" for value in kind.values)
    if isinstance(kind, inspect.IntType | inspect.FloatType):
        noun = "a whole number" if isinstance(kind, inspect.IntType) else "a number"
        upper = "" if kind.le is None else f" to {kind.le:,}"
        return f"{noun} from {kind.ge}{upper}"
    return _IN_WORDS[type(kind)]


_IN_WORDS: dict[type[inspect.Type], str] = {
    inspect.BoolType: "true or false",
    inspect.CustomType: "a path",
    inspect.DictType: "a table of true and false",
    inspect.StrType: "a text",
    inspect.VarTupleType: "a list of texts",
}


def _file_layer(environ: Mapping[str, str], problems: list[SettingsProblem]) -> Layer:
    path = _settings_path(environ)
    try:
        return Layer(str(path), tomllib.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        if environ.get("FOREGRAM_CONFIG"):
            problems.append(SettingsProblem(str(path), "", "there is no such file"))
    except (OSError, ValueError) as error:  # unreadable; not TOML, not UTF-8
        reason = getattr(error, "strerror", None) or error
        problems.append(SettingsProblem(str(path), "", f"cannot be read: {reason}"))
    return Layer(str(path), {})


def _environment_layer(environ: Mapping[str, str]) -> Layer:
    ours = {
        name: text or None  # an empty variable is as good as none
        for name, text in environ.items()
        if name.startswith("FOREGRAM_") and name != "FOREGRAM_CONFIG"
    }
    return Layer("environment", ours, is_text=True)


def _settings_path(environ: Mapping[str, str]) -> Path:
    if environ.get("FOREGRAM_CONFIG"):
        return Path(environ["FOREGRAM_CONFIG"]).expanduser()
    if environ.get("XDG_CONFIG_HOME"):
        folder = Path(environ["XDG_CONFIG_HOME"])
    else:
        folder = _home(environ) / (_on_mac("Library/Application Support") or ".config")
    return folder / "foregram" / "foregram.toml"


def _cache_folder(environ: Mapping[str, str]) -> Path:
    if environ.get("XDG_CACHE_HOME"):
        return Path(environ["XDG_CACHE_HOME"]) / "foregram"
    return _home(environ) / (_on_mac("Library/Caches") or ".cache") / "foregram"


def _on_mac(folder: str) -> str:
    return folder if sys.platform == "darwin" else ""


def _home(environ: Mapping[str, str]) -> Path:
    return Path(environ.get("HOME") or Path.home())


def _variable(field: FieldInfo) -> str:
    extra = _metadata(field).extra or {}
    return str(extra.get("variable", f"FOREGRAM_{field.name.upper()}"))


def _metadata(field: FieldInfo) -> inspect.Metadata:
    kind = inspect.type_info(field.type)
    if not isinstance(kind, inspect.Metadata):
        raise TypeError(f"the setting {field.name} has no description")
    return kind


_FIELDS = msgspec.structs.fields(Settings)
_BY_VARIABLE = {_variable(field): field for field in _FIELDS}
_BY_KEY = {name: field for field in _FIELDS for name in (field.name, field.encode_name)}
