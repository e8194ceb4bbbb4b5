"""Another program's response, read within bounds: it may be anybody's machine."""

from collections.abc import AsyncIterator

import httpx2

MAX_BODY_BYTES = 16 * 2**20
MAX_LINE_BYTES = 2**20


class ResponseTooLargeError(httpx2.HTTPError):
    """More than an honest program sends, in a line or in all."""

    def __init__(self, most_bytes: int, *, is_line: bool = False) -> None:
        what = "a line" if is_line else "a response"
        super().__init__(f"{what} of more than {most_bytes:,} bytes")
        self.most_bytes, self.is_line = most_bytes, is_line


def retry_after_s(response: httpx2.Response) -> float | None:
    """The seconds after which to ask again; a date, as proxies may send, is not read."""
    told = response.headers.get("retry-after", "")
    return float(told) if told.isascii() and told.isdigit() else None


async def body_of(response: httpx2.Response) -> bytes:
    """The whole body of a response that streams. Raises httpx2.HTTPError."""
    return b"".join([part async for part in _parts(response)])


async def lines_of(response: httpx2.Response) -> AsyncIterator[bytes]:
    """Lines as NDJSON has them. `aiter_lines` would end one at U+2028 within a text, too."""
    rest = b""
    async for part in _parts(response):
        *whole, rest = (rest + part).split(b"\n")
        if len(rest) > MAX_LINE_BYTES:
            raise ResponseTooLargeError(MAX_LINE_BYTES, is_line=True)
        for line in whole:
            yield line
    if rest:
        yield rest


async def _parts(response: httpx2.Response) -> AsyncIterator[bytes]:
    """The body as it was sent: a compressed one, which we do not accept, could be of any size."""
    num_bytes = 0
    async for part in response.aiter_raw():
        num_bytes += len(part)
        if num_bytes > MAX_BODY_BYTES:
            raise ResponseTooLargeError(MAX_BODY_BYTES)
        yield part
