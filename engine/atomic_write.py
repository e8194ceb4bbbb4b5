"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO


@contextmanager
def atomic_write(path: Path) -> Iterator[BinaryIO]:
    """Yield a file that replaces `path` when the block ends without an error.

    Makes the folder. Whoever reads `path` meanwhile, in any process, reads the old file.
    Raises OSError, which names the file.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
        Path(draft).replace(path)
    except OSError as error:
        if error.errno is not None and error.filename in (None, draft):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        Path(draft).unlink(missing_ok=True)
