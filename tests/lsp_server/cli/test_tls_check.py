"""TLS as the doctor sees it, with certificates made for the test."""

import asyncio
import shutil
import socketserver
import ssl
import subprocess
import threading
import time
from contextlib import contextmanager, suppress

import pytest

from lsp_server.cli import tls_check
from lsp_server.cli.tls_check import check_tls
from lsp_server.host.address import HostAddress
from lsp_server.host.probe import probe

needs_openssl = pytest.mark.skipif(not shutil.which("openssl"), reason="needs openssl")


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tls")
    options = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90"]
    names = [
        "-subj",
        "/CN=localhost",
        "-addext",
        "subjectAltName=DNS:localhost",
        "-keyout",
        "key.pem",
        "-out",
        "cert.pem",
    ]
    subprocess.run(["openssl", *options, *names], cwd=folder, check=True, capture_output=True)
    return folder / "cert.pem"


@contextmanager
def listening(certificate):
    """The port of a server that does a handshake and no more."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))

    class Handshake(socketserver.BaseRequestHandler):
        def handle(self):
            with suppress(OSError):  # who does not trust us hangs up
                context.wrap_socket(self.request, server_side=True).close()

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handshake) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        yield server.server_address[1]
        server.shutdown()


def check(port, certificate=None, name="localhost"):
    return check_tls(HostAddress("", url=f"https://{name}:{port}", ca_file=certificate))


@needs_openssl
def test_a_certificate_of_ca_file_is_trusted(certificate):
    with listening(certificate) as port:
        found = check(port, certificate)
    assert (found.state, found.what) == (
        "ok",
        "the certificate is trusted, and valid for 89 more days",
    )


@needs_openssl
def test_who_asks_a_host_with_such_a_certificate_hears_of_ca_file(certificate):
    with listening(certificate) as port:
        answer = asyncio.run(probe(HostAddress("", url=f"https://localhost:{port}")))
    assert answer.kind == "absent"
    assert "self-signed certificate; ca_file may name the one that signed it" in answer.reason


@needs_openssl
def test_a_certificate_that_nobody_signed_is_not_accepted(certificate):
    with listening(certificate) as port:
        found = check(port)
    assert found.state == "failed"
    assert "self-signed certificate" in found.what
    assert "set ca_file" in found.advice


@needs_openssl
def test_a_certificate_of_another_name_is_not_accepted(certificate):
    with listening(certificate) as port:
        found = check(port, certificate, "127.0.0.1")
    assert found.state == "failed"
    assert "127.0.0.1" in found.what


def test_an_expired_certificate_should_be_renewed(monkeypatch):
    def expired(*_):
        error = ssl.SSLCertVerificationError(1, "expired")
        error.verify_message = "certificate has expired"
        raise error

    monkeypatch.setattr(tls_check, "_valid_until", expired)
    found = check(1)
    assert (found.state, found.advice) == ("failed", "renew it on the host's machine")


def test_a_certificate_that_ends_soon_is_a_warning(monkeypatch):
    monkeypatch.setattr(tls_check, "_valid_until", lambda *_: time.time() + 3.5 * 86_400)
    assert check(1).what.endswith("valid for 3 more days")
    assert check(1).state == "warning"


def test_who_does_not_listen_shows_when_the_host_is_asked():
    assert check(9).state == "warning"


def test_what_is_not_encrypted_is_fine_on_this_machine_alone():
    assert check_tls(HostAddress("", url="http://127.0.0.1:8012")).state == "ok"
    assert check_tls(HostAddress("", url="http://gpu.example.org")).state == "warning"
