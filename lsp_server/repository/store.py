"""The index of one folder on disk: which files it holds, what they define, where words stand.

SQLite's full text search keeps the words of each chunk without positions. They are kept with the
chunk, too: who has a word forgotten has to say it.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from engine.names import FOLDER_STEMS
from lsp_server.repository.definitions import Definition
from lsp_server.repository.index_rules import rules_version

_TABLES = """
CREATE TABLE folder (path TEXT, is_whole INTEGER);
CREATE TABLE file (
    id INTEGER PRIMARY KEY, path TEXT UNIQUE, stem TEXT, family TEXT,
    modified_ns INTEGER, size INTEGER);
CREATE INDEX file_stem ON file (stem);
CREATE TABLE definition (
    name TEXT, parent TEXT, is_class INTEGER, line INTEGER, text TEXT, file INTEGER);
CREATE INDEX definition_name ON definition (name);
CREATE INDEX definition_file ON definition (file, name);
CREATE TABLE chunk (
    id INTEGER PRIMARY KEY AUTOINCREMENT, file INTEGER, text BLOB);
CREATE INDEX chunk_file ON chunk (file);
CREATE VIRTUAL TABLE word USING fts5 (
    words, content = '', detail = none, columnsize = 0,
    tokenize = "unicode61 remove_diacritics 0 tokenchars '_'");
