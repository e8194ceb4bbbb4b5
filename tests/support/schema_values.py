"""Values of a JSON schema as msgspec writes it, and values that are nearly of it, for hypothesis."""

from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

Json = Any
# So few that messages of one run meet each other's buffers and clients.
_WORDS = ("one", "two", "file:///shop/a.py", "file:///shop/b.py", "", "x" * 300, "\x1b[2J", "\0")
_LINES = ("def total(items):", "    return ", "", "\t" * 9, "é🎉\u2028", "x" * 3_000, "\r", "\0")
_ODD: tuple[Json, ...] = (
    *(None, True, -1, 2**31, 2**53, 2**63, 10**30, 1.5, 1e308, "", "\ud83d", "\0", [], {}, [[]]),
    *({"": 0}, [None], "9" * 5_000, "1,2,3", "9999999999,2,3"),
)
_LEAST, _MOST = -5, 5  # most numbers are positions and versions


def values(schema: Mapping[str, Json], schemas: Mapping[str, Json]) -> st.SearchStrategy[Json]:
    """Values that `schema` allows; `schemas` are those that it names."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return st.deferred(lambda: values(schemas[name], schemas))
    if "anyOf" in schema:
        return st.one_of([values(one, schemas) for one in schema["anyOf"]])
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "type" not in schema:
        return st.sampled_from(_ODD)  # anything
    kind = schema["type"]
    if kind == "object":
        return _objects(schema, schemas)
    if kind == "array":
        most = min(schema.get("maxItems", 3), 3)
        return st.lists(values(schema.get("items", {}), schemas), max_size=most)
    return _SCALARS[kind](schema)


def bent(value: Json) -> st.SearchStrategy[Json]:
    """`value` with one part that is something else, missing, or one too many."""
    return st.composite(_bent)(value)


def _bent(draw: st.DrawFn, value: Json) -> Json:
    if isinstance(value, dict) and value:
        key = draw(st.sampled_from(sorted(value)))
        change = draw(st.sampled_from(["deeper", "deeper", "odd", "gone", "more"]))
        rest = {name: one for name, one in value.items() if name != key}
        if change == "gone":
            return rest
        if change == "more":
            return {**value, draw(st.sampled_from(["uri", "x", ""])): draw(st.sampled_from(_ODD))}
        inner = _bent(draw, value[key]) if change == "deeper" else draw(st.sampled_from(_ODD))
        return {**rest, key: inner}
    if isinstance(value, list) and value:
        place = draw(st.integers(0, len(value) - 1))
        return [*value[:place], _bent(draw, value[place]), *value[place + 1 :]]
    return draw(st.sampled_from(_ODD))


def _objects(schema: Mapping[str, Json], schemas: Mapping[str, Json]) -> st.SearchStrategy[Json]:
    fields = {name: values(one, schemas) for name, one in schema.get("properties", {}).items()}
    required = {name: one for name, one in fields.items() if name in schema.get("required", ())}
    optional = {name: one for name, one in fields.items() if name not in required}
    return st.fixed_dictionaries(required, optional=optional)


def _integers(schema: Mapping[str, Json]) -> st.SearchStrategy[Json]:
    least, most = schema.get("minimum", -(2**63)), schema.get("maximum", 2**63 - 1)
    near = st.integers(max(least, _LEAST), min(most, _MOST))
    return near | near | near | st.integers(least, most)


def _numbers(schema: Mapping[str, Json]) -> st.SearchStrategy[Json]:
    return st.floats(schema.get("minimum", -1e9), schema.get("maximum", 1e9))


def _strings(schema: Mapping[str, Json]) -> st.SearchStrategy[Json]:
    most = min(schema.get("maxLength", 50), 50)
    known = st.sampled_from([one for one in (*_WORDS, *_LINES) if len(one) <= most or most == 50])
    return known | known | st.text(max_size=most)


_SCALARS = {
    "integer": _integers,
    "number": _numbers,
    "string": _strings,
    "boolean": lambda _: st.booleans(),
    "null": lambda _: st.none(),
}
