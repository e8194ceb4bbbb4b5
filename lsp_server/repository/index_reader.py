"""An index that is asked while another process may fill it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from lsp_server.repository.store import Store, StoreError


class IndexReader(Store):
    """An index opened to be read, for one thread."""

    @contextmanager
    def reading(self) -> Iterator[None]:
        """See one state of the index, so that a text and its file's stamp belong together.

        Raises StoreError, and where the index is damaged, what is read in it does.
        """
        try:
            self._connection.execute("BEGIN")
            try:
                yield
            finally:
                self._connection.rollback()
        except sqlite3.Error as error:
            raise StoreError(f"the index of the repository cannot be used: {error}") from error
