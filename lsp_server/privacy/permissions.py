"""Decides which documents may be completed, and which may leave the editor."""

import asyncio
import copy
import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from lsp_server.documents.document import Snapshot
from lsp_server.documents.file_path import possible_paths
from lsp_server.language_names import PROSE, language_of
from lsp_server.privacy.hidden_files import HiddenFiles, innermost, path_filter
from lsp_server.privacy.regular_files import Look
from lsp_server.privacy.secret_texts import AT_ONCE, UNREAD, SecretLines, SecretText
from lsp_server.reasons import Reason
from lsp_server.settings import Settings

_QUICK_S = 0.02  # seconds; a look that is this quick is repeated for each judgement
_MOST_AT_ONCE = 250_000  # characters searched on the event loop, which takes 20 ms
_LOOK_SHARE = 0.05  # share of the time that looks at a slow disk may take


class _Judged(NamedTuple):
    """The verdict on a document by its path and the ignore files."""

    reason: Reason | None
    is_allowed: bool  # whatever its text

    @classmethod
    def by(cls, files: HiddenFiles, uri: str, look: Look) -> "_Judged":
        """Judge a URI; if it may mean several files, one hidden file hides it."""
        paths = possible_paths(uri)
        reasons = filter(None, (files.reason(path, look) for path in paths))
        is_allowed = bool(paths) and all(files.allows(path, look) for path in paths)
        return cls(next(reasons, None), is_allowed)


class Permissions:
    """Judges documents by settings, ignore files, name and text; `look` prepares it in a thread."""

    def __init__(
        self, roots: Sequence[Path], settings: Settings, former: "Permissions | None" = None
    ) -> None:
        self._roots = roots
        self._settings = settings
        self._languages = {language_of(name): on for name, on in settings.languages.items()}
        self._files = HiddenFiles(roots, allowed=settings.allow_secret_files)
        self._is_disabled = path_filter(settings.disabled_globs, unclear=True)
        # By document: its secrets, and the verdict of the last look, which took `look_s`.
        self.texts: dict[str, SecretLines] = former.texts if former else {}
        self.judged: Mapping[str, _Judged] = former.judged if former else {}
        self.look_s: float = former.look_s if former else 0.0
        self._valid_until = 0.0  # by the monotonic clock, where the disk is slow
        self._looking: asyncio.Future[None] | None = None

    async def look(self, snapshots: Sequence[Snapshot]) -> None:
        """Judge the open documents off the event loop, unless that has just been done."""
        if self._looking is not None:
            await asyncio.shield(self._looking)
        if self.knows(snapshots):
            return
        if self._looking is None:
            self._looking = asyncio.ensure_future(self._look(snapshots))
        await asyncio.shield(self._looking)

    def knows(self, snapshots: Sequence[Snapshot]) -> bool:
        """Whether these documents can be judged at once."""
        if self.look_s > _QUICK_S and time.monotonic() > self._valid_until:
            return False
        return all(
            one.uri in self.judged and self._lines(one.uri).num_new(one.lines) <= AT_ONCE
            for one in snapshots
        )

    def outdate(self) -> None:
        """Discard verdicts, as an ignore file changed."""
        self._valid_until = 0

    async def _look(self, snapshots: Sequence[Snapshot]) -> None:
        texts = {one.uri: copy.copy(self._lines(one.uri)) for one in snapshots}
        self._valid_until = math.inf
        try:
            await asyncio.to_thread(self._judge, snapshots, texts)
        finally:
            self._looking = None
        self.texts |= {uri: text for uri, text in texts.items() if uri in self.texts}
        if self._valid_until:  # otherwise an ignore file changed meanwhile
            self._valid_until = time.monotonic() + self.look_s / _LOOK_SHARE

    def _judge(self, snapshots: Sequence[Snapshot], texts: Mapping[str, SecretLines]) -> None:
        look, began = Look(), time.monotonic()
        self.judged = {one.uri: _Judged.by(self._files, one.uri, look) for one in snapshots}
        self.look_s = time.monotonic() - began
        for one in snapshots:
            texts[one.uri].follow(one.lines)

    def refusal(self, snapshot: Snapshot) -> Reason | None:
        """Return why a document is not completed, or None."""
        settings = self._settings
        if not settings.enable:
            return Reason.DISABLED
        names = (snapshot.language_id, snapshot.named_language)
        if not all(self._languages.get(name, True) for name in names):
            return Reason.DISABLED_LANGUAGE
        if self._is_disabled(self.path_of(snapshot.uri)):
            return Reason.DISABLED_FILE
        return self.why_hidden(snapshot)

    def silence(self, snapshot: Snapshot) -> Reason | None:
        """Return why a document is completed only on explicit request, or None."""
        language = snapshot.language_id
        if language in PROSE and not self._languages.get(language):
            return Reason.PROSE
        is_empty = not any(line and not line.isspace() for line in snapshot.lines)
        return Reason.EMPTY_FILE if is_empty else None

    def why_hidden(self, snapshot: Snapshot) -> Reason | None:
        """Return why a document may not leave the editor, or None."""
        if reason := self._judgement(snapshot.uri).reason:
            return reason
        secret = self.secret(snapshot)
        return None if secret is None else secret.reason

    def may_send(self, snapshot: Snapshot) -> bool:
        """Whether a document may help to complete another one."""
        return self.why_hidden(snapshot) is None

    def path_of(self, uri: str) -> str:
        """Return a document's path for people and prompts, within its workspace folder if any."""
        path = next(iter(possible_paths(uri)), None)
        if path is None:
            return uri
        return path.relative_to(innermost(path, self._roots) or path.parent).as_posix()

    def forget(self, uri: str) -> None:
        """Forget a closed document."""
        self.texts.pop(uri, None)

    def secret(self, snapshot: Snapshot) -> SecretText | None:
        """Return the first secret, unless the file is allowed; a long text is hidden until read."""
        known = self._lines(snapshot.uri)
        if known.num_new(snapshot.lines) > _MOST_AT_ONCE:
            return SecretText(0, UNREAD)
        found = known.follow(snapshot.lines)
        is_allowed = found is not None and self._judgement(snapshot.uri).is_allowed
        return None if is_allowed else found

    def _judgement(self, uri: str) -> _Judged:
        """Return the last verdict if the disk is slow, or else a new one."""
        known = self.judged.get(uri) if self._valid_until and self.look_s > _QUICK_S else None
        return known or _Judged.by(self._files, uri, Look())

    def _lines(self, uri: str) -> SecretLines:
        return self.texts.setdefault(uri, SecretLines())
