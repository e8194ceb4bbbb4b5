"""Languages that the index reads, by file names, and which of them are read together."""

from pathlib import PurePosixPath

from lsp_server.language_names import language_of_file
from lsp_server.prompt.grammars import GRAMMARS

_FAMILIES = {
    "javascriptreact": "javascript",
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "c": "cpp",
}


def language_of(path: str) -> str:
    """Return the LSP name of a file's language; "" where none with a grammar has this name."""
    language = language_of_file(path)
    return language if language in GRAMMARS else ""


def family_of(path: str) -> str:
    """Return the name that is equal for files which use each other; without a grammar the ending."""
    language = language_of(path)
    return _FAMILIES.get(language, language) or PurePosixPath(path).suffix.lower()
