"""What became of completions, as clients tell it."""

from typing import Literal

from engine.host.protocol.message import Message, NotNegative

FeedbackKind = Literal["shown", "accepted", "partly_accepted", "rejected"]


class Feedback(Message, frozen=True):
    """What became of a completion.

    `accepted_len` counts the code points of its text that were taken by now; None is all of them.
    """

    client: str
    completion_id: str
    kind: FeedbackKind
    accepted_len: NotNegative | None = None
