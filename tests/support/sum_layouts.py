"""In which layouts a kernel adds up: read off Triton's own form of it, before it becomes PTX.

Where numbers lie in a program's threads decides in which order `tl.sum` adds them. Of two numbers
there is one order alone.
"""

import re

_ALIAS = re.compile(r"^(#\w+) = (.*)$", re.MULTILINE)
_NAME = re.compile(r"#\w+")
_REDUCTION = re.compile(
    r'"tt\.reduce"\(.*?<\{axis = (\d+).*?\^bb0(.*?)tt\.reduce\.return.*?\}\) : \(tensor<(.*?)>\) ->',
    re.DOTALL,
)


def sum_layouts(ttgir: str) -> set[str]:
    """Of each sum over more than two floats its axis, its shape and its layout in full."""
    aliases, found = dict(_ALIAS.findall(ttgir)), set[str]()
    for axis, body, summed in _REDUCTION.findall(ttgir):
        shape = summed.partition(",")[0].split("x")
        if "arith.addf" in body and shape[int(axis)] != "2":
            in_full = _NAME.sub(lambda name: aliases.get(name.group(), name.group()), summed)
            found.add(f"over {axis} of {in_full}")
    return found
