"""The index on disk."""

import stat

import pytest

from lsp_server.repository.definitions import Definition
from lsp_server.repository.store import Stamp, Store, StoreError, stem_of


@pytest.fixture
def path(tmp_path):
    return tmp_path / "cache" / "index.sqlite"


@pytest.fixture
def store(path, tmp_path):
    return Store.build(path, tmp_path)


def put(store: Store, path: str, text: str = "load\n", size: int = 1) -> None:
    defined = [Definition(path, "load", "", is_class=False, line=3, text="def load():\n")]
    with store.writing():
        store.put(path, Stamp(1, size), defined, [text])


def test_only_its_user_can_read_an_index(path, store):
    put(store, "a.py")
    assert all(stat.S_IMODE(one.stat().st_mode) == 0o600 for one in path.parent.iterdir())
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_an_index_whose_tables_are_still_to_come_is_not_damaged(path):
    path.parent.mkdir()
    path.touch()
    with pytest.raises(StoreError) as raised:
        Store.open(path)
    assert raised.value.is_passing


def test_a_file_that_changed_takes_the_place_of_what_it_was(store):
    put(store, "a.py", "old")
    put(store, "a.py", "new", size=2)
    [number] = store.chunks_with("new", 9)
    assert store.chunk(number, "python") == ("a.py", "new", Stamp(1, 2), False)
    assert store.chunks_with("old", 9) == []
    assert store.stamps == {"a.py": Stamp(1, 2)}
    assert [one.path for one in store.definitions("load", "python", 9)] == ["a.py"]


@pytest.mark.parametrize("sign", ["\u19b0", "\u19c8", "\u1cf2"])
def test_what_is_several_words_for_sqlite_asks_nothing(store, sign):
    """It knows an older Unicode than Python, and without positions it finds no phrase."""
    word = f"a{sign}b"
    put(store, "a.py", word)
    put(store, "b.py", "straße")
    assert store.chunks_with(word, 9) in ([], [1])  # another SQLite may know the sign
    assert len(store.chunks_with("straße", 9)) == 1


def test_what_is_removed_is_gone_with_its_folder(store):
    put(store, "a/b.py")
    put(store, "a_b/c.py")
    assert [store.holds(one) for one in ("a", "a/b.py", "a_b", "b.py")] == [True, True, True, False]
    with store.writing():
        store.remove("a")
    assert set(store.stamps) == {"a_b/c.py"}
    assert not store.holds("a")


def test_a_write_that_fails_leaves_nothing(store):
    def write():
        with store.writing():
            store.put("a.py", Stamp(1, 1), [], [])
            raise KeyError

    with pytest.raises(KeyError):
        write()
    assert store.stamps == {}


def test_a_reader_sees_what_is_written_meanwhile(path, store):
    reader = Store.open(path)
    put(store, "a.py")
    assert reader.stamp("a.py") == Stamp(1, 1)
    assert reader.folder == store.folder


def test_a_file_is_imported_by_its_own_name_or_its_folders():
    assert [stem_of(one) for one in ("a/b.py", "a/__init__.py", "a/b.d.ts")] == ["b", "a", "b"]
