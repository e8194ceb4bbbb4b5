"""What a file imports, and from where."""

from lsp_server.repository.imports import Imported, imports


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
    found = imports(tuple(lines), "a/b/c.py")
    assert found["p"] == Imported(("os", "path"), "")
    assert found["json"] == Imported(("json",), "")
    assert found["Basket"] == Imported(("shop", "models"), "Cart")
    assert found["Order"] == Imported(("shop", "models"), "Order")
    assert found["names"] == Imported(("a", "b"), "names", is_whole=True)
    assert found["Store"] == Imported(("a", "store"), "Store", is_whole=True)


def test_scripts_import_by_paths():
    lines = ["import { load, save as keep } from '../io/files';", "const x = require('./y.js')"]
    found = imports(tuple(lines), "src/app/main.ts")
    assert found["load"] == Imported(("src", "io", "files"), "load", is_whole=True)
    assert found["keep"] == Imported(("src", "io", "files"), "save", is_whole=True)
    assert found["x"].module == ("src", "app", "y")


def test_other_languages_name_classes_and_headers():
    assert imports(("import shop.models.Order;",), "A.java")["Order"].module == (
        "shop",
        "models",
        "Order",
    )
    assert imports(('#include "shop/order.h"',), "a.c")["shop/order.h"].module == ("shop", "order")
    assert imports(("import os",), "a.txt") == {}
