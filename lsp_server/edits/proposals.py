"""Edits that were proposed, and what became of them."""

from collections import deque
from dataclasses import dataclass
from typing import Any, Literal, Self

import msgspec
from lsprotocol import types

from engine.request import EditOutcome
from lsp_server.documents.anchor import Anchor
from lsp_server.documents.document import Snapshot
from lsp_server.edits.messages import ACCEPT
from lsp_server.host.link import HostLink
from lsp_server.reasons import Reason

_MOST_SETTLED = 100  # accepted and rejected edits that are not proposed again
_MOST_OPEN = 16  # proposals that a client may still speak of; it shows one at a time

Ending = Literal["accepted", "ignored", "rejected"]  # an ignored one may come again


@dataclass(frozen=True, slots=True)
class Proposal:
    """A change proposed in a document at a version."""

    id: str  # of the host's completion
    change: EditOutcome
    expected: Anchor  # the end of the change in the text that it leads to
    edit: types.TextEdit
    what: tuple[object, ...]  # distinguishes it from other changes: its lines and those next to it

    @classmethod
    def of(
        cls, proposal_id: str, document: Snapshot, change: EditOutcome, edit: types.TextEdit
    ) -> Self:
        """Propose `edit`, which makes `change`."""
        around = document.lines[max(0, change.first - 1) : change.end + 1]
        what = document.uri, document.opening, around, change.end - change.first, change.lines
        expected = Anchor.after(document, change.first, change.end, change.lines)
        return cls(proposal_id, change, expected, edit, what)

    @property
    def uri(self) -> str:
        """The URI of its document."""
        return self.expected.document.uri

    @property
    def message(self) -> dict[str, Any]:
        """The edit as clients read it; they run its command after applying it."""
        return {
            "text": self.edit.new_text,
            "range": msgspec.to_builtins(self.edit.range),
            "textDocument": {"uri": self.uri, "version": self.expected.document.version},
            "command": {"title": "Accept next edit", "command": ACCEPT, "arguments": [self.id]},
        }


class Proposals:
    """Remembers proposals, so that one that was accepted or rejected does not come again."""

    def __init__(self, link: HostLink) -> None:
        self._link = link
        self._open = deque[Proposal](maxlen=_MOST_OPEN)
        self._settled = deque[tuple[object, ...]](maxlen=_MOST_SETTLED)  # by `Proposal.what`

    def add(self, proposal: Proposal) -> None:
        """Remember a proposal that the client gets."""
        self._open.append(proposal)

    def is_settled(self, proposal: Proposal) -> bool:
        """Whether the same change of the same lines was accepted or rejected before."""
        return proposal.what in self._settled

    def shown(self, proposal_id: str) -> Proposal | None:
        """Note that a proposal is on the screen."""
        if (proposal := self._named(proposal_id)) is not None:
            self._link.tell(proposal_id, "shown")
        return proposal

    def made(self, document: Snapshot | Reason) -> Proposal | None:
        """Return the newest proposal if a document has become what it leads to."""
        newest = self._open[-1] if self._open else None
        return newest if newest is not None and newest.expected.fits(document) else None

    def ended(self, proposal_id: str, ending: Ending) -> None:
        """Note what the user did. What was accepted, and undone since, is not wanted again either."""
        if (proposal := self._named(proposal_id)) is None:
            return
        self._open.remove(proposal)
        if ending != "ignored":
            self._settled.append(proposal.what)
            length = len(proposal.edit.new_text) if ending == "accepted" else None
            self._link.tell(proposal_id, ending, length)

    def forget(self, *uris: str) -> None:
        """Forget documents that were closed or may no longer be sent, as proposals hold lines."""
        for one in [one for one in self._open if one.uri in uris]:
            self._open.remove(one)
        for what in [what for what in self._settled if what[0] in uris]:
            self._settled.remove(what)

    def _named(self, proposal_id: str) -> Proposal | None:
        return next((one for one in self._open if one.id == proposal_id), None)
