"""Token bytes become text, less the bytes that the editor has already."""

import codecs


class TextStream:
    """Decodes UTF-8 that may be cut anywhere, and skips the first `owed` bytes."""

    def __init__(self, owed: int) -> None:
        self._owed = owed
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode

    def push(self, token: bytes) -> str:
        """Return the characters that `token` completes; none while it ends inside one."""
        skipped = min(self._owed, len(token))
        self._owed -= skipped
        return self._decode(token[skipped:])
