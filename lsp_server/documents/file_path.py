"""The file that a URI names.

In a `file` address all behind the host is its path: editors that do not encode write `#` and `?` as
they stand in a name.
"""

import os
import posixpath
import re
from functools import lru_cache
from itertools import islice
from pathlib import Path
from urllib.parse import unquote

_MOST_KEPT = 2_048
_MOST_SIGNS = 8  # at which a path may end; each costs looks at the disk
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")


@lru_cache(maxsize=_MOST_KEPT)
def file_path(uri: str) -> Path | None:
    """Where an editor's file is on this machine; None where the URI names none."""
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
    """Each file that a URI may mean, whatever its scheme, the likeliest first.

    Some clients encode and some do not; a part behind any `#`, `?` or zero byte may belong to the
    name or not. A notebook's cells are in its file; a version from git, or one that is not saved yet, is
    as secret as the file.
    """
    scheme = _SCHEME.match(uri)
    name = _split(uri[scheme.end() :] if scheme else uri)[1]
    signs = islice(re.finditer("[#?]|%00", name), _MOST_SIGNS)
    parts = (*(name[: sign.start()] for sign in signs), name)
    spelled = (form for one in parts for form in (unquote(one, errors="surrogateescape"), one))
    named = (form.replace("\\", "/") for form in spelled)
    paths = (Path(posixpath.normpath("/" + form.lstrip("/"))) for form in named if form.strip("/"))
    own = file_path(uri)
    return tuple(dict.fromkeys((*(() if own is None else (own,)), *paths)))


def _split(rest: str) -> tuple[str, str]:
    """The host of an address without its scheme, and the path in there."""
    if not rest.startswith("//"):
        return "", rest
    host, slash, name = rest[2:].partition("/")
    return host, slash + name
