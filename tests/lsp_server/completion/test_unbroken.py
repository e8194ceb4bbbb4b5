"""No answer of a model, however wrong its end, leaves code broken that was whole."""

from itertools import islice

import pytest

from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.syntax_judge import SyntaxJudge
from lsp_server.prompt import bounded_parse, parsed_line
from lsp_server.prompt.grammars import GRAMMARS
from lsp_server.prompt.syntax import DocumentSyntax
from lsp_server.reasons import Reason
from tests.support.code_places import at, code_places, is_broken, shown

PLACES = code_places(15)


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """On a busy machine the parser's time runs out, and the line alone decides."""
    for module, limit in (
        (parsed_line, "_PATIENCE_S"),
        (bounded_parse, "_STRETCH_S"),
        (bounded_parse, "_PIECE_S"),
    ):
        monkeypatch.setattr(module, limit, 60.0)


def test_there_are_many_places_in_all_languages():
    assert len(PLACES) >= 150
    assert sum(bool(place.rest.strip()) for place in PLACES) >= 75
    assert sum(not place.rest.strip() for place in PLACES) >= 15
    assert {place.language_id for place in PLACES} == set(GRAMMARS)


@pytest.mark.parametrize(
    ("number", "place"), list(enumerate(PLACES)), ids=[place.name for place in PLACES]
)
def test_no_answer_breaks_the_code(number, place):
    """At a line's end only a statement may stay unfinished that the user has begun."""
    is_begun = not place.rest.strip() and is_broken(place.with_text("", 0), place.language_id)
    for answer in islice(place.answers(), number % 2, None, 2):  # every answer at every other place
        made = shown(place, answer)
        if not isinstance(made, Reason) and not is_begun:
            text = place.with_text(made.text, made.replaced_chars_after_cursor)
            assert not is_broken(text, place.language_id), (answer, made)


def test_the_true_text_is_shown_nearly_everywhere():
    whole = 0
    for place in PLACES:
        made = shown(place, place.truth)
        if not isinstance(made, Reason):
            text = place.with_text(made.text, made.replaced_chars_after_cursor)
            whole += text.split() == place.with_text(place.truth, 0).split()
    assert whole >= 0.9 * len(PLACES)


AREA = "def area(self):\n    |\n\n\ndef other():\n    pass\n"


@pytest.mark.parametrize(
    ("language_id", "text", "answer", "kept"),
    [
        ("typescript", "all.sort((a, b) => |).slice(0, n);\n", "b[1] - a[1]);", "b[1] - a[1]"),
        ("javascript", "const words = text.match(/[a-z|+/g);\n", "0-9]+/g", "0-9]"),
        ("python", "def f(self, |) -> A:\n    return 1.0\n", "a: A, b: B) -> C:", "a: A, b: B"),
        ("python", AREA, 'width = 1\n    """The width', "width = 1"),
        ("python", AREA, "width = 1\n    if width:\n", "width = 1"),
        ("python", "call(first=1, |)\n", "second=2, third", "second=2"),
        (
            "typescript",
            "switch (a) {\n  |\n}\n",
            "case 1:\n    b();\n  case 2: {\n    c();",
            "case 1:\n    b();",
        ),
        ("go", "func f() {\n\t|\n}\n", "a := b()\n\tif a {", "a := b()"),
        ("go", "func f() {\n\t|\n}\n", "a := b()\n\tif a {\n", "a := b()"),
        (
            "go",
            "func add(a int|) int {\n\treturn a\n}\n",
            ", b int) int {\n\treturn a + b\n}",
            ", b int",
        ),
    ],
)
def test_what_breaks_the_code_is_cut_off(language_id, text, answer, kept):
    place = at(text, language_id)
    made = shown(place, answer)
    now = place.with_text(made.text, made.replaced_chars_after_cursor)
    assert now == text.replace("|", kept)


