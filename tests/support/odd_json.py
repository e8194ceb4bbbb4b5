"""JSON that is nearly right: values of a schema as msgspec writes it, and distorted ones."""

from collections.abc import Mapping
from copy import deepcopy
from random import Random
from typing import Any

Json = Any
ODD: tuple[Json, ...] = (
    None, True, False, 0, -1, 2**31, -(2**31) - 1, 2**53, 2**63, 10**30, 10**400, 1.5, 1e308, -0.0, float("nan"), float("inf"),
    "", "\0", "\ud800", "\x1b]0;title\x07", "9" * 5_000, "1,2,3", "9999999999,2,3", "file://[::1",
    "file:///shop/%00", "untitled:x", "../../etc/passwd", "🎉", [], {}, [[]], [None] * 100, {"": {}},
)  # fmt: skip
_NAMES = ("", "uri", "jsonrpc", "method", "text", "range", "__class__", "x" * 999)
# Few names, so that messages of one run meet each other's buffers and clients.
_WORDS = ("one", "two", "file:///shop/a.py", "file:///shop/b.py", "", "x" * 300, "\x1b[2J", "\0")
_LINES = ("def total(items):", "    return ", "", "\t" * 9, "é🎉\u2028", "x" * 3_000, "\r", "\0")
_MOST_ITEMS = 3
_MOST_CHARS = 50
_NEAR = 5  # most numbers are positions and versions


def bent(chance: Random, value: Json, times: int = 1) -> Json:
    """Return a copy with `times` parts replaced by something odd, removed, or added."""
    for _ in range(times):
        value = _bent_once(chance, value)
    return value


def _bent_once(chance: Random, value: Json) -> Json:
    if not isinstance(value, dict | list) or not value or chance.random() < 0.1:
        return deepcopy(chance.choice(ODD))
    key: Any = chance.choice(list(value) if isinstance(value, dict) else range(len(value)))
    whole: Json = value.copy()
    change = chance.choice(("deeper", "deeper", "odd", "gone", "more"))
    if change == "gone":
        del whole[key]
    elif change == "more" and isinstance(whole, list):
        whole.append(deepcopy(chance.choice(ODD)))
    elif change == "more":
        whole[chance.choice(_NAMES)] = deepcopy(chance.choice(ODD))
    else:
        whole[key] = _bent_once(chance, value[key]) if change == "deeper" else chance.choice(ODD)
    return whole


def value_of(chance: Random, schema: Mapping[str, Json], schemas: Mapping[str, Json]) -> Json:
    """Return a value that `schema` allows; `schemas` holds those that it refers to."""
    if "$ref" in schema:
        return value_of(chance, schemas[schema["$ref"].rpartition("/")[2]], schemas)
    if "anyOf" in schema:
        return value_of(chance, chance.choice(schema["anyOf"]), schemas)
    if "enum" in schema:
        return chance.choice(schema["enum"])
    kind = schema.get("type")
    if kind == "object":
        required = schema.get("required", ())
        return {
            name: value_of(chance, one, schemas)
            for name, one in schema.get("properties", {}).items()
            if name in required or chance.random() < 0.5
        }
    if kind == "array":
        most = min(schema.get("maxItems", _MOST_ITEMS), _MOST_ITEMS)
        items = schema.get("items", {})
        return [value_of(chance, items, schemas) for _ in range(chance.randint(0, most))]
    return _scalar(chance, schema)


def _scalar(chance: Random, schema: Mapping[str, Json]) -> Json:
    match schema.get("type"):
        case "integer":
            least, most = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
            if chance.random() < 0.75:
                least, most = max(least, -_NEAR), min(most, _NEAR)
            return chance.randint(least, max(least, most))
        case "number":
            return chance.uniform(schema.get("minimum", -1e9), schema.get("maximum", 1e9))
        case "string":
            most = schema.get("maxLength", _MOST_CHARS)
            fit = [one for one in (*_WORDS, *_LINES) if len(one) <= most or most >= _MOST_CHARS]
            letters = map(chr, (chance.randrange(0x3000) for _ in range(chance.randrange(9))))
            return chance.choice((*fit, "".join(letters)[:most]))
        case "boolean":
            return chance.random() < 0.5
        case "null":
            return None
    return deepcopy(chance.choice(ODD))  # anything
