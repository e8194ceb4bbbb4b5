"""The text around a cursor, as the questions to an index see it."""

import time

import pytest

from lsp_server.repository.cursor_view import CursorView, Imported, imports


def view(text: str, path: str = "a/b.py") -> CursorView:
    before, behind = text.split("|")
    return CursorView(path, before.split("\n"), behind.split("\n"))


@pytest.mark.parametrize(
    ("text", "callee"),
    [
        ("load(|", ("load",)),
        ("a.b.load(\n    first,\n    [1, 2],\n    |\n)", ("a", "b", "load")),
        ("load(one(), {2: (3)}, |", ("load",)),
        ("load(first)|", ()),
        ("load([|", ()),
        ("x = 1|", ()),
    ],
)
def test_the_call_is_that_whose_brackets_are_open(text, callee):
    assert view(text).callee == callee


def test_heads_are_those_of_the_blocks_around_with_the_rest_of_their_brackets():
    text = (
        "class Shop:\n    def other(self): ...\n\n    def load(self,\n             x):\n        |"
    )
    assert view(text).heads == ["    def load(self,\n             x):", "class Shop:"]


def test_names_count_less_far_from_the_cursor():
    weights = view("first\nsecond\nthird.wor|\nfourth").weights
    assert weights["third"] == 1.0
    assert weights["third"] > weights["second"] > weights["first"]
    assert "wor" not in weights


def test_the_imports_of_the_other_lines_are_found_once_while_somebody_types():
    first = view("from shop import Order\nOrd|\nimport json")
    second = view("from shop import Order\nOrder(|)\nimport json")
    assert set(first.imports) == {"Order", "json"}
    assert first.imports is second.imports


@pytest.mark.parametrize("path", ["a.py", "a.ts"])
@pytest.mark.parametrize("line", ["x = [" + "1, " * 30_000 + "]", "const a = {b(c(", "(" * 90_000])
def test_lines_that_a_program_made_cost_little(path, line):
    one = CursorView(path, [*[line] * 3_000, "x." + line], [line] * 3_000)
    began = time.thread_time()
    seen = one.imports, one.weights, one.callee, one.chain, one.heads, one.types("x")
    assert len(seen) == 6
    assert time.thread_time() - began < 1.0  # a collection of garbage may fall into it


def test_pythons_imports_name_modules_and_what_is_taken_of_them():
    lines = [
        "import os.path as p, json",
        "from shop.models import (  # the tables",
        "    Order,",
        "    Cart as Basket,",
        ")",
        "from . import names",
        "from ..store import Store",
    ]
    assert imports(tuple(lines), "a/b/c.py") == {
        "p": Imported(("os", "path"), ""),
        "json": Imported(("json",), ""),
        "Order": Imported(("shop", "models"), "Order"),
        "Basket": Imported(("shop", "models"), "Cart"),
        "names": Imported(("a", "b"), "names", is_whole=True),
        "Store": Imported(("a", "store"), "Store", is_whole=True),
    }


def test_scripts_import_by_paths():
    lines = [
        "import { load, save as keep } from '../io/files';",
        "const x = require('./y.js')",
        "import { z } from '.'",
    ]
    found = imports(tuple(lines), "src/app/main.ts")
    assert found["load"] == Imported(("src", "io", "files"), "load", is_whole=True)
    assert found["keep"] == Imported(("src", "io", "files"), "save", is_whole=True)
    assert found["x"].module == ("src", "app", "y")
    assert found["z"].module == ("src", "app")
    assert imports(tuple(lines), "main.ts")["z"].module == ("",)


@pytest.mark.parametrize(
    ("line", "path", "name", "module"),
    [
        ("import shop.models.Order;", "A.java", "Order", ("shop", "models", "Order")),
        ('#include "shop/order.h"', "a.c", "shop/order.h", ("shop", "order")),
    ],
)
def test_other_languages_name_classes_and_headers(line, path, name, module):
    assert imports((line,), path)[name].module == module
    assert imports((line,), "a.txt") == {}
