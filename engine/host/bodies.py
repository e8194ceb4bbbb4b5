"""Bodies of requests, as JSON."""

from typing import TypeVar

import msgspec

from engine.errors import InputError

_Kind = TypeVar("_Kind")


def decoded(content: bytes, kind: type[_Kind]) -> _Kind:
    """Decode a body. Raises InputError where it is none of this kind, whatever it is."""
    try:
        return msgspec.json.decode(content, type=kind)
    except UnicodeDecodeError as error:
        raise InputError("the body is not UTF-8") from error
    except RecursionError as error:
        raise InputError("the body is nested too deeply") from error
    except (msgspec.MsgspecError, ValueError) as error:
        raise InputError(str(error)) from error
