"""The file that a URI names. Its path may hold `#` and `?`, which some editors do not encode."""

import os
import posixpath
import re
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

_MOST_KEPT = 2_048  # URIs whose paths are cached, more than an editor has open
_MOST_SIGNS = 8  # signs at which a path may end; each costs disk access
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@lru_cache(maxsize=_MOST_KEPT)
def file_path(uri: str) -> Path | None:
    """Return the path of an editor's file; None if the URI names no file."""
    scheme, _, rest = uri.partition(":")
    if scheme.lower() != "file":
        return None
    host, name = _split(rest)
    name = unquote(name, errors="surrogateescape")
    if host not in {"", "localhost"}:
        name = f"//{host}{name}"
    return Path(os.path.normpath(name)) if name.strip("/") else None


@lru_cache(maxsize=_MOST_KEPT)
def possible_paths(uri: str) -> tuple[Path, ...]:
    """Return the files that a URI may mean, likeliest first: its text is as secret as theirs."""
    scheme = _SCHEME.match(uri)
    name = _split(uri[scheme.end() :] if scheme else uri)[1]
    # Some clients do not encode: what follows a `#`, `?` or zero byte may belong to the name.
    signs = islice(re.finditer("[#?]|%00", name), _MOST_SIGNS)
    parts = (*(name[: sign.start()] for sign in signs), name)
    spelled = (form for one in parts for form in (unquote(one, errors="surrogateescape"), one))
    named = (form.replace("\\", "/") for form in spelled)
    paths = (Path(posixpath.normpath("/" + form.lstrip("/"))) for form in named if form.strip("/"))
    own = file_path(uri)
    return tuple(dict.fromkeys((*(() if own is None else (own,)), *paths)))


def _split(rest: str) -> tuple[str, str]:
    if not rest.startswith("//"):
        return "", rest
    host, slash, name = rest[2:].partition("/")
    return host, slash + name
