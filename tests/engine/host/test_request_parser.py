"""Requests are read as they stand, in whatever pieces they come."""

from typing import Any

import httptools
import pytest

from engine.host.request_parser import RequestParser


class Told:
    """Writes down what it is told."""

    def __init__(self):
        self.events: list[dict[str, Any]] = []
        self.keep_alive: list[bool] = []
        listener: Any = self
        self.parser = RequestParser(listener)

    def on_message_begin(self):
        self.events.append({"headers": [], "body": b"", "is_whole": False})

    def on_url(self, url):
        self.events[-1]["url"] = url

    def on_header(self, name, value):
        self.events[-1]["headers"].append((name, value))

    def on_headers_complete(self):
        self.keep_alive.append(self.parser.should_keep_alive())

    def on_body(self, body):
        self.events[-1]["body"] += body

    def on_message_complete(self):
        self.events[-1]["is_whole"] = True


FIRST = b"POST /a?b=c HTTP/1.1\r\nHost: x\r\nEmpty:\r\nPadded: \t one two \t\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = (
    b"POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: Chunked\r\n\r\n"
    b"3;name=value\r\nhel\r\n2\r\nlo\r\n0\r\nHost: y\r\nAuthorization: Bearer T\r\n\r\n"
)
UPGRADE = (
    b"POST /c HTTP/1.1\r\nHost: x\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
    b"HTTP2-Settings: AAA\r\nContent-Length: 5\r\n\r\nhello"
)
CLOSING = b"GET /d HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
TOO_LONG = "a request had more than 65536 bytes of headers, or 256 of them"
ALL = (
    ("/a?b=c", [("host", "x"), ("empty", ""), ("padded", "one two"), ("content-length", "5")], "hello"),
    ("/b", [("host", "x"), ("transfer-encoding", "Chunked")], "hello"),
    ("/c", [("host", "x"), ("content-length", "5")], "hello"),
    ("/d", [("host", "x"), ("connection", "close")], ""),
)  # fmt: skip


@pytest.mark.parametrize("size", [1, 2, 7, 60, 1000])
def test_requests_are_told_whole_without_trailers_and_wishes_for_other_protocols(size):
    told = Told()
    parser = told.parser
    sent = FIRST + CHUNKED + UPGRADE + CLOSING
    for start in range(0, len(sent), size):
        parser.feed_data(sent[start : start + size])
    assert not parser.is_in_body
    assert told.keep_alive == [True, True, True, False]
    found = [
        (
            one["url"].decode(),
            [(name.decode(), value.decode()) for name, value in one["headers"]],
            one["body"].decode(),
        )
        for one in told.events
    ]
    assert found == list(ALL)
    assert all(one["is_whole"] for one in told.events)


def test_nothing_is_told_of_a_head_that_is_not_all_there():
    told = Told()
    told.parser.feed_data(FIRST[:40])
    assert told.events == []


def test_a_body_is_awaited_to_its_end():
    parser = Told().parser
    parser.feed_data(FIRST[:-1])
    assert parser.is_in_body


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (CLOSING.replace(b"Host: x\r\n", b""), "a request has to have one Host header"),
        (CLOSING.replace(b"Host", b"Host: y\r\nHost"), "a request has to have one Host header"),
        (CLOSING.replace(b"/d", b"http://x/d"), "a request has to name a path"),
        (CHUNKED.replace(b"Chunked", b"gzip"), "the only transfer encoding here is chunked"),
        (CHUNKED.replace(b"Host", b"Transfer-Encoding: gzip\r\nHost"), "the only transfer encoding here is chunked"),
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", "a request has to name a path"),
        (CLOSING.replace(b"Host", b"X: " + 70_000 * b"x" + b"\r\nHost"), TOO_LONG),
        (UPGRADE.replace(b"Host", 300 * b"X: x\r\n" + b"Host"), TOO_LONG),
        (b"GET / HTTP/1.1\r\nX: " + 70_000 * b"x", TOO_LONG),
    ],
)  # fmt: skip
def test_what_is_refused_has_a_reason_and_is_not_told(sent, reason):
    told = Told()
    parser = told.parser
    with pytest.raises(httptools.HttpParserError):
        parser.feed_data(sent)
    assert parser.refusal == reason
    assert told.events == []


def test_a_request_of_http_1_0_need_not_name_its_host():
    told = Told()
    told.parser.feed_data(b"GET /d HTTP/1.0\r\n\r\n")
    assert [one["url"] for one in told.events] == [b"/d"]
