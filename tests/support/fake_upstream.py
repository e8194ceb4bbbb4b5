"""Another vendor's engine, as a small real server that gives scripted answers."""

import json
import select
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

_LOOK_S = 0.005
Step = bytes | threading.Event  # bytes are sent as they are; the server waits for an event


def event(text: str = "", log_prob: float | None = -0.1, finish: str | None = None) -> bytes:
    """Return one event with one token, in OpenAI's form; `log_prob` None leaves those out."""
    tokens = {"tokens": [text], "token_logprobs": [log_prob]}
    log_probs = None if log_prob is None or not text else tokens
    choice = {"index": 0, "text": text, "logprobs": log_probs, "finish_reason": finish}
    return data({"choices": [choice]})


def data(content: Any) -> bytes:
    return b"data: " + json.dumps(content, ensure_ascii=False).encode() + b"\n\n"


def said(*words: str, finish: str = "stop") -> list[bytes]:
    """Return a whole answer, word by word."""
    usage = {"prompt_tokens": 77, "prompt_tokens_details": {"cached_tokens": 70}}
    end = [event(finish=finish), data({"choices": [], "usage": usage}), b"data: [DONE]\n\n"]
    return [*map(event, words), *end]


@dataclass
class FakeUpstream:
    answer: Callable[[dict[str, Any]], Iterable[Step]] = lambda _: said("x")
    owner: str = "vllm"
    names: tuple[str, ...] = ("Qwen/Qwen2.5-Coder-7B",)
    model: dict[str, Any] = field(default_factory=lambda: {"max_model_len": 8192})
    routes: dict[str, Any] = field(default_factory=dict)  # other answers, by path
    refusals: dict[str, tuple[int, dict[str, str], Any]] = field(default_factory=dict)
    unknown: tuple[str, ...] = ()  # fields that it rejects
    num_dropped: int = 0  # the next completions whose connections it closes without an answer
    bodies: list[dict[str, Any]] = field(default_factory=list)  # bodies of completion requests
    headers: list[dict[str, str]] = field(default_factory=list)
    began: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    gone: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    connections: set[Any] = field(default_factory=set)
    url: str = ""

    def refuse(self, path: str, status: int, content: Any = None, **headers: str) -> None:
        self.refusals[path] = status, headers, content

    @property
    def asked(self) -> dict[str, Any]:
        return self.bodies[-1]


@contextmanager
def fake_upstream(
    *, certificate: tuple[Path, Path] | None = None, **options: Any
) -> Iterator[FakeUpstream]:
    """Run a server until the block ends, over TLS if it has a certificate and its key."""
    upstream = FakeUpstream(**options)

    class Handler(_Handler):
        one = upstream

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        request_queue_size = 256

        def handle_error(self, *_: Any) -> None:
            """Ignore errors: a client may go at any moment."""

    with Server(("127.0.0.1", 0), Handler) as server:
        upstream.url = f"http://127.0.0.1:{server.server_address[1]}"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*certificate)
            server.socket = context.wrap_socket(server.socket, server_side=True)
            upstream.url = upstream.url.replace("http:", "https:")
        threading.Thread(target=server.serve_forever, args=(_LOOK_S,), daemon=True).start()
        try:
            yield upstream
        finally:
            server.shutdown()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True  # as engines do: each event leaves at once
    one: FakeUpstream

    def do_GET(self) -> None:
        self.one.headers.append(dict(self.headers))
        if self._refuses():
            return
        if self.path == "/v1/models":
            told = [
                {"id": name, "owned_by": self.one.owner, **self.one.model}
                for name in self.one.names
            ]
            self._send(200, {"object": "list", "data": told})
        else:
            self._route()

    def do_POST(self) -> None:
        content = self.rfile.read(int(self.headers["content-length"]))
        body = json.loads(content)
        self.one.headers.append(dict(self.headers))
        if self.path == "/v1/completions":
            self.one.connections.add(self.client_address)
            if body["max_tokens"] > 1:
                self.one.bodies.append(body)
            if self.one.num_dropped:
                self.one.num_dropped -= 1
                self.close_connection = True
                return
        if self._refuses() or self._is_puzzled(body):
            return
        if self.path != "/v1/completions":
            self._route(body)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        if body["max_tokens"] == 1:  # a probe of its speed, or a prompt to be read only
            self._stream(said("x"))
            return
        self.one.began.release()
        try:
            self._stream(self.one.answer(body))
        except ConnectionError:  # the client went while an event was written
            self._leave()

    def _stream(self, steps: Iterable[Step]) -> None:
        for step in steps:
            if isinstance(step, threading.Event):
                while not step.wait(_LOOK_S):
                    if self._is_gone():
                        self._leave()
                        return
            elif self._is_gone():
                self._leave()
                return
            elif not step:
                self.connection.shutdown(socket.SHUT_RDWR)  # in the middle of an answer
                self.close_connection = True
                return
            else:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(step), step))
                self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    def _is_gone(self) -> bool:
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def _leave(self) -> None:
        self.close_connection = True
        self.one.gone.release()

    def _refuses(self) -> bool:
        if self.path not in self.one.refusals:
            return False
        status, headers, content = self.one.refusals[self.path]
        self._send(status, content, headers)
        return True

    def _is_puzzled(self, body: dict[str, Any]) -> bool:
        wrong = [name for name in self.one.unknown if name in body]
        if wrong:
            self._send(422, {"detail": [{"loc": ["body", wrong[0]], "msg": "extra field"}]})
        return bool(wrong)

    def _route(self, body: Any = None) -> None:
        answer = self.one.routes.get(self.path)
        if answer is None:
            self._send(404, {"error": {"message": "Not Found"}})
        else:
            self._send(200, answer(body) if callable(answer) else answer)

    def _send(self, status: int, content: Any, headers: dict[str, str] | None = None) -> None:
        sent = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(sent)))
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(sent)

    def log_message(self, *_: Any) -> None:
        pass
