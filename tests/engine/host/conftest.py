"""What tests of the host share."""

import pytest

from tests.support.served_host import make_certificate


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A certificate that its own key signed, and that key."""
    folder = tmp_path_factory.mktemp("tls")
    make_certificate(folder)
    return folder / "cert.pem", folder / "key.pem"
