"""Whom connections trust, where the environment names certificates that are not there."""

import ssl

import pytest

from engine.errors import ConfigurationError
from engine.host.http_client import tls_context


@pytest.fixture
def missing(monkeypatch, tmp_path):
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "nonexistent"))


def test_without_tls_no_certificate_is_looked_for(missing):
    context = tls_context("http://127.0.0.1:8012", None, "ca_file")
    assert context.verify_mode is ssl.CERT_REQUIRED, "it trusts nobody"
    assert context.cert_store_stats()["x509"] == 0


def test_a_certificate_that_the_environment_names_in_vain_is_named_by_its_variable(missing):
    with pytest.raises(ConfigurationError, match=r"SSL_CERT_FILE names cannot be used: No such"):
        tls_context("https://127.0.0.1:8012", None, "ca_file")


def test_a_file_of_certificates_is_named_by_its_setting(tmp_path):
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("missing.pem", "ca.pem"):
        with pytest.raises(ConfigurationError, match=rf"ca_file .*{name} cannot be used: "):
            tls_context("https://127.0.0.1:8012", tmp_path / name, "ca_file")
