"""From what a model wrote to what is shown, in tables: document, completion, result."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.protocol import Position
from engine.text.brackets import balance
from engine.text.lines import squeeze
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.postprocess import process
from lsp_server.completion.syntax_judge import judge_of
from lsp_server.prompt.place import Scope
from lsp_server.reasons import Reason
from tests.support.code_places import around, processed


def shown(document: str, text: str, scope: Scope = Scope.SEVERAL) -> tuple[str, int]:
    result = processed(text, around(document, scope=scope))
    assert not isinstance(result, Reason), result
    return result.text, result.replaced_chars_after_cursor


def judged(document: str, language_id: str, text: str) -> str | Reason:
    """What the judge of a language without a grammar leaves of a text."""
    context = around(document, language_id)
    made = process(text, judge_of(None, context, context.before))
    return made if isinstance(made, Reason) else made.text


@pytest.mark.parametrize(
    ("language_id", "document", "text", "left"),
    [
        ("json", '{\n  "a": 1,\n  |\n}\n', '"b": 2,', '"b": 2'),
        ("json", '{\n  "a": 1,\n  |\n  "c": 3\n}\n', '"b": 2,', '"b": 2,'),
        ("json", '{\n  "a": 1,\n  |\n}\n', '"b":', Reason.BREAKS_CODE),
        ("json", "{ no json at all\n  |\n}\n", '"b": 2,', '"b": 2,'),
        ("toml", "[project]\n|\n", "requires", Reason.BREAKS_CODE),
        ("toml", "[project]\nname = |\n", '"foregram"', '"foregram"'),
        ("toml", '[project]\nname = "|\n', "fore", Reason.BREAKS_CODE),
        ("html", "<p>\n  |\n</p>\n", '<input type="text" name=', Reason.BREAKS_CODE),
        ("html", "<form>\n  <i|\n</form>\n", 'nput name="a"', Reason.BREAKS_CODE),
        ("html", "<form>\n  <i|\n</form>\n", 'nput name="a">', 'nput name="a">'),
        ("kotlin", "  require(k|\n", "nown.quantity", Reason.BREAKS_CODE),
        ("kotlin", "  copy(n = k|\n} else {\n", "nown", Reason.BREAKS_CODE),
        ("kotlin", "  require(k|\n", "nown,", "nown,"),
        ("kotlin", "  require(k|\n", "nown)", "nown)"),
        ("kotlin", "  require(k|\n  )\n", "nown", "nown"),
        ("kotlin", "  if (a|\n    && b) {\n", " > c", " > c"),
        ("css", "a { color: |\n}\n", "red", "red"),
        ("json", '{"a": |\n}\n', "true", "true"),
        ("toml", "x = [1, |\n]\n", "2", "2"),
        ("vue", "for (let i = 0; i|\n", "<n; i++) {", "<n; i++) {"),
        ("vue", '<|\n  :a="1"\n/>\n', "Shown", "Shown"),
        ("shellscript", 'mkdir -p "|\n', "$folder", Reason.BREAKS_CODE),
        ("shellscript", 'mkdir -p "|\n', '$folder"', '$folder"'),
        ("haskell", "f' x = |\n", "g' (x", Reason.BREAKS_CODE),
        ("haskell", "f' x = |\n", "g' (x `div` 'a')", "g' (x `div` 'a')"),
        ("clojure", "(defn f [x]\n  |)\n", "(+ x '(1", Reason.BREAKS_CODE),
        ("clojure", "(defn f [x]\n  |)\n", '(str x "a)', Reason.BREAKS_CODE),
        ("ocaml", 'let x = "a|\n', 'b"', 'b"'),
        # A quote above that needs no partner hides nothing.
        ("yaml", 'size: 5" wide\n|\n', "b: 1\nname: 'x'", "b: 1\nname: 'x'"),
        ("dockerfile", "FROM python\n|\n", 'CMD ["python", "', Reason.BREAKS_CODE),
        ("dockerfile", "FROM python\nRUN |\nUSER a\n", "apt-get update && \\", Reason.BREAKS_CODE),
        ("dockerfile", "FROM python\nRUN |\n\nUSER a\n", "apt-get update \\", "apt-get update \\"),
    ],
)
def test_without_a_grammar_a_text_is_judged_too(language_id, document, text, left):
    assert judged(document, language_id, text) == left


@pytest.mark.parametrize(
    ("language_id", "begun", "end"),
    [
        ("css", "/* one\n", " * two */"),
        ("html", "<!--\n", "  one -->"),
        ("sql", "/* one\n", "   two */"),
        ("kotlin", 'val text = """\n', '    one\n    """'),
        ("dart", "var text = '''\n", "one''';"),
        ("shellscript", 'echo "one\n', 'two"'),
        ("sql", "INSERT INTO a VALUES ('one\n", "two');"),
        ("shellscript", "cat <<EOF\n", "one\nEOF"),
        ("ruby", "text = <<~TEXT\n", "  one\nTEXT"),
    ],
)
def test_without_a_grammar_what_spans_lines_is_closed_or_not_begun(language_id, begun, end):
    """Else all that stands below would be of the comment or of the string."""
    document = "\n|\n\nlast\n"
    assert judged(document, language_id, f"{begun}one") is Reason.BREAKS_CODE
    assert judged(document, language_id, begun + end) == begun + end


def test_nothing_breaks_code_inside_a_comment():
    context = CursorContext.of(["/// the index of ", "x = 1"], Position(0, 17), is_in_comment=True)
    assert processed("a section (see", context).text == "a section (see"


# Document, completion, text shown, characters behind the cursor that it replaces.
SAME_LINE = [
    ("f(|)", "a)", "a)", 1),
    ("f(g(|)", "a)", "a)", 0),
    ("f(|):", "a, b):\n    return a", "a, b):\n    return a", 2),
    ("f(|) -> int:", "a: int) -> int:", "a: int) -> int:", 9),
    ("f(|) -> int:", "a: int)", "a: int)", 1),
    ("x = |value + 1", "old_value + 1", "old_value + 1", 9),
    ("x = |value + 1", "old_value", "old_value", 5),
    ("x = |value + 1", "2 * ", "2 * ", 0),
    ("x = |a+b", "c * a + b", "c * a + b", 3),
    ("x = foo|, b)", "(a,", "(a,", 1),
    ("return a|  ", " + b", " + b", 0),
    ("if |:", "x == 1:", "x == 1:", 1),
    ("f(|🙂)", "'é', 🙂)", "'é', 🙂)", 2),
    ("print(area(3|))  # tail", ", 4))  # head", ", 4))", 2),
    ("f(|)  # old", "a)  # old", "a)  # old", 8),
    ('"""See | for more."""', "issue #5 and #7", "issue #5 and #7", 0),
    ("url: |  # prod", "https://a/b#frag", "https://a/b#frag", 0),
    ("f()  # what | is", "it  # really", "it  # really", 0),
]


@pytest.mark.parametrize(("document", "completion", "text", "replaced"), SAME_LINE)
def test_what_the_text_repeats_of_the_line_is_replaced(document, completion, text, replaced):
    assert shown(document, completion) == (text, replaced)


LINES = [
    ("def f():\n    |\n    return x", "x = 1\n    return x", "x = 1"),
    ("def f():\n    |\n    return x", "x = 1\n    return x\n", "x = 1"),
    ("def f():\n    |\n    return x", "x = 1\n\n    return  x", "x = 1"),
    ("function f() {|\n}", "\n  return 1;\n}", "\n  return 1;"),
    ("class A {\n  f() {|\n}", "\n    return 1;\n  }", "\n    return 1;\n  }"),
    (
        "def f():\n    |\n    y = value\n    return y",
        "x = 1\n    y = value\n    return y\n    z = 2",
        "x = 1",
    ),
    ("f(\n    a,\n    |\n)", "b\n)", "b"),
    ("x = f(|\ny = 2", "a)", "a)"),  # a closing bracket that is needed stays
    ("x = f(|\n", "a, (b))", "a, (b))"),
    ("x = [1, 2|\n]", ", 3]", ", 3"),
    ("f(\n    a,\n    |\n)", "b,\n    c,\n)\nbar()", "b,\n    c,"),
    ("f(\n    |\n)", "g(\n        b,\n    ),", "g(\n        b,\n    ),"),
    ("if a:\n    |\nelse:\n    pass", "b()\nelse:\n    pass", "b()"),
]


@pytest.mark.parametrize(("document", "completion", "text"), LINES)
def test_what_the_text_repeats_of_the_lines_below_is_left_out(document, completion, text):
    assert shown(document, completion) == (text, 0)


SCOPE = [
    (Scope.ONE_LINE, "x = |", "1\ny = 2", "1"),
    (Scope.ONE_LINE, "x = 1|", "\ny = 2\nz = 3", "\ny = 2"),
    (Scope.DEEPER, "for a in |", "b:\n    go(a)\nx = 1", "b:\n    go(a)"),
    (Scope.DEEPER, "x = |", "f(\n    1,\n)\ny = 2", "f(\n    1,\n)"),
    (Scope.DEEPER, "x = |", "1\ny = 2", "1"),
    (Scope.DEEPER, "x = {|", '\n    "a": 1,\n    "b": 2,\n}\ny', '\n    "a": 1,\n    "b": 2,\n}'),
    (Scope.DEEPER, "    a()|", "\n    b()\n    c()", "\n    b()"),
    (Scope.DEEPER, "    a()|", "\nif b:\n    c()\nd()", "\nif b:\n    c()"),
    (Scope.SEVERAL, "x = |", "1\ny = 2", "1\ny = 2"),
    (Scope.SEVERAL, "def f():\n    |\n\n\nz = 1", "a()\n\n\ndef g():\n    b()", "a()"),
    (Scope.SEVERAL, "def f():\n    |\n\n\nz = 1", "a()\n    b()", "a()\n    b()"),
    (Scope.SEVERAL, "class A:\n    def f(self):\n        |\n    x = 1", "a()\ny = 2", "a()"),
    (Scope.SEVERAL, "function f() {\n  |", "a();\n}\nb();", "a();\n}"),
]


@pytest.mark.parametrize(("scope", "document", "completion", "text"), SCOPE)
def test_the_text_keeps_to_its_scope_and_block(scope, document, completion, text):
    assert shown(document, completion, scope) == (text, 0)


INDENTATION = [
    ("def f():\n    |", "    return 1", "return 1"),
    ("def f():\n  x = 1\n|", "  return 1", "  return 1"),
    ("if a:\n    b()\nif c:\n  |", "  d()", "  d()"),
    ("if a:\n\tb()\nif c|", ":\n    d()", ":\n\td()"),
    ("if a:\n  b()\nif c|", ":\n    if d:\n        e()", ":\n  if d:\n    e()"),
    ("if a:\n    b()\nif c|", ":\n  if d:\n    e()", ":\n    if d:\n        e()"),
    ("if a:\n    b()\nif c|", ":\n\td()", ":\n    d()"),
    ("if a:\n  b()\nx = f(1,|", "\n      2)", "\n      2)"),  # aligned, not indented
]


@pytest.mark.parametrize(("document", "completion", "text"), INDENTATION)
def test_indentation_is_the_editors_and_the_documents(document, completion, text):
    assert shown(document, completion) == (text, 0)


REASONS = [
    ("x = |", "", Reason.MODEL_SAID_NOTHING),
    ("x = |", " \n  ", Reason.BLANK),
    ("return total(a|", "return total(a", Reason.REPEATS_ITSELF),
    ("f(a|\n", ")", Reason.BRACKET_ONLY),
    ("f() {\n  |\n", "});", Reason.BRACKET_ONLY),
    ("f(|a)", "a)", Reason.ONLY_REPEATS_REST),
    ("|\nreturn value", "return value", Reason.ONLY_REPEATS_NEXT_LINES),
    ("ret|\nreturn value", "urn value", Reason.ONLY_REPEATS_NEXT_LINES),
    ("x = 1|\ny = value\nz", "\ny = value", Reason.ONLY_REPEATS_NEXT_LINES),
    ("x = |", "-" * 300, Reason.REPEATS_ITSELF),
]


@pytest.mark.parametrize(("document", "completion", "reason"), REASONS)
def test_an_empty_answer_has_its_reason(document, completion, reason):
    assert processed(completion, around(document)) is reason


def test_what_is_a_control_token_of_some_model_is_text():
    """The host ends a text where its own model says one."""
    text = 'PARTS = ["<|fim_prefix|>", "<EOT>"]'
    assert processed(text, around("|")).text == text


@pytest.mark.parametrize(
    ("document", "completion", "text"),
    [
        ("x = foo|", "x = foobar", "bar"),
        ("    return a + |\n", "    return a + b", "b"),
        ("self.|", "self.total = 1", "total = 1"),
        ("const |", "const shop = 1;", "shop = 1;"),
        ("foo|", "foobar(1)", "bar(1)"),
        ("@app|", "@app.route(a)", ".route(a)"),
        ("x = $fo|", "x = $foo + 1", "o + 1"),
        ("#include <std|", "#include <stdio.h>", "io.h>"),
        ("- na|", "- name: a", "me: a"),
        ("x  =  a + |", "x = a + b", "b"),
        ("    a, -b, |", "a, -b, c", "a, -b, c"),
        ("x = [\n    None, |", "None, None]", "None, None]"),  # items may be equal
        ("ha|", "haha", "haha"),
        ("0, 1, |", "0, 1, 0", "0, 1, 0"),
    ],
)
def test_the_cursors_line_is_not_said_again(document, completion, text):
    assert shown(document, completion) == (text, 0)


def test_one_line_before_the_rest_of_a_line_is_no_line_end():
    result = processed("\nb = 2", around("a = |value", scope=Scope.ONE_LINE))
    assert result is Reason.LEFT_SCOPE


def test_line_ends_are_plain_whatever_the_model_writes():
    assert shown("x = |", "1\r\ny = 2\rz = 3") == ("1\ny = 2\nz = 3", 0)


def test_lines_that_come_again_and_again_are_shown_once():
    assert shown("|", "a = 1\n" + "b = 2\n" * 5) == ("a = 1\nb = 2", 0)
    assert shown("|", "a = 1\nb = 2\n" * 3) == ("a = 1\nb = 2", 0)
    assert shown("|", "0,\n0,\n0,") == ("0,\n0,\n0,", 0)


LINE = st.text(st.sampled_from("ab1 .,+=_é🙂(){}[]\"':"), max_size=12)
WORDS = st.text(st.sampled_from("ab1 .+=_é🙂"), min_size=2, max_size=12)


@given(before=LINE, head=WORDS, rest=WORDS, below=LINE)
def test_the_rest_of_the_line_is_never_doubled(before, head, rest, below):
    if not rest.strip() or (not before.strip() and head[0] == " "):  # the line's indentation
        return
    if before.strip() and squeeze(head + rest).startswith(squeeze(before)):  # its beginning again
        return
    result = processed(head + rest, around(f"{before}|{rest}\n{below}".replace("||", "|")))
    if not isinstance(result, Reason):
        line = before + result.text + rest[result.replaced_chars_after_cursor :]
        assert line.rstrip() == (before + head + rest).rstrip()


@given(before=LINE, text=LINE, rest=LINE, above=LINE, below=LINE)
def test_any_text_gives_a_range_on_the_line_or_a_reason(before, text, rest, above, below):
    result = processed(text + "\n" + text, around(f"{above}\n{before}|{rest}\n{below}"))
    if not isinstance(result, Reason):
        assert 0 <= result.replaced_chars_after_cursor <= len(rest)
        assert result.text.strip()


@given(inner=st.text(st.sampled_from("ab, "), min_size=1, max_size=6), depth=st.integers(1, 3))
def test_brackets_closed_by_the_editor_are_not_doubled(inner, depth):
    if not inner.strip(", "):
        return
    document = "x = " + "f(" * depth + "|" + ")" * depth
    text, replaced = shown(document, inner + ")" * depth)
    assert text + ")" * (depth - replaced) == inner + ")" * depth


@pytest.mark.parametrize("code", ["f();// (it's", "f(); // (it's"])
def test_brackets_and_quotes_in_a_comment_open_nothing(code):
    found = balance(code, ("//",))
    assert (found.open, found.quote, found.surplus) == ("", None, 0)
    assert found.comment == code.index("//")


def test_a_line_of_a_minified_file_costs_no_time():
    line = "f(a,{b:'c'});" * 40_000
    began = time.perf_counter()
    result = processed("x)", around(f"{line}|{line}\n{line}", "javascript"))
    assert result.text == "x)"
    assert time.perf_counter() - began < 1


MAKEFILE = "SRCS = main.c \\\n    util.c \\\n    io.c\n\nprog: $(OBJS)|\n"
PAGE = 'PAGE = """\na:\n  b:\n    c: 1\n  d:\n    e: 2\nf:\n  g: 3\n"""\n\n\n'
QUERY = "`\n    select *\n    from b\n    where c\n    and d\n`"


@pytest.mark.parametrize(
    ("language", "document", "completion", "text"),
    [
        ("makefile", MAKEFILE, "\n\t$(CC) -o $@ $^", "\n\t$(CC) -o $@ $^"),
        ("makefile", MAKEFILE, "\n    $(CC) -o $@ $^", "\n\t$(CC) -o $@ $^"),
        ("makefile", MAKEFILE, "\n\tcc \\\n\t  -o $@", "\n\tcc \\\n\t  -o $@"),
        ("makefile", "A = a.c \\\n    |\n\nall: x\n", "b.c \\\n    c.c", "b.c \\\n    c.c"),
        ("makefile", "a: b \\\n      c|\n", "\n    cc a.c", "\n\tcc a.c"),
        ("makefile", "a: b\n|\n", "    cc a.c", "\tcc a.c"),
        ("makefile", "a: b\n\tcc a.c \\\n\t   b.c|\n", "\n    ar a", "\n\tar a"),
        ("makefile", "Y = 2|\n", "\nifeq (a,b)\n  X = 1\nendif", "\nifeq (a,b)\n  X = 1\nendif"),
        ("go", f"func f() int {{\n\tq := {QUERY}|\n}}\n", "\n\treturn 1", "\n\treturn 1"),
        ("go", f"var q = {QUERY}\n\nfunc f() int {{|\n}}\n", "\n\treturn 1", "\n\treturn 1"),
        (
            "c",
            "void f() {\n    a();\n    b();\n}\nvoid g() {\n\tx();|\n}\n",
            "\n\ty();",
            "\n\ty();",
        ),
        ("python", f"{PAGE}def f(xs):|\nif a:\n    b()\n", "\n    return 1", "\n    return 1"),
        ("javascript", f"f({QUERY});\nif (a) {{\n  b(() => {{|\n", "\n    c();", "\n    c();"),
        ("python", 'x = """\n\ta\n\tb\n"""\nif x:\n    y()|\n', "\n    z()", "\n    z()"),
    ],
)
def test_a_line_is_indented_as_its_own_block_is(language, document, completion, text):
    """A continuation or a string of blanks made blanks of all tabs: "missing separator"."""
    assert processed(completion, around(document, language)).text == text
