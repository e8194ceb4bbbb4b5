"""Where a completion leaves the cursor's block, in tables: document, completion, what is shown."""

import pytest

from lsp_server.completion.suggestions import Suggestion
from lsp_server.completion.trimming import in_scope
from lsp_server.prompt.place import Scope
from lsp_server.reasons import Reason
from tests.support.code_places import around, processed


def completed(document: str, text: str, language: str = "python") -> Suggestion | Reason:
    return processed(text, around(document, language))


BODY = "def f(s):\n    |\n\n\nprint(f(1))\n"
METHOD = "class A:\n    def f(self):\n        |\n\n    def z(self):\n        pass\n\n\nA()\n"
IN_CLASS = "class A:\n    x = 1\n    |\n\n\ndef z():\n    pass\n"
BETWEEN = "def a():\n    return 1\n\n\n|\n\n\ndef z():\n    return 9\n"
BETWEEN_METHODS = (
    "class A:\n    def a(self):\n        pass\n\n|\n\n    def z(self):\n        pass\n"
)

TABS = "class A:\n\tdef f(self):\n\t\t|\n\nA()"
TWO = "def b():\n    return 2\n\n\ndef c():\n    return 3"
METHODS = "    def b(self):\n        a()\n\n    def c(self):\n        b()"
PYTHON = [
    (BODY, "return 1\ndef x(s):\n    return s", "return 1"),
    (BODY, "return 1\n\n\n@cached\ndef x(s):", "return 1"),
    (BODY, "return 1\n\n\n# Prints it.\nprint(2)", "return 1"),
    (BODY, "a = 1\n\n    return a", "a = 1\n\n    return a"),
    (BODY, "a(\n        1,\n    )\nb()", "a(\n        1,\n    )"),
    (METHOD, "a()\n        b()\n\n    def g(self):", "a()\n        b()"),
    (METHOD, "a()\n\n\nclass B:\n    pass", "a()"),
    (
        IN_CLASS,
        "y = 2\n\n    def g(self):\n        b()\n\n\nclass B:\n    z = 3",
        "y = 2\n\n    def g(self):\n        b()",
    ),
    (BETWEEN, TWO, TWO),
    (BETWEEN_METHODS, f"{METHODS}\n\n\nclass B:\n    pass", METHODS),
    ("def f():\n\t|\nx = 1", "a()\n\tb()\ndef g():", "a()\n\tb()"),
    (TABS, "a()\n\n\tdef g(self):\n\t\tb()", "a()"),
    ("    a()|", "\n    b()\nc()", "\n    b()\nc()"),  # no line above has opened a block
]


@pytest.mark.parametrize(("document", "completion", "text"), PYTHON)
def test_the_text_ends_before_the_first_line_outside_of_the_cursors_block(
    document, completion, text
):
    assert completed(document, completion) == Suggestion(text)


OPEN_BODY = "function f() {\n  |\n"
OPEN_BEFORE_CODE = OPEN_BODY + "\nfunction g() {\n}"


@pytest.mark.parametrize(
    ("document", "completion", "text"),
    [
        (OPEN_BODY + "}\ng();", "a();\n}\nb();", "a();"),
        (OPEN_BODY, "a();\n}\nb();", "a();\n}"),
        (OPEN_BEFORE_CODE, "a();\n}\n\nb();", "a();\n}"),
        (OPEN_BODY + "}", "if (a) {\n    b();\n  }\n}", "if (a) {\n    b();\n  }"),
        ("g(() => {\n  |\ng();", "a();\n});\nb();", "a();\n});"),
    ],
)
def test_a_closing_line_stays_where_the_document_lacks_it(document, completion, text):
    assert completed(document, completion, "javascript") == Suggestion(text)


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
    assert completed("void f() {\n  |\n}\n", text, "c") == Suggestion(text)


@pytest.mark.parametrize("text", ["\nclass B:\n    pass", "\n\ndef g():", "\n    def g(self):"])
def test_a_text_that_only_leaves_the_block_is_not_shown(text):
    document = "class A:\n    def f(self):\n        a()|\n\n\nA()\n"
    assert completed(document, text) is Reason.LEFT_SCOPE


@pytest.mark.parametrize(
    ("document", "completion"),
    [
        (BODY, "return 1\n```"),
        (BODY, "return 1\n    ```python\n    b()"),
        ("a = 1\n|", "return 1\n```\n\nIt returns 1."),
    ],
)
def test_a_fence_ends_the_text(document, completion):
    assert completed(document, completion) == Suggestion("return 1")


def test_a_text_that_begins_with_a_fence_is_not_shown():
    assert completed("a = 1|", "\n```\nmore") is Reason.LEFT_SCOPE


@pytest.mark.parametrize(
    ("document", "language"),
    [
        ('def f(a):\n    """Add.\n\n    Example:\n    |\n    """\n', "python"),
        ("/*\n    Example:\n    |\n*/\n", "javascript"),
        ("- Like this:\n\n    |\n", "markdown"),
    ],
)
def test_a_fence_is_text_in_a_docstring_in_a_comment_and_in_prose(document, language):
    text = "```\n    f(1)\n    ```"
    assert completed(document, text, language) == Suggestion(text)