@pytest.mark.parametrize(
    ("language_id", "text", "answer", "shown_text"),
    [
        ("go", "func f() {\n\tif err := future.Error(|\n}\n", "); err != nil {", None),
        ("go", "func f() {\n\tif !contains(|\n}\n", "xs, x) {", None),
        ("javascript", "function f() {\n  if (distance|\n}\n", " < 10) {", None),
        ("javascript", "function f() {\n  if (a) {\n    b();\n  } |\n}\n", "else {", None),
        ("cpp", "void f() {\n    while (n > |\n}\n", "0) {", None),
        ("javascript", "rows.forEach((row)|\n", " => {", None),
        ("cpp", "void f() {\n    auto g = [&](|\n}\n", "int b) {", None),
        ("java", "class A {\n  void f() {\n    rows.forEach(|\n  }\n}\n", "row -> {", None),
        ("go", "func f() {\n\t|\n}\n", "if err != nil {", Reason.BREAKS_CODE),
        ("python", "def f(xs):\n    while sum(|\n", "xs)", None),
        ("python", "def f(xs):\n    |\n", "for x in", Reason.BREAKS_CODE),
        ("go", "func f() {\n\tfor _, v|\n}\n", " := range", Reason.BREAKS_CODE),
        # Nothing of its own is left open, whatever the user has left open.
        ("javascript", "const g = 'src/*.js';\nfunction f() {\n  |\n}\n", "a(); /* b", "a();"),
        ("python", 's = \'"""\'\ndef f():\n    |\n', 'return """abc', 'return ""'),
        ("typescript", "switch (a) {\n  ca|\n}\n", "se 'x':", "se 'x':"),
        ("c", "void f() {\n  |\n", "int x = a", Reason.BREAKS_CODE),
        ("javascript", "const f = (a) |\nlet b = 1;\n", "=> (a ? `b", Reason.BREAKS_CODE),
        ("c", "void f() {\n  |\n", "if (x)", Reason.BREAKS_CODE),
        ("java", "class A {\n  |\n", "void f(int a)", Reason.BREAKS_CODE),
        # Only its semicolon is missing.
        ("java", "class A {\n  void f() {\n    it|\n  }\n}\n", "ems.addAll(more)", None),
        ("cpp", "void f() {\n    Item |\n}\n", "item = items", None),
        ("java", "class A {\n  void f() {\n    |\n  }\n}\n", "a.b()", Reason.BREAKS_CODE),
    ],
)
def test_a_header_is_shown_up_to_its_block_where_its_user_has_begun_it(
    language_id, text, answer, shown_text
):
    made = shown(at(text, language_id), answer)
    assert getattr(made, "text", made) == (shown_text or answer)


@pytest.mark.parametrize(
    ("language_id", "text", "answer", "end"),
    [
        ("go", "func f() {\n\t|\n}\n", "if a {\n\t\tb()", "\n\t}"),
        ("go", "func f() {\n\tif |\n}\n", "a {\n\t\tb()", "\n\t}"),
        (
            "java",
            "class A {\n  void f() {\n    |\n  }\n}\n",
            "run(new Job() {\n      void go() {\n        end();",
            "\n      }\n    });",
        ),
        ("javascript", "function f() {\n  |\n}\n", "a((b) => {\n    c();", "\n  })"),
    ],
)
def test_a_text_that_stops_in_its_block_gets_the_blocks_end(language_id, text, answer, end):
    assert shown(at(text, language_id), answer).text == answer + end


@pytest.mark.parametrize(
    ("text", "answer", "shown_text"),
    [
        ("x = a if s|\n", "elf.mode else", "elf.mode"),
        ("message = f\"'{a|\n", "ttr.name}' must be", "ttr.name}' must be"),
        ("async def __a|\n", "enter__", "enter__"),
        ("names = {name: |\n", "value for name, value in", "value"),
        ("x = a if n|\n", "ode.type", "ode.type"),
        ("x = |\n", "foo bar", "foo"),
        ("x = |\n", "self.rows if self.rows else", "self.rows"),
        ("x = |\n", "lambda y", Reason.BREAKS_CODE),
        ("import |\n", "a from b", "a"),
        ("x = f(a, |\n", "y z", "y"),
        ('x = f"a |\n', "{b", Reason.BREAKS_CODE),
        ("def f(a):\n    while(a|\n", "):", "):"),
        ("x = a if s|\n", "elf.mode(", "elf.mode"),
        ("def f(line):\n    yield f|\n", "rom", Reason.BREAKS_CODE),
        ("def f(xs):\n    i|\n", "f xs:", Reason.BREAKS_CODE),
        ("def f(xs):\n    if |\n", "xs:", "xs:"),
    ],
)
def test_a_statement_that_python_cannot_read_yet_may_grow_but_ends_in_no_joint(
    text, answer, shown_text
):
    made = shown(at(text, "python"), answer)
    assert getattr(made, "text", made) == shown_text


def test_what_cannot_be_cut_to_something_whole_is_not_shown():
    place = at("def area(self):\n    |\n\n\nwidth = 1\n", "python")
    assert shown(place, "try:\n") is Reason.BREAKS_CODE


