"""Where the cursor stands, by a syntax tree and by text."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.host.protocol import Position
from engine.memory import peak_resident_bytes
from lsp_server.completion.cursor_context import CursorContext
from lsp_server.completion.syntax_judge import SyntaxJudge
from lsp_server.documents.document import Snapshot
from lsp_server.prompt import syntax
from lsp_server.prompt.place import Place, place_by_text
from lsp_server.prompt.syntax import DocumentSyntax, Places

GOLDEN = [  # language, text with the cursor as a bar, place
    ("python", "x = 1  # a no|te\n", Place.COMMENT),
    ("python", "x = 1  # a note|\ny = 2\n", Place.COMMENT),
    ("python", "x = 'a no|te'\n", Place.STRING),
    ("python", "x = 'a note|\n", Place.STRING),
    ("python", "x = 'a note'|\n", Place.CODE),
    ("python", 'x = "don\'t" + |\n', Place.CODE),
    ("python", "def f():\n    |\n", Place.EMPTY_BLOCK),
    ("python", "def f():|", Place.EMPTY_BLOCK),
    ("python", "def f():  # why\n    |\nx = 1\n", Place.EMPTY_BLOCK),
    ("python", "def f(\n    a,\n    b):\n    |\n\nx = 1\n", Place.EMPTY_BLOCK),
    ("python", "class A:\n    def f(self):\n        |\n    def g(self): ...\n", Place.EMPTY_BLOCK),
    ("python", "def f():\n    |\n    return 1\n", Place.BLANK_LINE),
    ("python", "x = 1\n|\ny = 2\n", Place.BLANK_LINE),
    ("python", "x = {'a':|}\n", Place.CODE),
    ("python", "x = a[1:|]\n", Place.CODE),
    ("python", "x = |value + 1\n", Place.MID_LINE),
    ("python", "f(x|):\n", Place.CODE),
    ("python", "try:\n    |\nexcept E:\n    pass\n", Place.EMPTY_BLOCK),
    ("javascript", "function f() {|}\n", Place.EMPTY_BLOCK),
    ("javascript", "function f() {\n  |\n}\n", Place.EMPTY_BLOCK),
    ("javascript", "const x = {|}\n", Place.CODE),
    ("javascript", "let s = `a ${b|} c`\n", Place.MID_LINE),
    ("javascript", "let s = `a |${b} c`\n", Place.STRING),
    ("javascript", "/* one |two */\n", Place.COMMENT),
    ("javascript", "/* one two */|\n", Place.CODE),
    ("javascript", "go(() => {|);\n", Place.EMPTY_BLOCK),
    ("typescript", "interface A {\n  |\n}\n", Place.EMPTY_BLOCK),
    ("typescriptreact", "const x = <a>{|}</a>\n", Place.MID_LINE),
    ("java", "class A {\n  void f() {\n    |\n  }\n}\n", Place.EMPTY_BLOCK),
    ("java", "int[] a = {|};\n", Place.CODE),
    ("go", "func f() {\n\t|\n}\n", Place.EMPTY_BLOCK),
    ("go", 'x := "a|b"\n', Place.STRING),
    ("rust", "/// a doc|\nfn f() {}\n", Place.COMMENT),
    ("rust", "/// a doc\n|\nfn f() {}\n", Place.BLANK_LINE),
    ("rust", "fn f<'a>() {|}\n", Place.EMPTY_BLOCK),
    ("c", "int f(void) {\n  |\n}\n", Place.EMPTY_BLOCK),
    ("c", "#include |\n", Place.CODE),
    ("cpp", "while (x) {\n  y(); // no|\n}\n", Place.COMMENT),
    ("lua", "if x then\n  |\nend\n", Place.EMPTY_BLOCK),
    ("lua", "x = 1 -- why|\n", Place.COMMENT),
    ("csharp", "void F() {\n    |\n}\n", Place.EMPTY_BLOCK),
    ("csharp", "/* a\n b |\n*/\n", Place.COMMENT),
    ("markdown", "I don't know|\n", Place.CODE),
    ("dockerfile", "COPY src/* /app/\n|\n", Place.BLANK_LINE),
    ("yaml", 'paths: ["src/**/*.py"]\nx: |\n', Place.CODE),
    ("json", '{"include": ["src/**/*"],\n|\n}', Place.BLANK_LINE),
    ("kotlin", 'val all = "src/*.kt" // and /*\n|\n', Place.BLANK_LINE),
    ("css", "/* see http://a/b\n |\n*/\n", Place.COMMENT),
    ("html", "<!-- don't\n |\n-->\n", Place.COMMENT),
    ("html", "<!-- one --> <p>\n |\n", Place.BLANK_LINE),
    ("shellscript", "test $# = 0 && shift |\n", Place.CODE),
]
TREE_ALONE = [
    ("python", 'x = """\nif a|\n"""\n', Place.STRING),
    ("python", "((]] def = = {{ 'abc|\n}}) class :\n", Place.STRING),
    # A blank line below a heading's colon in documentation takes several lines.
    ("python", 'def f():\n    """Add.\n\n    Example:\n    |\n    """\n', Place.BLANK_LINE),
    ("javascript", "/**\n * Example:\n * |\n */\nf();\n", Place.BLANK_LINE),
    ("rust", "/// Example:\n///\n/// |\nfn f() {}\n", Place.BLANK_LINE),
]
WORDS = [*"x (){}#:=é🙂\n\"'", "    ", "//", "def f"]


def at_bar(text: str) -> tuple[tuple[str, ...], Position]:
    before, _, after = text.partition("|")
    line = before.count("\n")
    return tuple((before + after).split("\n")), Position(line, len(before.rpartition("\n")[2]))


@pytest.mark.parametrize(("language", "text", "expected"), [*GOLDEN, *TREE_ALONE])
def test_a_place_is_told_by_the_tree(language, text, expected):
    lines, position = at_bar(text)
    assert DocumentSyntax(language).place(lines, position) is expected


@pytest.mark.parametrize(
    ("language", "text", "expected"), [row for row in GOLDEN if "`" not in row[1]]
)
def test_most_places_are_told_by_the_text_alone(language, text, expected):
    lines, position = at_bar(text)
    assert place_by_text(lines, position, language) is expected


def test_a_long_document_is_judged_by_its_text():
    lines = ("x = 1",) * syntax.MAX_LINES + ("def f():", "    ")
    follower = DocumentSyntax("python")
    assert follower.place(lines, Position(len(lines) - 1, 4)) is Place.EMPTY_BLOCK
    assert follower._tree is None


def test_a_document_with_megabytes_in_one_line_is_judged_by_its_text():
    """It took seconds at each request."""
    lines = ("f(a,b);" * 600_000, "if (x) {", "  ", "}")
    began = time.thread_time()
    assert DocumentSyntax("javascript").place(lines, Position(2, 2)) is Place.EMPTY_BLOCK
    assert time.thread_time() - began < 0.5


def rows_of(piece: str, width: int, num_chars: int) -> list[str]:
    row = piece * (width // len(piece))
    return [row] * (num_chars // len(row))


SLOW = [("java", "=>a"), ("python", '"a'), ("java", "a<"), ("cpp", "a<"), ("typescript", "`${")]
FATAL = [("javascript", "{a:"), ("java", "{(")]  # ended the process
HUGE = [  # took 24 GB where the text ended, in one go that nothing can stop
    ("c", "def => "),
    ("rust", "return -> "),
    ("go", "= & "),
    ("java", "=> ~ await "),
]


@pytest.mark.parametrize(
    ("language", "rows"),
    [
        *((one, rows_of(piece, 100, 480_000)) for one, piece in [*SLOW, *FATAL]),
        *((one, rows_of(piece, syntax.MAX_ROW, 480_000)) for one, piece in [*SLOW, *FATAL]),
        *((one, rows_of(piece, 50 * len(piece), 400 * len(piece))) for one, piece in HUGE),
        *((one, rows_of(piece, 50 * len(piece), 30_000 * len(piece))) for one, piece in HUGE),
    ],
)
def test_a_text_that_is_made_to_cost_the_parser_much_is_judged_without_it(language, rows):
    lines = (*rows, "", "x = ")
    follower = DocumentSyntax(language)
    began, before = time.process_time(), peak_resident_bytes()
    for _ in range(3):
        assert follower.place(lines, Position(len(lines) - 1, 4)) in Place
        follower.catch_up()
        follower.parsed_line(lines, len(lines) - 1)
    assert time.process_time() - began < 5.0
    assert peak_resident_bytes() < before + 700e6


@pytest.mark.parametrize(
    ("language", "text"),
    [
        ("javascript", f"x = {'!' * 6_000}|1;\n"),
        ("javascript", f"x = {'!' * 16_000}|1;\n"),
        ("javascript", f"a{'.then(b)' * 2_000}|;\n"),
        ("c", "void f() {\nif (a) {}\n" + "else if (b) {}\n" * 2_000 + "else if (|) {}\n}\n"),
        ("python", f"x = {'[' * 4_000}|\n"),
        ("python", f"x = {'[' * 4_000}|{']' * 4_000}\n"),
        ("rust", f"fn f() {{ let x = {'&' * 15_000}|y; }}\n"),
        ("c", f"int {'*' * 15_000}|x;\n"),
    ],
)
def test_a_text_that_nests_deep_keeps_nobody_waiting(language, text):
    """Each step up the tree cost its depth: 11 s for 16,000 signs, in which nothing was answered."""
    lines, position = at_bar(text)
    follower = DocumentSyntax(language)
    began = time.thread_time()
    assert follower.place(lines, position) in Place
    line = follower.parsed_line(lines, position.line)
    if line is not None:
        context = CursorContext.of(lines, position, language_id=language)
        SyntaxJudge(line, context, context.before).accepts("b", 0)
    assert time.thread_time() - began < 0.5


def test_a_text_that_is_large_and_ordinary_has_its_tree():
    lines = ("def f(a, b):", "    return [a, {b: (a, b)}]") * 3_900 + ("def f():", "    ")
    follower = DocumentSyntax("python")
    assert follower.place(lines, Position(len(lines) - 1, 4)) is Place.EMPTY_BLOCK
    while follower.catch_up():
        assert follower.place(lines, Position(len(lines) - 1, 4)) is Place.EMPTY_BLOCK
    assert follower._tree is not None


def test_an_edit_while_a_large_text_is_read_is_read_too():
    lines = [*["x = [a, {b: (a, b)}]"] * 7_000, '"""']
    follower = DocumentSyntax("python")
    follower.place(lines, Position(0, 0))
    lines[0] = '"""'
    follower.place(lines, Position(0, 0))
    while follower.catch_up():
        pass
    assert follower.place(lines, Position(6_000, 20)) is Place.STRING


