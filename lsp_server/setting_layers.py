"""Reads and checks the layers of settings. A field's type decides which values are valid."""

import reprlib
import sys
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import inspect
from msgspec.structs import FieldInfo

from engine.config import Lookahead
from engine.errors import ConfigurationError
from engine.model_names import kind_of, path_of, why_unknown


@dataclass(frozen=True, slots=True)
class Layer:
    """Settings of one source, by camelCase or snake_case keys. None leaves a key to others."""

    source: str  # for people: a file's path, "command line", "initializationOptions"
    values: Mapping[str, object]  # "", an editor's empty field, counts as None if that is valid
    is_text: bool = False  # whether these are environment variables, by their names
    own_elsewhere: str = ""  # the sources of the user's own settings, if this is none of them
    folder: Path | None = None  # where relative paths start; without it they are rejected


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """An unusable key, or a whole file if `key` is empty. `is_gone`: it does no harm."""

    source: str
    key: str
    message: str
    is_gone: bool = False

    def __str__(self) -> str:
        return f"{self.source}: {self.message}"


def converted(key: str, given: object, field: FieldInfo, layer: Layer) -> object:
    """Return the value of a setting. Raises ConfigurationError, which says what is expected."""
    kind = inspect.type_info(field.type)
    raw = _split(str(given), kind) if layer.is_text else given
    try:
        value = msgspec.convert(raw, field.type, strict=not layer.is_text, dec_hook=_as_path)
    except msgspec.ValidationError as error:
        wrong = "a value" if field.name == "token" else reprlib.repr(given)
        raise ConfigurationError(f"{key} is {wrong}, not {expected(kind)}") from error
    if field.name == "lookahead":
        Lookahead.parse(value)
    if field.name in ("model", "edit_model") and isinstance(value, str):
        return model_name(value, layer, key)
    return _placed(value, layer, key, given) if isinstance(value, Path) else value


def model_name(name: str, layer: Layer, key: str) -> str:
    """Check a model's name, and make a path absolute. Raises ConfigurationError."""
    kind = kind_of(name)
    if kind == "unknown":
        raise ConfigurationError(why_unknown(name))
    return str(_placed(path_of(name), layer, key, name)) if kind == "path" else name


def _placed(path: Path, layer: Layer, key: str, given: object) -> Path:
    if layer.folder is not None:
        return layer.folder / path
    if path.is_absolute():
        return path
    raise ConfigurationError(
        f"{key} is {reprlib.repr(given)}, a different file in every folder: write the whole path, "
        "from / or ~"
    )


def _split(text: str, kind: inspect.Type) -> object:
    """Split lists and tables of a variable: `*.md,*.txt` and `python=true,markdown=false`."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if isinstance(kind, inspect.VarTupleType):
        return parts
    if isinstance(kind, inspect.DictType):
        pairs = (part.partition("=") for part in parts)
        return {name.strip(): value.strip() for name, _, value in pairs}
    return text


def _as_path(_kind: type, value: object) -> Path:
    if not isinstance(value, str) or not value:
        raise TypeError("not a path")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # no such user
        raise TypeError("no known home folder") from error


def expected(kind: inspect.Type) -> str:
    """Describe the valid values of a type."""
    if isinstance(kind, inspect.Metadata):
        return (kind.extra or {}).get("expected") or expected(kind.type)
    if isinstance(kind, inspect.UnionType):
        return " or ".join(expected(one) for one in kind.types if one != inspect.NoneType())
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
    inspect.DictType: "a table of booleans",
    inspect.StrType: "a string",
    inspect.VarTupleType: "a list of strings",
}


def file_layer(environ: Mapping[str, str], problems: list[SettingsProblem]) -> Layer:
    """Read the user's `foregram.toml`; without one, the layer is empty."""
    if named := environ.get("FOREGRAM_CONFIG"):
        path = Path(named).expanduser()
    else:
        folder = _ours(environ, "XDG_CONFIG_HOME", "Library/Application Support", ".config")
        path = folder / "foregram.toml"
    if not path.is_absolute():  # it may name a file of any repository
        wrong = "FOREGRAM_CONFIG is a relative path: write the whole path, from / or ~"
        problems.append(SettingsProblem(str(path), "", wrong))
        return Layer(str(path), {})
    try:
        return Layer(str(path), tomllib.loads(path.read_text("utf-8")), folder=path.parent)
    except FileNotFoundError:
        if named:
            problems.append(SettingsProblem(str(path), "", "there is no such file"))
    except (OSError, ValueError) as error:  # unreadable, not TOML or not UTF-8
        reason = getattr(error, "strerror", None) or error
        problems.append(SettingsProblem(str(path), "", f"cannot be read: {reason}"))
    return Layer(str(path), {})


def environment_layer(environ: Mapping[str, str]) -> Layer:
    """Take the variables that begin with FOREGRAM_; an empty one counts as unset."""
    ours = {name: text or None for name, text in environ.items() if name.startswith("FOREGRAM_")}
    ours.pop("FOREGRAM_CONFIG", None)
    return Layer("environment", ours, is_text=True)


def default_cache_folder(environ: Mapping[str, str]) -> Path:
    """Return our folder in the user's cache folder."""
    return _ours(environ, "XDG_CACHE_HOME", "Library/Caches", ".cache")


def _ours(environ: Mapping[str, str], variable: str, on_mac: str, elsewhere: str) -> Path:
    """Return our folder in that of `variable`, if absolute as XDG demands, or in the system's."""
    folder = Path(environ.get(variable, ""))
    if not folder.is_absolute():
        home = Path(environ.get("HOME") or Path.home())
        folder = home / (on_mac if sys.platform == "darwin" else elsewhere)
    return folder / "foregram"
