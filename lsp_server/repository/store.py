"""The index of one folder on disk: its files, their definitions, and the chunks of each word.

SQLite keeps words without positions. A chunk has its words, too, as SQLite needs them to delete it.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple, Self

from engine.text.names import FOLDER_STEMS
from lsp_server.repository.definitions import Definition
from lsp_server.repository.source_text import family_of, words_in

_TABLES = """
CREATE TABLE folder (path TEXT);
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
SELECT file.path, definition.name, parent, is_class, line, text FROM definition
JOIN file ON file.id = definition.file WHERE ?where LIMIT ?
"""
_AT_OR_BELOW = "SELECT id FROM file WHERE path = ? OR (path > ? AND path < ?)"
_PASSING = frozenset(  # SQLite's errors for a file that may be whole
    getattr(sqlite3, f"SQLITE_{name}")
    for name in ["BUSY", "LOCKED", "NOMEM", "READONLY", "IOERR", "FULL", "CANTOPEN", "PROTOCOL"]
)
_BUSY_S = 5.0  # seconds to wait for another process's lock, sqlite3's default
_PAGES_KB = 4_096  # page cache of a reader, about twice SQLite's default
_WRITTEN_KB = 16_384  # page cache of a writer, four times that of a reader
_LOG_PAGES = 8_000  # pages of 4 KB in the log before they move into the file: some change often


class Stamp(NamedTuple):
    """Time and size of a file, which tell whether it changed."""

    modified_ns: int
    size: int


class Excerpt(NamedTuple):
    """Whole lines of a file, and the file's stamp when it was read."""

    path: str
    text: str
    stamp: Stamp
    is_definition: bool = False


class StoreError(Exception):
    """The index is damaged, missing, without FTS5 or, if `is_passing`, blocked for the moment."""

    def __init__(self, message: str, *, is_passing: bool = False) -> None:
        super().__init__(message)
        self.is_passing = is_passing


