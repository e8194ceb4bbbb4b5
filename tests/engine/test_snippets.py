"""Related lines of the open buffers, chosen for the room that a prompt has for them."""

import gc
import re
import weakref
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.related_file import LineIndex, line_index
from engine.request import Buffer, CompletionRequest, Snippet
from engine.snippets import Neighbours, _around, _present
from engine.text.names import CursorNames

UNRELATED = "".join(f"colour_{line} = paint(canvas, {line})\n" for line in range(200))
RELATED = "def total_price(order, basket):\n    return sum(item.price for item in basket)\n"
SHOP = '''\
class Basket(Thing):
    """What a customer takes home."""

    rows: list[Row]

    def net_price(self, customer):
        for row in self.rows:
            log(row)
        return 1

class Canvas(Thing):
    depth: int
'''


def count(text: str) -> int:
    """A token for every word and sign."""
    return len(re.findall(r"\w+|[^\w\s]|\n", text))


def request(*buffers: Buffer, prefix: str = "def total_weight(order, basket):\n    "):
    return CompletionRequest(prefix=prefix, suffix="\n", open_buffers=buffers)


def related(asked: CompletionRequest, room: int = 1000):
    return Neighbours(count).snippets(asked, room)


def test_a_small_file_stands_in_the_prompt_as_a_whole():
    """Also beside others: what it leaves goes to their best lines."""
    models = "".join(f"class Model{number}:\n    order: int\n\n" for number in range(9))
    large = UNRELATED + RELATED
    snippets = related(request(Buffer("large.py", large), Buffer("models.py", models)), 400)
    assert {one.path: one.text for one in snippets} == {"models.py": models, "large.py": RELATED}


def test_a_file_that_does_not_fit_is_trimmed_to_its_best_lines():
    (snippet,) = related(request(Buffer("a.py", UNRELATED + RELATED + UNRELATED)), 60)
    assert snippet.text == RELATED


@pytest.mark.parametrize(
    ("prefix", "line"),
    [
        # A line brings the heads of its blocks along.
        ("customer = 1\nx", "class Basket(Thing):\n"),
        # A class that is named brings its fields and the heads of its methods along.
        ("basket = Basket()\nx", "    rows: list[Row]\n"),
    ],
)
def test_what_stands_in_a_block_comes_with_its_head(prefix, line):
    (snippet,) = related(request(Buffer("shop.py", UNRELATED + SHOP), prefix=prefix), 40)
    assert line in snippet.text
    assert "    def net_price(self, customer):\n" in snippet.text
    assert "Canvas" not in snippet.text


def test_what_the_file_imports_goes_before_what_shares_as_many_names():
    text = UNRELATED + "def order_of(basket): ...\n"
    prefix = "from shop.models import paint\nbasket = order_of(\nx"
    asked = request(Buffer("other.py", text), Buffer("shop/models.py", text), prefix=prefix)
    assert [one.path for one in related(asked, 30)] == ["shop/models.py"]


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("from .models import Order", "shop/models.py"),
        ("import shop.models", "shop/models/__init__.py"),
        ("import { Order } from './models'", "src/models.ts"),
        ("const order = require('./models')", "src/models/index.js"),
        ('#include "models.h"', "src/models.h"),
        ("use crate::models::Order;", "src/models/mod.rs"),
        ("using Shop.models;", "shop\\models.cs"),
        ("import (\n    one\n    models\n)", "models.go"),
    ],
)
def test_imports_are_known_in_many_languages(line, path):
    around = CursorNames.around([*line.split("\n"), "x = 1"], [])
    assert around.imports(path)
    assert not CursorNames.around(["models = 1"], []).imports(path)


@pytest.mark.parametrize("text", [UNRELATED, "", "from shop import order, basket\n"])
def test_a_buffer_that_says_nothing_of_the_names_gives_nothing(text):
    assert related(request(Buffer("a.py", text))) == ()


def test_typing_on_a_line_and_entering_a_few_more_does_not_change_them():
    buffers = tuple(
        Buffer(f"{name}.py", UNRELATED + f"def {name}_price(order): ...\n")
        for name in ("total", "net", "gross")
    )
    head = "".join(f"total_{line} = order\n" for line in range(16))
    first = related(CompletionRequest(head, "\nprint(order)\n", open_buffers=buffers), 60)
    assert first
    for typed in ("net", "net_price = gross_price", "gross = 1\nnet_price = 2\n    x"):
        asked = CompletionRequest(head + typed, "\nprint(order)\n", open_buffers=buffers)
        assert related(asked, 60) == first


