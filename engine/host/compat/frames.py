"""Server-sent events: https://html.spec.whatwg.org/multipage/server-sent-events.html."""

import msgspec

KEEP_ALIVE = b": keep-alive\n\n"
DONE = b"data: [DONE]\n\n"
_encode = msgspec.json.Encoder().encode


def data(content: object) -> bytes:
    """One event whose data is JSON, which has no line ends."""
    return b"data: " + _encode(content) + b"\n\n"