"""
_DEFINITIONS = """
SELECT definition.name, parent, is_class, line, text, file.path FROM definition
JOIN file ON file.id = definition.file WHERE ?where LIMIT ?
"""
_PATHS_BELOW = "SELECT path FROM file WHERE path > ? AND path < ? LIMIT ?"
_PASSING = frozenset(  # what SQLite says of a file that may be whole
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ["BUSY", "LOCKED", "NOMEM", "READONLY", "IOERR", "FULL", "CANTOPEN", "PROTOCOL"]
)
_BUSY_S = 5.0
_PAGES_KB = 4_096  # that a reader keeps in memory
_WRITTEN_KB = 16_384  # that a writer does
_LOG_PAGES = 8_000  # of 4 KB, written before they are moved into the file: some many times


class Stamp(NamedTuple):
    """By this a file that changed is noticed."""

    modified_ns: int
    size: int


class TextWindow(NamedTuple):
    """Lines of a file."""

    path: str
    text: str


class IndexedFile(NamedTuple):
    """What is to be known of a file."""

    path: str  # within the folder, with slashes
    family: str
    stamp: Stamp
    definitions: Sequence[Definition]
    chunks: Sequence[tuple[str, Iterable[str]]]  # lines, and the words on them
    is_read: bool = True  # as a whole


class FoundDefinition(NamedTuple):
    """A definition, and the file where it stands."""

    definition: Definition
    path: str


class StoreError(Exception):
    """The index cannot be used: it is damaged, of another version, or SQLite lacks FTS5.

    `is_passing`: the file is as good as before; another process or the disk stands in the way.
    """

    def __init__(self, message: str, *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class Store:
    """An open index, for one thread. Its methods raise StoreError where the file is damaged."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def build(cls, path: Path, folder: Path) -> Self:
        """Open the index at `path` to write it, making it anew unless it is whole and of `folder`.

        Only its user can read it. Raises StoreError where SQLite lacks FTS5.
        """
        try:
            return cls._made(path, folder)
        except StoreError:
            remove_store(path)
            return cls._made(path, folder)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an index that is there, to read it. Raises StoreError."""
        with _store_errors():
            uri = f"{path.absolute().as_uri()}?mode=ro"
            store = cls(sqlite3.connect(uri, uri=True, timeout=0.1))
            store._connection.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
            if store._version() != index_version():
                store.close()
                raise StoreError("the index is of another version", is_passing=True)
            return store

    @classmethod
    def _made(cls, path: Path, folder: Path) -> Self:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        with _store_errors():
            store = cls(sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None))
            store._connection.execute("PRAGMA journal_mode = WAL")
            store._connection.execute("PRAGMA synchronous = NORMAL")
            store._connection.execute(f"PRAGMA cache_size = -{_WRITTEN_KB}")
            store._connection.execute("PRAGMA secure_delete = ON")
            store._connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            if not store._version():
                check_search(store._connection)
                store._make_tables(folder)
            is_known = store._version() == index_version()
            if not is_known or store.folder != folder:
                store.close()
                raise StoreError("the index is not of this folder and version")
            return store

    def _make_tables(self, folder: Path) -> None:
        self._connection.executescript(
            f"BEGIN; {_TABLES} PRAGMA user_version = {index_version()}; COMMIT;"
        )
        self._connection.execute("INSERT INTO folder VALUES (?, 0)", [str(folder)])

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def folder(self) -> Path:
        """The folder whose files these are."""
        rows = self._rows("SELECT path FROM folder")
        return Path(str(rows[0][0])) if rows else Path()

    @property
    def is_whole(self) -> bool:
        """Whether all files of the folder were looked at since the index was made."""
        return bool(self._rows("SELECT count(*) FROM folder WHERE is_whole")[0][0])

    def note_whole(self) -> None:
        """All files of the folder were looked at."""
        self._connection.execute("UPDATE folder SET is_whole = 1")

    @property
    def stamps(self) -> Mapping[str, Stamp]:
        """The files that the index holds, as they were then."""
        rows = self._rows("SELECT path, modified_ns, size FROM file")
        return {path: Stamp(modified_ns, size) for path, modified_ns, size in rows}

    def stamp(self, path: str) -> Stamp | None:
        """What a file was when it was read; None where the index does not hold it."""
        rows = self._rows("SELECT modified_ns, size FROM file WHERE path = ?", [path])
        return Stamp(*rows[0]) if rows else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all of it or nothing."""
        with _store_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of an index that others may write, so that a text and its stamp fit.

        Raises StoreError, and where the index is damaged, what is read in it does.
        """
        with _store_errors():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()

    def put(self, one: IndexedFile) -> None:
        """Hold a file, in place of what it was."""
        self.remove(one.path)
        execute = self._connection.execute
        row = one.path, stem_of(one.path), one.family, *one.stamp
        file = execute("INSERT INTO file VALUES (NULL, ?, ?, ?, ?, ?)", row).lastrowid
        self._connection.executemany(
            "INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?)",
            ((d.name, d.parent, d.is_class, d.line, d.text, file) for d in one.definitions),
        )
        for text, words in one.chunks:
            said = " ".join(words)
            packed = zlib.compress(f"{text}\0{said}".encode("utf-8", "replace"), 1)
            chunk = execute("INSERT INTO chunk VALUES (NULL, ?, ?)", [file, packed]).lastrowid
            execute("INSERT INTO word (rowid, words) VALUES (?, ?)", [chunk, said])

    def remove(self, path: str) -> None:
        """Hold a file no longer."""
        execute = self._connection.execute
        for (file,) in self._rows("SELECT id FROM file WHERE path = ?", [path]):
            for chunk, packed in self._rows("SELECT id, text FROM chunk WHERE file = ?", [file]):
                gone = chunk, _unpacked(packed)[1]
                execute("INSERT INTO word (word, rowid, words) VALUES ('delete', ?, ?)", gone)
            execute("DELETE FROM definition WHERE file = ?", [file])
            execute("DELETE FROM chunk WHERE file = ?", [file])
            execute("DELETE FROM file WHERE id = ?", [file])

    def forget_removed(self) -> None:
        """Leave nothing of removed files on the disk, neither words nor free pages nor the log."""
        with _store_errors():
            self._connection.execute("INSERT INTO word (word) VALUES ('optimize')")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def remove_below(self, folder: str) -> None:
        """Hold no file below a folder."""
        for (path,) in self._rows(_PATHS_BELOW, [*_below(folder), -1]):
            self.remove(path)

    def holds_below(self, folder: str) -> bool:
        """Whether it holds a file below a folder."""
        return bool(self._rows(_PATHS_BELOW, [*_below(folder), 1]))

    def definitions(self, name: str, family: str, most: int) -> list[FoundDefinition]:
        """Where a name is defined, at `most` places: not in order, as there may be thousands."""
        where = "definition.name = ? AND file.family = ?"
        return self._found(where, [name, family, most])

    def members(self, path: str, parent: str, most: int) -> list[FoundDefinition]:
        """What a class of a file holds, or what the file itself defines where `parent` is ""."""
        # In the order in which they were read, which is that of the file.
        return self._found("file.path = ? AND definition.parent = ?", [path, parent, most])

    def named_in(self, path: str, name: str) -> list[FoundDefinition]:
        """Where a file defines a name."""
        return self._found("definition.name = ? AND file.path = ?", [name, path, 10])

    def files_named(self, stem: str, family: str) -> list[str]:
        """Files of a name, without its ending, those nearest to the folder first."""
        rows = self._rows(
            "SELECT path FROM file WHERE stem = ? AND family = ? ORDER BY length(path), path",
            [stem, family],
        )
        return [str(path) for (path,) in rows]

    def chunks_with(self, word: str, most: int) -> list[int]:
        """The numbers of chunks that hold a word, at most `most` of them; some may be gone.

        None hold what is one word for Python, and several for SQLite, which knows an older Unicode.
        """
        quoted = '"' + word.replace('"', "") + '"'
        try:
            rows = self._rows("SELECT rowid FROM word WHERE word MATCH ? LIMIT ?", [quoted, most])
        except StoreError:
            if word.isascii():
                raise
            return []
        return [row for (row,) in rows]

    def chunk(self, number: int, family: str) -> TextWindow | None:
        """A chunk, if it is there and of this family."""
        rows = self._rows(
            "SELECT file.path, chunk.text FROM chunk JOIN file ON file.id = chunk.file "
            "WHERE chunk.id = ? AND family = ?",
            [number, family],
        )
        return TextWindow(rows[0][0], _unpacked(rows[0][1])[0]) if rows else None

    @property
    def num_chunks(self) -> int:
        """How many there are, or were."""
        rows = self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'chunk'")
        return int(rows[0][0]) if rows else 0

    @property
    def num_files(self) -> int:
        """How many files it holds."""
        return int(self._rows("SELECT count(*) FROM file")[0][0])

    def _found(self, where: str, values: Sequence[object]) -> list[FoundDefinition]:
        rows = self._rows(_DEFINITIONS.replace("?where", where), values)
        return [
            FoundDefinition(Definition(name, parent, bool(is_class), line, text), path)
            for name, parent, is_class, line, text, path in rows
        ]

    def _version(self) -> int:
        return int(self._rows("PRAGMA user_version")[0][0])

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _store_errors():
            return self._connection.execute(query, values).fetchall()


def _unpacked(packed: bytes) -> tuple[str, str]:
    """The text of a chunk, and its words."""
    try:
        text, _, words = zlib.decompress(packed).decode().partition("\0")
    except (zlib.error, TypeError, ValueError) as error:
        raise StoreError(f"the index of the repository is damaged: {error}") from error
    return text, words


def index_version() -> int:
    """A number for the tables and for the rules that fill them."""
    return rules_version(_TABLES)


def _below(folder: str) -> tuple[str, str]:
    """Between these are the paths below a folder: `0` is the character behind the slash."""
    return f"{folder}/", f"{folder}0"


def stem_of(path: str) -> str:
    """The name that a file is imported by: its own without the ending, or its folder's."""
    inner = PurePosixPath(path)
    stem = inner.name.partition(".")[0]
    return inner.parent.name if stem in FOLDER_STEMS else stem


def remove_store(path: Path) -> None:
    """Remove an index and what SQLite keeps beside it."""
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        each.unlink(missing_ok=True)


def check_search(connection: sqlite3.Connection) -> None:
    """Raise StoreError where this Python's SQLite cannot search texts."""
    try:
        connection.execute("CREATE VIRTUAL TABLE temp.tried USING fts5 (words)")
        connection.execute("DROP TABLE temp.tried")
    except sqlite3.DatabaseError as error:
        raise StoreError(
            f"the SQLite {sqlite3.sqlite_version} of this Python has no full text search (FTS5)"
        ) from error


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the second of what SQLite says of damage
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        raise StoreError(
            f"the index of the repository cannot be used: {error}", is_passing=code in _PASSING
        ) from error