def test_a_step_down_in_the_file_does_not_change_them():
    buffer = Buffer("a.py", UNRELATED + RELATED * 9)
    lines = [f"name_{number} = order_{number}\n" for number in range(99)]

    def at(line: int):
        return related(
            CompletionRequest("".join(lines[:line]), "".join(lines[line:]), open_buffers=(buffer,))
        )

    assert at(50) == at(51) == at(52)


def test_a_form_feed_ends_no_line():
    buffer = Buffer("a.py", "x = 1\f\u2028" + RELATED)
    assert [one.text for one in related(request(buffer))] == [buffer.text]


_TEXTS = st.lists(
    st.text("ab cde:\t(", max_size=12).map(lambda line: f"{line} order\n"), max_size=40
).map("".join)


@given(texts=st.lists(_TEXTS, max_size=4), room=st.integers(0, 200))
def test_whatever_is_chosen_fits_and_is_whole_lines_in_their_order(texts, room):
    buffers = tuple(Buffer(f"{number}.py", text) for number, text in enumerate(texts))
    snippets = related(request(*buffers), room)
    assert sum(count(f"{one.path}\n{one.text}") + 1 for one in snippets) <= room
    for snippet in snippets:
        rest = iter(texts[int(snippet.path[0])].splitlines(keepends=True))
        assert all(line in rest for line in snippet.text.splitlines(keepends=True))


def test_files_beyond_a_bound_are_not_looked_at(monkeypatch):
    """Or a client could keep the engine busy for minutes before its completion begins."""
    buffers = [Buffer(f"{name}.py", RELATED) for name in "ab"]
    assert {one.path for one in related(request(*buffers))} == {"a.py", "b.py"}
    monkeypatch.setattr("engine.snippets._MOST_CHARS", len(RELATED))
    assert {one.path for one in related(request(*buffers))} == {"a.py"}


def test_nothing_is_kept_of_files_beyond_that_bound(monkeypatch):
    """Each key in a hostile file would keep all files again: gigabytes, sixteen keys later."""

    class Text(str):
        """A text whose end is noticed."""

    monkeypatch.setattr("engine.snippets._MOST_CHARS", len(RELATED))
    far, neighbours = Text(UNRELATED), Neighbours(count)
    noticed = weakref.ref(far)
    buffers = [Buffer("a.py", RELATED), Buffer("far.py", far)]
    del far
    neighbours.snippets(request(*buffers), 100)
    buffers.clear()
    gc.collect()
    assert noticed() is None


def test_nothing_is_kept_of_a_long_file_at_the_cursor(monkeypatch):
    neighbours, asked = Neighbours(count), request(Buffer("a.py", RELATED))
    looked_at = []

    def around(before, behind):
        looked_at.append(before)
        return _around(before, behind)

    monkeypatch.setattr("engine.snippets._around", around)
    monkeypatch.setattr("engine.snippets._MOST_PLACE_CHARS", 1)
    assert neighbours.snippets(asked, 100) == neighbours.snippets(asked, 100) != ()
    assert len(looked_at) == 2


def test_a_text_is_read_once_until_it_changes(monkeypatch):
    read: list[str] = []

    def reading(text: str) -> LineIndex:
        read.append(text)
        return line_index(text)

    monkeypatch.setattr("engine.snippets.line_index", reading)
    neighbours, steady = Neighbours(count), Buffer("a.py", UNRELATED + RELATED)
    for room, text in ((50, RELATED), (60, RELATED), (60, RELATED + "x")):
        neighbours.snippets(request(steady, Buffer("b.py", text)), room)
    assert sorted(read, key=len) == [RELATED, RELATED + "x", steady.text]


def test_lines_are_chosen_once_until_the_cursor_comes_to_other_names():
    counted: list[str] = []

    def counting(text: str) -> int:
        counted.append(text)
        return count(text)

    neighbours, buffer = Neighbours(counting), Buffer("a.py", UNRELATED + RELATED)
    first = neighbours.snippets(request(buffer), 60)
    counted.clear()
    assert neighbours.snippets(request(buffer, prefix=request().prefix + "typed"), 60) == first
    assert not counted


def test_a_line_stands_in_the_block_of_the_last_one_that_is_less_indented():
    headers = line_index(SHOP).headers
    lines = SHOP.splitlines()
    under = {
        lines[line].strip(): lines[header] for line, header in enumerate(headers) if header >= 0
    }
    assert under["log(row)"] == "        for row in self.rows:"
    assert under["return 1"] == "    def net_price(self, customer):"
    assert under["depth: int"] == "class Canvas(Thing):"


