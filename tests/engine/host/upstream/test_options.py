"""An upstream's address is checked before anything is asked of it."""

import pytest

from engine.errors import ConfigurationError
from engine.host.upstream.options import UpstreamOptions


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:8000", "http://127.0.0.1:8000/", "http://127.0.0.1:8000/v1/"]
)
def test_an_address_may_be_written_with_its_v1(url):
    options = UpstreamOptions(url)
    assert options.base_url == "http://127.0.0.1:8000"
    assert options.is_local


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("127.0.0.1:8000", "is no http:// or https:// address"),
        ("ftp://there", "is no http:// or https:// address"),
        ("http://", "is no http:// or https:// address"),
        ("http://[::1", "is no address"),
        ("http://127.0.0.1:99999", "is no address"),
        ("https://ada:secret@there", "a secret goes into a file"),
        ("https://there?key=secret", "a secret goes into a file"),
        ("http://10.0.0.7:8000", "is not encrypted"),
    ],
)
def test_what_cannot_be_used_is_a_sentence(url, words):
    with pytest.raises(ConfigurationError, match=words) as wrong:
        UpstreamOptions(url)
    assert "secret@" not in str(wrong.value)


def test_another_machine_is_asked_over_tls_or_by_the_users_own_word():
    assert not UpstreamOptions("https://there").is_local
    assert UpstreamOptions("http://there", is_insecure=True).base_url == "http://there"


def test_the_token_is_not_shown():
    assert "word" not in repr(UpstreamOptions("https://there", token="word"))