class Store:
    """An open index, for one thread. Its methods raise StoreError where the file is damaged."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    @classmethod
    def build(cls, path: Path, folder: Path) -> Self:
        """Open or create a folder's index, for its user alone, to write. Raises StoreError."""
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        path.touch(mode=0o600)
        with _store_errors():
            connection = sqlite3.connect(path, timeout=_BUSY_S, isolation_level=None)
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.execute(f"PRAGMA cache_size = -{_WRITTEN_KB}")
            connection.execute("PRAGMA secure_delete = ON")
            connection.execute(f"PRAGMA wal_autocheckpoint = {_LOG_PAGES}")
            if not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
                connection.executescript(f"BEGIN; {_TABLES} COMMIT;")
            new = "INSERT INTO folder SELECT ? WHERE NOT EXISTS (SELECT * FROM folder)"
            connection.execute(new, [str(folder)])
            return cls(connection)

    @classmethod
    def open(cls, path: Path) -> Self:
        """Open an existing index for reading. Raises StoreError."""
        with _store_errors():
            uri = f"{path.absolute().as_uri()}?mode=ro"
            store = cls(sqlite3.connect(uri, uri=True, timeout=0.1))
            store._connection.execute(f"PRAGMA cache_size = -{_PAGES_KB}")
        if not store._rows("SELECT count(*) FROM sqlite_master")[0][0]:
            store.close()
            raise StoreError("the index of the repository is just being made", is_passing=True)
        return store

    def close(self) -> None:
        """Close the file."""
        self._connection.close()

    @property
    def folder(self) -> Path:
        """The folder that this indexes."""
        rows = self._rows("SELECT path FROM folder")
        return Path(str(rows[0][0])) if rows else Path()

    @property
    def is_whole(self) -> bool:
        """Whether the last look at all files was completed."""
        return bool(self._rows("PRAGMA user_version")[0][0])

    def keep_whole(self, *, is_whole: bool) -> None:
        """Record whether the last look at all files was completed."""
        self._rows(f"PRAGMA user_version = {int(is_whole)}")

    @property
    def stamps(self) -> Mapping[str, Stamp]:
        """The files of the index, with the stamps at which they were read."""
        rows = self._rows("SELECT path, modified_ns, size FROM file")
        return {path: Stamp(modified_ns, size) for path, modified_ns, size in rows}

    def stamp(self, path: str) -> Stamp | None:
        """Return a file's stamp when it was read; None if the index lacks it."""
        rows = self._rows("SELECT modified_ns, size FROM file WHERE path = ?", [path])
        return Stamp(*rows[0]) if rows else None

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Write all or nothing."""
        with _store_errors(), self._connection:
            self._connection.execute("BEGIN IMMEDIATE")
            yield

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Read one state while others write: a text and its stamp match. Raises StoreError."""
        with _store_errors():
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()

    def put(
        self, path: str, stamp: Stamp, defined: Iterable[Definition], windows: Iterable[str]
    ) -> None:
        """Store a file's definitions and windows, in place of earlier ones."""
        self.remove(path)
        execute = self._connection.execute
        row = path, stem_of(path), family_of(path), *stamp
        file = execute("INSERT INTO file VALUES (NULL, ?, ?, ?, ?, ?)", row).lastrowid
        self._connection.executemany(
            "INSERT INTO definition VALUES (?, ?, ?, ?, ?, ?)",
            ((d.name, d.parent, d.is_class, d.line, d.text, file) for d in defined),
        )
        for text in windows:
            words = " ".join(words_in(text))
            packed = zlib.compress(f"{text}\0{words}".encode("utf-8", "replace"), 1)
            chunk = execute("INSERT INTO chunk VALUES (NULL, ?, ?)", [file, packed]).lastrowid
            execute("INSERT INTO word (rowid, words) VALUES (?, ?)", [chunk, words])

    def remove(self, path: str) -> None:
        """Remove a file, or all files below a folder."""
        execute = self._connection.execute
        for (file,) in self._rows(_AT_OR_BELOW, _range(path)):
            for chunk, packed in self._rows("SELECT id, text FROM chunk WHERE file = ?", [file]):
                gone = chunk, _unpacked(packed)[1]
                execute("INSERT INTO word (word, rowid, words) VALUES ('delete', ?, ?)", gone)
            execute("DELETE FROM definition WHERE file = ?", [file])
            execute("DELETE FROM chunk WHERE file = ?", [file])
            execute("DELETE FROM file WHERE id = ?", [file])

    def holds(self, path: str) -> bool:
        """Whether the index has a file, or one below a folder."""
        return bool(self._rows(_AT_OR_BELOW, _range(path)))

    def forget_removed(self) -> None:
        """Erase removed files from the disk: words, free pages and the log."""
        with _store_errors():
            self._connection.execute("INSERT INTO word (word) VALUES ('optimize')")
            self._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def definitions(self, name: str, family: str, most: int) -> list[Definition]:
        """Return at most `most` definitions of a name, unsorted, as there may be thousands."""
        where = "definition.name = ? AND file.family = ?"
        return self._found(where, [name, family, most])

    def members(self, path: str, parent: str, most: int) -> list[Definition]:
        """Return, in order, members of a class, or a file's own definitions without a `parent`."""
        return self._found("file.path = ? AND definition.parent = ?", [path, parent, most])

    def named_in(self, path: str, name: str) -> list[Definition]:
        """Return a file's definitions of a name, at most ten."""
        return self._found("definition.name = ? AND file.path = ?", [name, path, 10])

    def files_named(self, stem: str, family: str) -> list[str]:
        """Return the files of a name without ending, those nearest to the top first."""
        rows = self._rows(
            "SELECT path FROM file WHERE stem = ? AND family = ? ORDER BY length(path), path",
            [stem, family],
        )
        return [str(path) for (path,) in rows]

    def chunks_with(self, word: str, most: int) -> list[int]:
        """Return the numbers of at most `most` chunks that hold a word; some may be gone."""
        quoted = '"' + word.replace('"', "") + '"'
        try:
            rows = self._rows("SELECT rowid FROM word WHERE word MATCH ? LIMIT ?", [quoted, most])
        except StoreError:
            if word.isascii():
                raise
            return []  # several words to SQLite, whose Unicode is older than Python's
        return [row for (row,) in rows]

    def chunk(self, number: int, family: str) -> Excerpt | None:
        """Return a chunk, or None if it is gone or of another family."""
        rows = self._rows(
            "SELECT file.path, chunk.text, modified_ns, size FROM chunk "
            "JOIN file ON file.id = chunk.file WHERE chunk.id = ? AND family = ?",
            [number, family],
        )
        for path, packed, *stamp in rows:
            return Excerpt(path, _unpacked(packed)[0], Stamp(*stamp))
        return None

    @property
    def num_chunks(self) -> int:
        """The number of chunks ever stored."""
        rows = self._rows("SELECT seq FROM sqlite_sequence WHERE name = 'chunk'")
        return int(rows[0][0]) if rows else 0

    def _found(self, where: str, values: Sequence[object]) -> list[Definition]:
        rows = self._rows(_DEFINITIONS.replace("?where", where), values)
        return [
            Definition(path, name, parent, bool(is_class), line, text)
            for path, name, parent, is_class, line, text in rows
        ]

    def _rows(self, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with _store_errors():
            return self._connection.execute(query, values).fetchall()


def _unpacked(packed: bytes) -> tuple[str, str]:
    try:
        text, _, words = zlib.decompress(packed).decode().partition("\0")
    except (zlib.error, TypeError, ValueError) as error:
        raise StoreError(f"the index of the repository is damaged: {error}") from error
    return text, words


def _range(path: str) -> tuple[str, str, str]:
    """Return a path, and the bounds of those below it: `0` follows the slash."""
    return path, f"{path}/", f"{path}0"


def stem_of(path: str) -> str:
    """Return the name that imports use for a file: its own without ending, or its folder's."""
    inner = PurePosixPath(path)
    stem = inner.name.partition(".")[0]
    return inner.parent.name if stem in FOLDER_STEMS else stem


def remove_store(path: Path) -> None:
    """Remove an index and what SQLite keeps beside it."""
    for each in (path, *(path.with_name(path.name + end) for end in ("-wal", "-shm"))):
        each.unlink(missing_ok=True)


@contextmanager
def _store_errors() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:  # the latter: SQLite's own message
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
        raise StoreError(
            f"the index of the repository cannot be used: {error}", is_passing=code in _PASSING
        ) from error