def test_the_passage_that_reads_like_the_text_at_the_cursor_comes_with_what_stands_in_it():
    """Its lines name nothing that stands near the cursor."""
    above = "".join(f"    first_value_{n} = measure(basket, {n})\n" for n in range(16))
    hole = "        colder(than, ever)\n    warmer()\n"
    below = "".join(f"    last_value_{n} = measure(order, {n})\n" for n in range(16))
    asked = CompletionRequest(
        prefix=above + "    ",
        suffix="\n" + below,
        open_buffers=(Buffer("before.py", UNRELATED + above + hole + below + UNRELATED),),
    )
    (snippet,) = related(asked, 200)
    assert hole in snippet.text


def in_repository(*texts: str) -> tuple[Snippet, ...]:
    return tuple(Snippet(f"r{n}.py", text) for n, text in enumerate(texts))


def test_what_the_repository_shows_is_taken_in_its_order_and_cut_at_a_line_end():
    found = in_repository("def f(a): ...\n", "def g(b): ...\n" * 9, "def h(c): ...\n")
    chosen = related(replace(request(), repository=found), 40)
    assert [one.path for one in chosen] == ["r0.py", "r1.py"]
    assert chosen[0] == found[0]
    assert found[1].text.startswith(chosen[1].text)
    assert chosen[1].text.endswith("...\n")


def test_it_leaves_half_of_the_room_to_open_files_and_takes_no_more_than_it_needs():
    found = in_repository("def f(a): ...\n" * 900)
    beside = replace(request(Buffer("a.py", UNRELATED + RELATED)), repository=found)
    sizes = {one.is_open: count(one.text) for one in related(beside, 400)}
    assert 150 < sizes[False] <= 200
    assert sizes[True] >= count(RELATED)
    (chosen,) = related(replace(request(), repository=found), 20_000)
    assert 900 < count(chosen.text) <= 1024


def test_what_it_shows_of_an_open_file_is_what_stands_there_now_and_stands_there_once():
    shop = Buffer("shop.py", UNRELATED + SHOP)
    text = "class Basket(Thing):\n    rows: list[Old]\n    rows: list[Row]\n"
    found = (Snippet("shop.py", text), Snippet("shop.py", "gone\n"))
    asked = request(shop, prefix="customer = rows\nx")
    first, *rest = related(replace(asked, repository=found), 60)
    assert first.text == "class Basket(Thing):\n    rows: list[Row]\n"
    assert all("    rows: list[Row]" not in one.text for one in rest)


def test_nothing_is_shown_of_a_file_that_is_offered_without_text():
    (snippet,) = in_repository("def f(a): ...\n")
    asked = replace(request(), repository=(Snippet(snippet.path, ""), snippet))
    assert related(asked, 400) == related(replace(asked, repository=(snippet,)), 400)


def test_nothing_is_shown_by_the_repository_of_an_open_file_longer_than_any_in_it():
    (snippet,) = in_repository("def f(a): ...\n")
    short, huge = (Buffer(snippet.path, snippet.text * number) for number in (1, 100_000))
    for buffer, is_shown in ((short, True), (huge, False)):
        asked = replace(request(buffer), repository=(snippet,))
        assert bool(_present(asked.repository, asked.open_buffers)) == is_shown


def test_an_open_file_that_stands_there_as_a_whole_is_not_shown_by_the_repository_too():
    """What its snippet took is room for it."""
    asked = request(Buffer("shop.py", SHOP), prefix="customer = rows\nx")
    tight = 2 * count(f"shop.py\n\n{SHOP}") - 2  # half of it is the repository's
    other = in_repository("x = 1\n")
    for room, text, others in ((400, "class Basket(Thing):\n", other), (tight, SHOP, ())):
        found = (Snippet("shop.py", text), *others)
        chosen = related(replace(asked, repository=found), room)
        assert chosen == (*others, Snippet("shop.py", SHOP, is_open=True))


def test_the_worth_of_a_line_does_not_depend_on_the_order_of_the_names():
    """Sets of strings have another order in each process."""
    index = line_index("\n".join(f"alpha, beta{one}, gamma, delta, rows" for one in range(7)))
    names = ["alpha", "gamma", "delta", "rows", "beta3", "beta5"]
    worths = {tuple(index.worths(order)) for order in permutations(names)}
    assert len(worths) == 1
