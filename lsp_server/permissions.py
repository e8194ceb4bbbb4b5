"""What may be completed, and what may leave the editor at all."""

import posixpath
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from lsp_server.documents.document import Snapshot
from lsp_server.prompt.ignore_files import compiled
from lsp_server.prompt.privacy import Privacy
from lsp_server.prompt.secret_files import holds_private_key
from lsp_server.reasons import Reason, base_name
from lsp_server.settings import Settings


class _Judged(NamedTuple):
    """The text whose lines were looked through last, and what they held."""

    lines: tuple[str, ...]
    holds_key: bool


class Permissions:
    """Judges documents by the settings, their names, the ignore files and what they hold."""

    def __init__(self, roots: Sequence[Path], settings: Settings) -> None:
        self._roots = roots
        self._settings = settings
        self._privacy = Privacy(roots, allowed=settings.allow_secret_files)
        self._disabled = compiled(settings.disabled_globs)
        self._judged: dict[str, _Judged] = {}

    def refusal(self, snapshot: Snapshot) -> Reason | None:
        """Why nothing is completed in a document; None where something is."""
        settings = self._settings
        if not (settings.enable and settings.languages.get(snapshot.language_id, True)):
            return Reason.DISABLED
        if self._disabled.match_file(self.path_of(snapshot.uri)):
            return Reason.DISABLED
        return self._hidden(snapshot)

    def may_send(self, snapshot: Snapshot) -> bool:
        """Whether a document may help to complete another one."""
        return self._hidden(snapshot) is None

    def path_of(self, uri: str) -> str:
        """A document's path for people and prompts: within its workspace folder if it is in one."""
        path = _path(uri)
        if path is None:
            return base_name(uri) or uri
        around = [root for root in self._roots if path.is_relative_to(root)]
        root = max(around, key=lambda root: len(root.parts), default=path.parent)
        return path.relative_to(root).as_posix()

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._judged.pop(uri, None)

    def _hidden(self, snapshot: Snapshot) -> Reason | None:
        path = _path(snapshot.uri)
        if path is not None and (hidden := self._privacy.hidden(path)):
            return Reason(hidden.value)
        return Reason.SECRET_FILE if self._holds_key(snapshot) else None

    def _holds_key(self, snapshot: Snapshot) -> bool:
        judged = self._judged.get(snapshot.uri)
        if judged is None or judged.lines is not snapshot.lines:
            judged = _Judged(snapshot.lines, holds_private_key(snapshot.lines))
            self._judged[snapshot.uri] = judged
        return judged.holds_key


def _path(uri: str) -> Path | None:
    """The file that a URI names, if any, whatever the scheme.

    Cells of notebooks are in theirs; a file's state in git, or one that is not saved yet, is as
    secret as the file. What is not in a folder stands in none that has lists.
    """
    try:
        name = unquote(urlsplit(uri).path)
    except ValueError:  # brackets that hold no address
        name = unquote(uri.partition(":")[2])
    return Path(posixpath.normpath("/" + name.lstrip("/"))) if name.strip("/") else None
