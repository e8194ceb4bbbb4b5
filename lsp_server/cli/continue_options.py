"""Options of Continue's completion, each as a setting of foregram, or with why there is none."""

from typing import NamedTuple

import msgspec

from engine.errors import ConfigurationError
from lsp_server.cli.settings_file import toml_line
from lsp_server.setting_layers import Layer, converted
from lsp_server.settings import Settings

_SETTINGS = {
    "debounceDelay": "debounce_ms",
    "disable": "enable",
    "disableInFiles": "disabled_globs",
    "keepAlive": "idle_exit_s",
    "maxPromptTokens": "prompt_tokens",
    "maxTokens": "max_tokens",
    "multilineCompletions": "lines",
    "temperature": "temperature",
}
_VALUES: dict[str, dict[object, object]] = {  # where the two spell a value in different ways
    "disable": {True: False, False: True},
    "multilineCompletions": {"always": "multi", "never": "single"},
}
_PROMPT = "each model gets the prompt that it was trained with"
_CHOICE = "foregram chooses what the model reads; the setting `repository` limits it"
_REASONS = {
    "contextLength": "it is read from the model",
    "modelTimeout": "a suggestion appears once the model is sure of its beginning, and grows",
    "onlyMyCode": "installed packages are never read",
    "stop": "a suggestion ends where the model becomes unsure",
    "transform": "a suggestion keeps valid code valid",
    "useCache": "suggestions are always remembered",
    **dict.fromkeys(("promptTemplates", "template"), _PROMPT),
    **dict.fromkeys(("maxSuffixPercentage", "prefixPercentage", "useImports"), _CHOICE),
    **dict.fromkeys(("useRecentlyEdited", "useRecentlyOpened"), _CHOICE),
}
_FIELDS = {field.name: field for field in msgspec.structs.fields(Settings)}


class Part(NamedTuple):
    """A part of Continue's configuration, and what becomes of it."""

    key: str
    told: str
    setting: tuple[tuple[str, object], ...] = ()  # its name and value, if it becomes one

    def __str__(self) -> str:
        return f"  {self.key:<24} {self.told}\n"


def not_taken(key: str, why: str) -> Part:
    """Return a part that becomes no setting."""
    return Part(key, f"not taken: {why}")


def taken(key: str, name: str, value: object, note: str = "") -> Part:
    """Return a part that becomes the setting `name`."""
    return Part(key, f"{toml_line(name, value).strip()}{note}", ((name, value),))


def option(key: str, given: object) -> Part:
    """Return what becomes of an option."""
    if (name := _SETTINGS.get(key)) is None:
        return not_taken(key, _REASONS.get(key, "foregram has no such setting"))
    others = _VALUES.get(key, {})
    value = others.get(given, given) if isinstance(given, bool | str) else given
    field = _FIELDS[name]
    try:
        is_default = converted(name, value, field, Layer(key, {})) == field.default
    except ConfigurationError as error:
        return not_taken(key, str(error))
    if is_default:
        return Part(key, f"{toml_line(name, value).strip()}, the default")
    return taken(key, name, value)
