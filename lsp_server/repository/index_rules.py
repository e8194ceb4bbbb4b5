"""What decides how an index looks: where any of it changes, files are read again."""

from functools import cache
from pathlib import Path
from zlib import crc32

from engine import names
from lsp_server import language_names
from lsp_server.privacy import named_secrets, secret_files, secret_kinds, secret_texts
from lsp_server.repository import definitions, source_text

_RULES = (
    named_secrets,
    secret_files,
    secret_kinds,
    secret_texts,
    definitions,
    language_names,
    source_text,
    names,
)


@cache
def rules_version(tables: str) -> int:
    """A number from 1 to 2**31 - 1 for these tables, filled by the rules as they are written now.

    Taken from the modules' texts, so that nobody has to remember to count on.
    """
    version = crc32(tables.encode())
    for module in _RULES:
        version = crc32(Path(str(module.__file__)).read_bytes(), version)
    return version % (2**31 - 1) + 1
