"""Bodies of requests, as JSON."""

import re
from typing import TypeVar

import msgspec

from engine.errors import InputError

_Kind = TypeVar("_Kind")
# A backslash and a whole pair are passed over; half a pair is the group, as an escape or as bytes.
_HALF = re.compile(
    rb"\\\\|\\ud[89ab][0-9a-f]{2}\\ud[c-f][0-9a-f]{2}"
    rb"|(\\ud[89a-f][0-9a-f]{2}|\xed[\xa0-\xbf][\x80-\xbf])",
    re.IGNORECASE,
)


def decoded(content: bytes, kind: type[_Kind]) -> _Kind:
    """Decode a body. Raises InputError where it is none of this kind, whatever it is.

    Half a surrogate pair, as a client has that cuts by UTF-16 units, becomes U+FFFD.
    """
    try:
        return msgspec.json.decode(content, type=kind)
    except (msgspec.DecodeError, ValueError) as error:
        whole = _HALF.sub(lambda match: rb"\ufffd" if match[1] else match[0], content)
        if whole != content:
            return decoded(whole, kind)
        reason = "the body is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)
        raise InputError(reason) from error
    except RecursionError as error:
        raise InputError("the body is nested too deeply") from error
