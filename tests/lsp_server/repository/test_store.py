"""The index on disk."""

import sqlite3
import stat

import pytest

from lsp_server.repository.definitions import Definition
from lsp_server.repository.index_rules import rules_version
from lsp_server.repository.store import IndexedFile, Stamp, Store, StoreError, check_search, stem_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "index.sqlite"


def indexed(path: str, *words: str, size: int = 1) -> IndexedFile:
    defined = [Definition("load", "", is_class=False, line=3, text="def load():\n")]
    return IndexedFile(path, "python", Stamp(1, size), defined, [("def load():\n", words)])


def built(path, tmp_path, *files: IndexedFile) -> Store:
    store = Store.build(path, tmp_path)
    with store.writing():
        for one in files:
            store.put(one)
    return store


def test_only_its_user_can_read_an_index(path, tmp_path):
    built(path, tmp_path, indexed("a.py", "load"))
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in path.parent.iterdir())
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_a_file_that_changed_takes_the_place_of_what_it_was(path, tmp_path):
    store = built(path, tmp_path, indexed("a.py", "old"), indexed("a.py", "new", size=2))
    [number] = store.chunks_with("new", 9)
    assert store.chunk(number, "python").path == "a.py"
    assert store.chunks_with("old", 9) == []
    assert store.stamps == {"a.py": Stamp(1, 2)}
    assert [one.path for one in store.definitions("load", "python", 9)] == ["a.py"]


@pytest.mark.parametrize("sign", ["\u19b0", "\u19c8", "\u1cf2"])
def test_what_is_several_words_for_sqlite_asks_nothing(path, tmp_path, sign):
    """It knows an older Unicode than Python, and without positions it finds no phrase."""
    word = f"a{sign}b"
    store = built(path, tmp_path, indexed("a.py", word), indexed("b.py", "straße"))
    assert store.chunks_with(word, 9) in ([], [1])  # another SQLite may know the sign
    assert len(store.chunks_with("straße", 9)) == 1


def test_what_is_removed_is_gone_with_its_folder(path, tmp_path):
    store = built(path, tmp_path, indexed("a/b.py"), indexed("a_b/c.py"))
    with store.writing():
        store.remove_below("a")
    assert set(store.stamps) == {"a_b/c.py"}
    assert store.num_files == 1


def test_a_write_that_fails_leaves_nothing(path, tmp_path):
    store = built(path, tmp_path)

    def write():
        with store.writing():
            store.put(indexed("a.py"))
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert store.stamps == {}


def test_a_reader_sees_what_is_written_meanwhile(path, tmp_path):
    store = built(path, tmp_path)
    reader = Store.open(path)
    with store.writing():
        store.put(indexed("a.py"))
    assert reader.stamp("a.py") == Stamp(1, 1)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"\0" * 5000])
def test_a_damaged_file_is_no_index_and_is_made_anew(path, tmp_path, content):
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(StoreError):
        Store.open(path)
    assert built(path, tmp_path, indexed("a.py")).num_files == 1


def test_an_index_of_another_folder_or_version_is_made_anew(path, tmp_path):
    built(path, tmp_path, indexed("a.py")).close()
    elsewhere = tmp_path / "elsewhere"
    assert Store.build(path, elsewhere).num_files == 0
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreError, match="another version"):
        Store.open(path)
    assert Store.build(path, elsewhere).num_files == 0


def test_a_sqlite_without_full_text_search_is_named():
    with sqlite3.connect(":memory:") as connection:
        connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
        with pytest.raises(StoreError, match="has no full text search"):
            check_search(connection)


def test_a_file_is_imported_by_its_own_name_or_its_folders():
    assert [stem_of(one) for one in ("a/b.py", "a/__init__.py", "a/b.d.ts")] == ["b", "a", "b"]


def test_an_index_that_was_filled_by_other_rules_is_made_anew(path, tmp_path, monkeypatch):
    built(path, tmp_path, indexed("a.py")).close()
    assert Store.open(path).num_files == 1
    rules = tmp_path / "rules.py"
    rules.write_text("# Another pattern.\n")
    monkeypatch.setattr("lsp_server.repository.source_text.__file__", str(rules))
    rules_version.cache_clear()
    try:
        with pytest.raises(StoreError, match="another version"):
            Store.open(path)
        assert Store.build(path, tmp_path).num_files == 0
    finally:
        rules_version.cache_clear()
