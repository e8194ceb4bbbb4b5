"""Grammars by the language's LSP name, each imported when a document first asks for it."""

from functools import cache
from importlib import import_module

from tree_sitter import Language, Parser

GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "javascriptreact": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "typescriptreact": ("tree_sitter_typescript", "language_tsx"),
    "java": ("tree_sitter_java", "language"),
    "go": ("tree_sitter_go", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}


@cache
def parser_for(language_id: str) -> Parser | None:
    """The parser for a language; None if there is no grammar or it cannot be loaded."""
    if language_id not in GRAMMARS:
        return None
    module, function = GRAMMARS[language_id]
    try:
        return Parser(Language(getattr(import_module(module), function)()))
    except (ImportError, ValueError):  # ValueError: a grammar of another ABI version
        return None
