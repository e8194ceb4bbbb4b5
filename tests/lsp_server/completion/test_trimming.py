"""Where a completion leaves the cursor's block, in tables: document, completion, what is shown."""

import pytest

from engine.host.protocol import Position
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import Processed, process
from lsp_server.completion.trimming import in_scope
from lsp_server.prompt.place import Scope
from lsp_server.reasons import Reason


def around(document: str, language: str, scope: Scope = Scope.SEVERAL) -> CursorContext:
    before, _, after = document.partition("|")
    position = Position(before.count("\n"), len(before.rpartition("\n")[2]))
    lines = (before + after).split("\n")
    return CursorContext.of(lines, position, scope=scope, language_id=language)


def completed(document: str, text: str, language: str = "python") -> Processed:
    return process(text, around(document, language))


BODY = "def f(s):\n    |\n\n\nprint(f(1))\n"
METHOD = "class A:\n    def f(self):\n        |\n\n    def z(self):\n        pass\n\n\nA()\n"
IN_CLASS = "class A:\n    x = 1\n    |\n\n\ndef z():\n    pass\n"
BETWEEN = "def a():\n    return 1\n\n\n|\n\n\ndef z():\n    return 9\n"
BETWEEN_METHODS = (
    "class A:\n    def a(self):\n        pass\n\n|\n\n    def z(self):\n        pass\n"
)

PYTHON = [
    pytest.param(BODY, "return 1\ndef x(s):\n    return s", "return 1", id="another def"),
    pytest.param(BODY, "return 1\n\n\n@cached\ndef x(s):", "return 1", id="decorator"),
    pytest.param(BODY, "return 1\n\n\n# Prints it.\nprint(2)", "return 1", id="comment below"),
    pytest.param(BODY, "a = 1\n\n    return a", "a = 1\n\n    return a", id="blank line within"),
    pytest.param(BODY, "a(\n        1,\n    )\nb()", "a(\n        1,\n    )", id="own brackets"),
    pytest.param(METHOD, "a()\n        b()\n\n    def g(self):", "a()\n        b()", id="method"),
    pytest.param(METHOD, "a()\n\n\nclass B:\n    pass", "a()", id="class behind a method"),
    pytest.param(
        IN_CLASS,
        "y = 2\n\n    def g(self):\n        return 1\n\n\nclass B:\n    z = 3",
        "y = 2\n\n    def g(self):\n        return 1",
        id="class body",
    ),
    pytest.param(
        BETWEEN,
        "def b():\n    return 2\n\n\ndef c():\n    return 3",
        "def b():\n    return 2\n\n\ndef c():\n    return 3",
        id="column 0 between defs",
    ),
    pytest.param(
        BETWEEN_METHODS,
        "    def b(self):\n        a()\n\n    def c(self):\n        b()\n\n\nclass B:\n    pass",
        "    def b(self):\n        a()\n\n    def c(self):\n        b()",
        id="column 0 between methods",
    ),
    pytest.param("def f():\n\t|\nx = 1", "a()\n\tb()\ndef g():", "a()\n\tb()", id="tabs"),
    pytest.param(
        "class A:\n\tdef f(self):\n\t\t|\n\nA()",
        "a()\n\n\tdef g(self):\n\t\tb()",
        "a()",
        id="tabs 2",
    ),
]


@pytest.mark.parametrize(("document", "completion", "text"), PYTHON)
def test_the_text_ends_before_the_first_line_outside_of_the_cursors_block(
    document, completion, text
):
    assert completed(document, completion) == Processed(text)


OPEN_BODY = "function f() {\n  |\n"
JAVASCRIPT = [
    pytest.param(OPEN_BODY + "}\ng();", "a();\n}\nb();", "a();", id="closed below"),
    pytest.param(OPEN_BODY, "a();\n}\nb();", "a();\n}", id="not closed, nothing below"),
    pytest.param(
        OPEN_BODY + "\nfunction g() {\n}", "a();\n}\n\nb();", "a();\n}", id="not closed, code below"
    ),
    pytest.param(
        OPEN_BODY + "}", "if (a) {\n    b();\n  }\n}", "if (a) {\n    b();\n  }", id="inner block"
    ),
    pytest.param("g(() => {\n  |\ng();", "a();\n});\nb();", "a();\n});", id="two brackets"),
]


@pytest.mark.parametrize(("document", "completion", "text"), JAVASCRIPT)
def test_a_closing_line_stays_where_the_document_lacks_it(document, completion, text):
    assert completed(document, completion, "javascript") == Processed(text)


@pytest.mark.parametrize(
    "text", ['"""\n    one\n""".strip()', "<<~TEXT\n    one\nTEXT", "`\n    one\n`;"]
)
def test_the_line_that_ends_a_string_of_several_lines_belongs_to_it(text):
    assert in_scope(f"{text}\nz = 1", around("x = |\ny = 1\n", "ruby", Scope.DEEPER)) == text


@pytest.mark.parametrize(
    ("document", "text"),
    [
        ("RUN a && \\\n    b|\n", " && \\\n    c"),
        ("a: b \\\n      c|\n", "\n\tcc a.c"),
        ("#define A(x) \\\n  do { \\\n    x|\n", "; \\\n  } while (0)"),
    ],
)
def test_a_line_that_a_backslash_joins_to_the_one_above_belongs_to_it(document, text):
    assert in_scope(f"{text}\nlast", around(document, "shellscript", Scope.DEEPER)) == text


def test_preprocessor_lines_stand_at_column_0_in_any_block():
    text = "a();\n#ifdef B\n  b();\n#endif\n  c();"
    assert completed("void f() {\n  |\n}\n", text, "c") == Processed(text)


@pytest.mark.parametrize("text", ["\nclass B:\n    pass", "\n\ndef g():", "\n    def g(self):"])
def test_a_text_that_only_leaves_the_block_is_not_shown(text):
    document = "class A:\n    def f(self):\n        a()|\n\n\nA()\n"
    assert completed(document, text) == Processed(reason=Reason.LEFT_SCOPE)


def test_a_line_that_no_line_above_has_opened_a_block_for_is_in_none():
    assert completed("    a()|", "\n    b()\nc()") == Processed("\n    b()\nc()")


FENCES = [
    pytest.param(BODY, "return 1\n```", id="in a block"),
    pytest.param(BODY, "return 1\n    ```python\n    b()", id="indented, with its language"),
    pytest.param("a = 1\n|", "return 1\n```\n\nIt returns 1.", id="at column 0"),
]


@pytest.mark.parametrize(("document", "completion"), FENCES)
def test_a_fence_ends_the_text(document, completion):
    assert completed(document, completion) == Processed("return 1")


def test_a_text_that_begins_with_a_fence_is_not_shown():
    assert completed("a = 1|", "\n```\nmore").reason is Reason.LEFT_SCOPE


@pytest.mark.parametrize(
    ("document", "language"),
    [
        ('def f(a):\n    """Add.\n\n    Example:\n    |\n    """\n', "python"),
        ("/*\n    Example:\n    |\n*/\n", "javascript"),
    ],
)
def test_a_fence_is_text_in_a_docstring_and_in_a_comment(document, language):
    text = "```\n    f(1)\n    ```"
    assert completed(document, text, language) == Processed(text)


def test_a_fence_is_text_in_markdown():
    text = "```python\na = 1\n```"
    assert completed("Like this:\n\n|\n", text, "markdown") == Processed(text)
