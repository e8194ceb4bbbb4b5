"""What a host may listen on, and what it asks for first."""

import subprocess
from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from engine.host.options import HostOptions

TOKEN = "a token of a test"


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "localhost", "::1"])
def test_this_machine_alone_needs_no_tls(host):
    assert HostOptions(address=host, token=TOKEN).is_private


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "0.0.0.0", "", "models.example"])
def test_no_port_is_open_without_a_token(host):
    """Web pages and other users reach the loopback, too."""
    with pytest.raises(ConfigurationError, match="only with a token: name a --token-file"):
        HostOptions(address=host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "", "192.168.0.7", "models.example"])
def test_what_other_machines_reach_needs_tls_or_the_word_that_it_need_not(host, certificate):
    cert, key = certificate
    with pytest.raises(ConfigurationError, match="could read the token and all text on its way"):
        HostOptions(address=host, token=TOKEN)
    assert not HostOptions(address=host, token=TOKEN, tls_cert=cert, tls_key=key).is_private
    assert not HostOptions(address=host, token=TOKEN, is_insecure=True).is_private


def test_a_socket_needs_no_token_whatever_the_address(tmp_path):
    assert HostOptions(socket=tmp_path / "host.sock", address="0.0.0.0").token is None


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        *(({"port": port}, f"port {port} is not within 0 and 65535") for port in (-1, 65536)),
        *(({"idle_exit_s": one}, "is not above 0") for one in (0.0, -1.0, float("nan"))),
        ({"tls_cert": Path("half.pem")}, "--tls-cert and --tls-key come together"),
        ({"tls_key": Path("half.pem")}, "--tls-cert and --tls-key come together"),
    ],
)
def test_what_cannot_be_is_refused(given, reason):
    with pytest.raises(ConfigurationError, match=reason):
        HostOptions(token=TOKEN, **given)


def test_tls_files_that_are_missing_or_broken_are_named(tmp_path, certificate):
    cert, key = certificate
    broken = tmp_path / "broken.pem"
    with pytest.raises(ConfigurationError, match=f"there is no file {broken}"):
        HostOptions(token=TOKEN, tls_cert=cert, tls_key=broken)
    broken.write_text("-----BEGIN CERTIFICATE-----\nnot at all\n")
    for files in ((broken, key), (cert, broken), (key, cert)):
        with pytest.raises(ConfigurationError, match="are no certificate and its key") as error:
            HostOptions(token=TOKEN, tls_cert=files[0], tls_key=files[1])
        assert str(broken if broken in files else cert) in str(error.value)


def test_a_key_of_another_certificate_is_refused(tmp_path, certificate):
    other = tmp_path / "other.pem"
    subprocess.run(["openssl", "genrsa", "-out", other, "2048"], check=True, capture_output=True)
    with pytest.raises(ConfigurationError, match=r"no certificate and its key: .*mismatch"):
        HostOptions(token=TOKEN, tls_cert=certificate[0], tls_key=other)


def test_a_key_with_a_password_is_refused_and_nobody_is_asked_for_it(tmp_path, certificate):
    cert, key = certificate
    locked = tmp_path / "locked.pem"
    subprocess.run(
        ["openssl", "rsa", "-aes256", "-passout", "pass:sesame", "-in", key, "-out", locked],
        check=True,
        capture_output=True,
    )
    with pytest.raises(ConfigurationError, match="are no certificate and its key"):
        HostOptions(token=TOKEN, tls_cert=cert, tls_key=locked)
