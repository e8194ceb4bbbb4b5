"""Grammars by LSP language name, imported on first use, and the names of their nodes."""

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

COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
_STRINGS = """
    string template_string regex string_literal raw_string_literal interpreted_string_literal
    character_literal char_literal rune_literal system_lib_string
"""
STRINGS = frozenset(_STRINGS.split())
CODE_IN_STRINGS = frozenset({"interpolation", "template_substitution", "string_interpolation"})
STRING_ENDS = (b'"', b"'", b"`", b"#", b"/", b">")
_LITERALS = """
    dictionary object object_pattern initializer_list array_initializer literal_value named_imports
    export_clause jsx_expression use_list field_initializer_list
"""
LITERALS = CODE_IN_STRINGS.union(_LITERALS.split())
BLOCK_HEADS = ("_definition", "_statement", "_clause", "_case", "_label")


@cache
def parser_for(language_id: str) -> Parser | None:
    """Return the parser for a language; None if there is no grammar or it cannot be loaded."""
    if language_id not in GRAMMARS:
        return None
    module, function = GRAMMARS[language_id]
    try:
        return Parser(Language(getattr(import_module(module), function)()))
    except (ImportError, ValueError):  # ValueError: a grammar of another ABI version
        return None