@pytest.mark.parametrize("is_paused", [False, True])
def test_a_parse_that_takes_too_long_is_answered_by_text_and_made_up_for_later(is_paused):
    times = iter(range(1_000)) if is_paused else iter([0, *[1] * 1_000])
    follower = DocumentSyntax("python", clock=lambda: float(next(times)))
    follower.place(('x = """', "a", '"""'), Position(0, 0))
    lines = ('x = """', "ab", '"""')
    assert follower.place(lines, Position(1, 2)) is Place.CODE
    if is_paused:
        follower.catch_up()
    assert follower.place(lines, Position(1, 2)) is Place.STRING


def test_lines_between_two_changes_are_not_encoded_again():
    lines = [f"x{row} = {row}" for row in range(100)]
    follower = DocumentSyntax("python")
    follower.place(lines, Position(0, 0))
    before = list(follower._rows)
    edited = ["import os", *lines[:90], "y = 1", *lines[91:]]
    follower.place(edited, Position(91, 5))
    assert all(one is other for one, other in zip(before[:90], follower._rows[1:91], strict=True))
    assert follower._tree.root_node.end_byte == len(b"".join(follower._rows))


@given(st.data())
def test_following_edits_tells_what_parsing_anew_tells(data):
    texts = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)
    language = data.draw(st.sampled_from(["python", "javascript", "rust"]))
    lines = data.draw(texts).split("\n")
    follower = DocumentSyntax(language, clock=lambda: 0.0)
    follower.place(lines, Position(0, 0))
    for _ in range(4):
        start = data.draw(st.integers(0, len(lines) - 1))
        end = data.draw(st.integers(start + 1, len(lines)))
        lines[start:end] = data.draw(texts).split("\n")
        row = data.draw(st.integers(0, len(lines) - 1))
        position = Position(row, data.draw(st.integers(0, len(lines[row]))))
        assert follower.place(lines, position) in Place
        # After errors an old tree may heal differently; the text that it was read from may not.
        assert b"".join(follower._rows).decode() == "\n".join(lines) + "\n"
        if not follower._tree.root_node.has_error:
            anew = DocumentSyntax(language).place(lines, position)
            assert follower.place(lines, position) is anew


