"""What may be completed, and what may leave the editor."""

import asyncio
from collections.abc import Sequence
from pathlib import Path

from lsp_server.documents.document import Snapshot
from lsp_server.documents.file_path import possible_paths
from lsp_server.language_names import PROSE, language_of
from lsp_server.privacy.hidden_files import HiddenFiles, innermost
from lsp_server.privacy.ignore_files import SettingGlobs
from lsp_server.privacy.secret_texts import UNREAD, SecretLines, SecretText
from lsp_server.reasons import Reason, base_name
from lsp_server.settings import Settings

_AT_ONCE = 250_000  # characters that are searched while all documents wait: 20 ms


class Permissions:
    """Judges documents by the settings, the ignore files, their names and their text."""

    def __init__(self, roots: Sequence[Path], settings: Settings) -> None:
        self._roots = roots
        self._settings = settings
        self._languages = {language_of(name): on for name, on in settings.languages.items()}
        self._files = HiddenFiles(roots, allowed=settings.allow_secret_files)
        self._disabled = SettingGlobs(settings.disabled_globs, unclear=True)
        self._secrets: dict[str, SecretLines] = {}  # by document

    def refusal(self, snapshot: Snapshot) -> Reason | None:
        """Why a document is not completed; None if it is."""
        settings = self._settings
        if not settings.enable:
            return Reason.DISABLED
        names = (snapshot.language_id, snapshot.named_language)
        if not all(self._languages.get(name, True) for name in names):
            return Reason.DISABLED_LANGUAGE
        if self._disabled.match(self.path_of(snapshot.uri)):
            return Reason.DISABLED_FILE
        return self._hidden(snapshot)

    def silence(self, snapshot: Snapshot) -> Reason | None:
        """Why a document is completed only on explicit request; None if it always is."""
        language = snapshot.language_id
        if language in PROSE and not self._languages.get(language):
            return Reason.PROSE
        is_empty = not any(line and not line.isspace() for line in snapshot.lines)
        return Reason.EMPTY_FILE if is_empty else None

    def may_send(self, snapshot: Snapshot) -> bool:
        """Whether a document may help to complete another one."""
        return self._hidden(snapshot) is None

    def path_of(self, uri: str) -> str:
        """A document's path for people and prompts: within its workspace folder if it is in one."""
        path = next(iter(possible_paths(uri)), None)
        if path is None:
            return base_name(uri) or uri
        return path.relative_to(innermost(path, self._roots) or path.parent).as_posix()

    def forget(self, uri: str) -> None:
        """A document was closed."""
        self._secrets.pop(uri, None)

    def _hidden(self, snapshot: Snapshot) -> Reason | None:
        for path in possible_paths(snapshot.uri):  # where it is not clear, each must be open
            if reason := self._files.reason(path):
                return reason
        secret = self.secret(snapshot)
        return None if secret is None else secret.reason

    def secret(self, snapshot: Snapshot) -> SecretText | None:
        """The first secret in a text, unless its file is allowed; a long text is hidden until read."""
        known = self._secrets.setdefault(snapshot.uri, SecretLines())
        if known.num_new(snapshot.lines) > _AT_ONCE:
            return SecretText(0, UNREAD)
        found = known.follow(snapshot.lines)
        if found is None or self._is_allowed(snapshot.uri):
            return None
        return found

    async def read(self, snapshot: Snapshot) -> None:
        """Search a long text in another thread, so that other documents are answered meanwhile."""
        known = self._secrets.setdefault(snapshot.uri, SecretLines())
        if known.num_new(snapshot.lines) > _AT_ONCE:
            fresh = SecretLines()
            await asyncio.to_thread(fresh.follow, snapshot.lines)
            if self._secrets.get(snapshot.uri) is known:
                self._secrets[snapshot.uri] = fresh

    def _is_allowed(self, uri: str) -> bool:
        paths = possible_paths(uri)
        return bool(paths) and all(map(self._files.allows, paths))
