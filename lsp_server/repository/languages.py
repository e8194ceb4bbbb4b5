"""Languages by the endings of file names, and which of them are read together."""

from pathlib import PurePosixPath

_BY_ENDING = {
    ".py": "python",
    ".pyi": "python",
    ".js": "javascript",
    ".jsx": "javascriptreact",
    ".cjs": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".cts": "typescript",
    ".mts": "typescript",
    ".tsx": "typescriptreact",
    ".java": "java",
    ".go": "go",
    ".rs": "rust",
    ".c": "c",
    ".h": "cpp",
    ".cc": "cpp",
    ".cpp": "cpp",
    ".cxx": "cpp",
    ".hh": "cpp",
    ".hpp": "cpp",
}
_FAMILIES = {
    "javascriptreact": "javascript",
    "typescript": "javascript",
    "typescriptreact": "javascript",
    "c": "cpp",
}


def language_of(path: str) -> str:
    """Return the LSP name of a file's language; "" where none with a grammar has this ending."""
    return _BY_ENDING.get(PurePosixPath(path).suffix.lower(), "")


def ending_of(language: str) -> str:
    """Return how names of files in a language end; "" where none with a grammar is of it."""
    return next((ending for ending, one in _BY_ENDING.items() if one == language), "")


def family_of(path: str) -> str:
    """Return the name that is equal for files which use each other; without a grammar the ending."""
    language = language_of(path)
    return _FAMILIES.get(language, language) or PurePosixPath(path).suffix.lower()