def test_a_line_of_a_minified_file_costs_no_time():
    line = "f(a,{b:'c'});" * 40_000
    began = time.perf_counter()
    assert place_by_text((line,), Position(0, len(line)), "javascript") is Place.CODE
    assert time.perf_counter() - began < 1


@pytest.mark.parametrize("piece", ['\\"', "'\"", "/*", "<!-"])
def test_signs_of_strings_and_comments_without_end_cost_no_time(piece):
    lines = ['"' + piece * 8_000, ""]
    began = time.perf_counter()
    place_by_text(lines, Position(1, 0), "vue")
    assert time.perf_counter() - began < 0.5


def place_of(places: Places, text: str, language: str = "python", opening: int = 1) -> Place:
    """The place in a document that has this text."""
    lines, position = at_bar(text)
    document = Snapshot("file:///a.py", language, 1, opening, lines, "\n")
    return places.syntax(document).place(lines, position)


def test_a_place_follows_the_edits_of_its_document():
    places = Places()
    for text, place in (
        ("def f():\n    x = 1|\n", Place.CODE),
        ("def f():\n    # x = 1|\n", Place.COMMENT),
        ("def f():\n    x = 1|\n", Place.CODE),
        ('"""\nmo|re\n"""\ndef f():\n    x = 1\n', Place.STRING),
    ):
        assert place_of(places, text) is place


def test_a_document_that_was_opened_anew_or_forgotten_is_read_anew():
    places = Places()
    assert place_of(places, "x = 1|\n") is Place.CODE
    assert place_of(places, "// a comment|\n", "javascript", opening=2) is Place.COMMENT
    places.forget("file:///a.py")
    places.forget("file:///a.py")
    assert not places.catch_up("file:///a.py")
    assert place_of(places, "// a comment|\n", "javascript", opening=2) is Place.COMMENT


def test_a_place_that_is_not_there_spoils_no_tree():
    follower, lines = DocumentSyntax("python"), ["x = 1", "# y"]
    follower.place(lines, Position(0, 0))
    with pytest.raises(IndexError):
        follower.place(["z", *lines], Position(99, 0))
    assert follower.place(["z", "z", *lines], Position(3, 3)) is Place.COMMENT
    assert follower.place(["z", "z", *lines], Position(2, 5)) is Place.CODE
