"""What tests of the host share."""

import subprocess
from shutil import which

import pytest


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate that its own key signed, and that key."""
    openssl = which("openssl")
    if openssl is None:
        pytest.skip("no openssl command to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    kind = ["-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    subprocess.run(
        [openssl, "req", *kind, "-keyout", key, "-out", cert, *names],
        check=True,
        capture_output=True,
    )
    return cert, key
