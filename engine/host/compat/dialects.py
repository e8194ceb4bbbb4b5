"""The drop-in APIs by name, and those that a host speaks."""

from collections.abc import Sequence
from dataclasses import dataclass

from engine.errors import ConfigurationError, InputError
from engine.host.compat.dialect import HEALTH, Body, Dialect
from engine.host.compat.llama_cpp import LlamaCpp
from engine.host.compat.mistral import Mistral
from engine.host.compat.openai import OpenAI
from engine.host.compat.tabby import Tabby

NONE = "none"
_ALL: tuple[Dialect, ...] = (OpenAI(), Mistral(), LlamaCpp(), Tabby())
NAMES = tuple(one.name for one in _ALL)
DEFAULT = "openai"


@dataclass(frozen=True, slots=True)
class Spoken:
    """The drop-in APIs that a host speaks."""

    dialects: tuple[Dialect, ...] = ()

    @classmethod
    def named(cls, names: str) -> "Spoken":
        """Read names between commas, or `none`. Raises ConfigurationError."""
        wanted = [] if names == NONE else [name.strip() for name in names.split(",")]
        unknown = [name for name in wanted if name not in NAMES]
        if unknown:
            raise ConfigurationError(
                f"there is no API {unknown[0]!r}: name some of {', '.join(NAMES)}, or {NONE}"
            )
        return cls(tuple(one for one in _ALL if one.name in wanted))

    @property
    def names(self) -> str:
        """As `named` reads them."""
        return ",".join(one.name for one in self.dialects) or NONE

    def at(self, path: str) -> Dialect | None:
        """Whose errors a request to this path expects; None: it is of the native protocol."""
        if path == HEALTH and self.dialects:
            return self.dialects[0]
        return next((one for one in self.dialects if _has(one, path)), None)

    def missing_at(self, path: str) -> Dialect | None:
        """A drop-in API that has this path, and is switched off; None where `at` finds one."""
        if self.at(path) is not None:
            return None
        if path == HEALTH:
            return _ALL[0]
        return next((one for one in _ALL if _has(one, path)), None)

    def advice(self, missing: Dialect) -> str:
        """How an API that is switched off is switched on, beside those that are not."""
        spoken = {one.name for one in (*self.dialects, missing)}
        names = ",".join(one.name for one in _ALL if one.name in spoken)
        return f"{missing.name} is switched off here: start the host with --api {names}"

    def check(self, path: str, body: Body) -> None:
        """Raise InputError where a body is only of an API that has this path and is switched off."""
        if any(one.is_meant(body) for one in self.dialects if path in one.paths):
            return
        spoken = {one.name for one in self.dialects}
        for one in _ALL:
            if one.name not in spoken and path in one.paths and one.is_meant(body):
                raise InputError(
                    f"a body with {one.told_by} is for another API: {self.advice(one)}"
                )


def _has(dialect: Dialect, path: str) -> bool:
    places: Sequence[str] = (*dialect.paths, *dialect.other_paths)
    return any(path == place or path.startswith(f"{place}/") for place in places)