@pytest.mark.parametrize(
    ("language_id", "text", "answer"),
    [
        ("python", "for row in |", "rows:"),
        ("python", "total(first, |", "second"),
        ("javascript", "function area() {\n  |", "return width * height;"),
        ("python", 'def area(a, b):\n    """|\n    return a + b\n', "Return the sum."),
        ("python", 'def f(a):\n    """Say.\n\n    |\n\n    return a\n', "Args: a number"),
        ("javascript", "/**\n * |\nfunction f() {}\n", "Adds two numbers."),
        ("javascript", "const q = `select |\nconst r = 1;\n", "name from t"),
        ("go", "func f() {\n\tq(`select |\n}\n", "name from t"),
        ("java", "class A {\n  /** |\n  int f() { return 1; }\n}\n", "The answer."),
        ("c", "/* |\nint a;\n", "A number."),
        ("javascript", "function area() {\n  |\n\nfunction next() {\n}\n", "return 1;\n}"),
        ("javascript", "function f() {\n  if (a) {\n    throw new E('No v|\n}\n", "iew"),
        ("cpp", "void f() {\n  iter->Seek(k|\n  g();\n}\n", "ey"),
        # The block above is open, and so is the tag; one brace is only a character.
        ("rust", "fn f() {\n    g('}');\n    if a {\n        |\n}\n", "b();"),
        ("typescriptreact", "function f() {\n  return (\n    <A\n      |\n}\n", "{...b}"),
        ("cpp", "void f() {\n  if (a) {\n    iter->Seek(k|\n}\n", "ey"),
    ],
)
def test_what_the_user_has_begun_may_stay_unfinished(language_id, text, answer):
    """Not every editor writes the closing bracket along with the opening one."""
    assert shown(at(text, language_id), answer).text == answer


BROKEN = "def broken(:\n    pass\n\n\ndef area(self):\n    return max(|, 1)\n"
MACROS = "BEGIN_LIST one\n  ITEM two END; @\nstatic int a(void) {\n  return max(|, 1);\n}\n"


@pytest.mark.parametrize(
    ("language_id", "text", "answer"),
    [
        ("python", BROKEN, "self.width"),
        ("python", BROKEN, "self.width, ("),
        ("c", MACROS, "self.width"),  # the grammar does not know the file: the line decides
        ("c", MACROS, "self.width));"),
    ],
)
def test_a_fault_elsewhere_in_the_file_hides_nothing(language_id, text, answer):
    assert shown(at(text, language_id), answer).text == "self.width"


def test_fewer_texts_are_tried_in_a_long_file(monkeypatch):
    monkeypatch.setattr("lsp_server.completion.syntax_judge._PATIENCE", 9_000)
    tried = []
    for num_lines in (1, 6_000):
        place = at("call(first, [(|\n" + "var x = 1;\n" * num_lines, "javascript")
        line = DocumentSyntax("javascript").parsed_line(place.lines, 0)
        around = CursorContext.of(place.lines, place.position, language_id="javascript")
        assert line is not None
        judge = SyntaxJudge(line, around, around.before)
        judge.prepare()
        tried.append(judge._with_text.cache_info().misses)
    assert tried == [6, 5]


def test_the_parser_has_little_time_and_then_the_line_decides(monkeypatch):
    monkeypatch.setattr("lsp_server.completion.syntax_judge._PATIENCE", 1)
    assert shown(at("call(first, |)\n", "python"), "second, (third").text == "second"


@pytest.mark.parametrize(
    ("text", "answer", "expected"),
    [
        ("rows.sort(by(|)).first(5)", ":name));", "rows.sort(by(:name)).first(5)"),
        ("puts(|)", '"a', "puts()"),
        ("puts(|)", "first, (second", "puts(first)"),
        ("puts(\n  |);", "first(1", "puts(\n  first);"),
        ("|\n", "if (x) {", "\n"),
    ],
)
def test_without_a_grammar_brackets_quotes_and_the_statements_end_decide(text, answer, expected):
    place = at(text, "ruby")
    made = shown(place, answer)
    written = ("", 0) if isinstance(made, Reason) else (made.text, made.replaced_chars_after_cursor)
    assert place.with_text(*written) == expected


def test_prose_may_leave_open_what_it_likes():
    assert shown(at("It's (as they say |", "markdown"), 'so "new').text == 'so "new'
