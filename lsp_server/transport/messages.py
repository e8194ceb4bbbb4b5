"""The messages of a stream, one after the other.

pygls would look for messages within messages: an object in the params that has a key "jsonrpc"
would be read as one, and the request around it never answered.
"""

import json
import re
from collections.abc import Callable

from pygls.exceptions import JsonRpcException
from pygls.io_ import StdinAsyncReader

from lsp_server.transport.framing import MessageReader
from lsp_server.transport.protocol import LanguageServerProtocol

_LENGTH = re.compile(rb"Content-Length: ([0-9]{1,12})\r\n")

MessageStream = StdinAsyncReader | MessageReader
OnError = Callable[[Exception, type[JsonRpcException]], None]


async def handle_messages(
    reader: MessageStream, protocol: LanguageServerProtocol, on_error: OnError
) -> None:
    """Hand each message to the protocol until the stream ends; `on_error` hears what failed."""
    while num_bytes := await _body_len(reader):
        body = await reader.readexactly(num_bytes)
        if len(body) < num_bytes:
            return  # the client left in the middle of a word
        try:
            protocol.handle_data(json.loads(body))
        except Exception as error:  # noqa: BLE001 - whatever one message meets, the next is read
            on_error(error, JsonRpcException)


async def _body_len(reader: MessageStream) -> int:
    """What the next header says; 0 at the end of the stream."""
    num_bytes = 0
    while line := await reader.readline():
        if (length := _LENGTH.fullmatch(line)) is not None:
            num_bytes = int(length[1])
        elif num_bytes and not line.strip():
            return num_bytes
    return 0
