"""What the grammars call the nodes that matter here; their names differ little."""

COMMENTS = frozenset({"comment", "line_comment", "block_comment"})
STRINGS = frozenset(
    {
        "string",
        "template_string",
        "regex",
        "string_literal",
        "raw_string_literal",
        "interpreted_string_literal",
        "character_literal",
        "char_literal",
        "rune_literal",
        "system_lib_string",
    }
)
CODE_IN_STRINGS = frozenset({"interpolation", "template_substitution", "string_interpolation"})
STRING_ENDS = (b'"', b"'", b"`", b"#", b"/", b">")
LITERALS = frozenset(
    {
        "dictionary",
        "object",
        "object_pattern",
        "initializer_list",
        "array_initializer",
        "literal_value",
        "named_imports",
        "export_clause",
        "jsx_expression",
        "use_list",
        "field_initializer_list",
        *CODE_IN_STRINGS,
    }
)
BLOCK_HEADS = ("_definition", "_statement", "_clause", "_case", "_label")
