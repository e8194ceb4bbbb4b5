"""Whom the tokens of a file name, and what is no token file."""

import hashlib
import threading

import pytest

from engine.errors import ConfigurationError
from engine.host import principals
from engine.host.principals import Principals, digest_of

ADA, BOB = "ada's own secret token", "a secret of bob, longer"


@pytest.fixture
def token_file(tmp_path):
    """Writes a token file that its user alone may read."""
    path = tmp_path / "tokens"

    def write(*lines):
        path.touch(0o600)
        path.write_text("\n".join(lines) + "\n")
        return path

    return write


def sha256(token):
    return hashlib.sha256(token.encode()).hexdigest()


def test_one_bare_token_names_the_only_principal(token_file):
    known = Principals.read(token_file("", ADA))
    assert known.named_by(ADA.encode()) == ""
    assert known.named_by(BOB.encode()) is None
    assert known.named_by(b"") is None


def test_a_host_without_tokens_serves_whoever_comes_as_one():
    assert Principals.of(None).named_by(b"whatever") == ""


def test_each_line_names_a_principal_whose_token_may_be_hashed(token_file):
    path = token_file("# the team", f"ada:{ADA}", "", f"bob:sha256:{sha256(BOB).upper()}")
    known = Principals.read(path)
    assert known.named_by(ADA.encode()) == "ada"
    assert known.named_by(BOB.encode()) == "bob"
    for guess in (sha256(BOB), f"ada:{ADA}", ADA[:-1], f"sha256:{sha256(BOB)}"):
        assert known.named_by(guess.encode()) is None


def test_a_bare_token_may_be_hashed_too(token_file):
    known = Principals.read(token_file(f"sha256:{sha256(ADA)}"))
    assert known.named_by(ADA.encode()) == ""
    assert known.named_by(sha256(ADA).encode()) is None


def test_a_name_may_have_two_tokens_while_one_is_replaced(token_file):
    known = Principals.read(token_file(f"ada:{ADA}", f"ada:{BOB}"))
    assert known.named_by(ADA.encode()) == known.named_by(BOB.encode()) == "ada"


def test_a_file_of_an_editor_on_windows_is_read_as_any_other(tmp_path):
    path = tmp_path / "tokens"
    path.touch(0o600)
    path.write_bytes(f"\ufeffada:{ADA}\r\nbob:{BOB}\r\n".encode())
    known = Principals.read(path)
    assert known.named_by(ADA.encode()) == "ada"
    assert known.named_by(BOB.encode()) == "bob"


def test_no_token_is_kept_in_memory(token_file):
    known = Principals.read(token_file(f"ada:{ADA}"))
    assert ADA not in repr(known)


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ((), "holds no token"),
        (("# nobody",), "holds no token"),
        (
            (ADA, BOB),
            "line 1, has no name: where there are several tokens, each line is NAME:TOKEN",
        ),
        ((f"ada:{ADA}", "", BOB), "line 3, has no name"),
        ((f"ada:{ADA}", "bob:short"), "line 2, holds a token of 5 characters, too few"),
        ((f":{ADA}",), "line 1, has no name before its first colon"),
        ((f"a b:{ADA}",), "line 1, has no name before its first colon"),
        ((f"{'x' * 65}:{ADA}",), "line 1, has no name before its first colon"),
        (("ada:öffne dich, bitte sehr",), "line 1, holds something else than one line"),
        ((f"ada: {ADA}",), "line 1, holds something else than one line"),
        ((f"ada:sha256:{sha256(ADA)[1:]}",), "line 1, has no 64 hexadecimal digits"),
        ((f"ada:{ADA}", f"bob:{ADA}"), "line 2, holds the token of line 1 once more"),
        (
            (f"ada:{ADA}", f"bob:sha256:{sha256(ADA)}"),
            "line 2, holds the token of line 1 once more",
        ),
    ],
)
def test_what_is_no_token_file_is_refused_by_line_and_no_token_is_shown(token_file, lines, reason):
    path = token_file(*lines)
    with pytest.raises(ConfigurationError, match=reason) as error:
        Principals.read(path)
    assert str(error.value).startswith(f"the token file {path}")
    shown = str(error.value)
    assert not any(secret in shown for secret in (ADA, BOB, "short", sha256(ADA)[1:], "öffne"))


def test_a_file_that_is_broken_when_it_is_read_again_changes_nothing(token_file):
    known = Principals.read(token_file(f"ada:{ADA}"))
    token_file("ada:short")
    with pytest.raises(ConfigurationError):
        known.follow(is_told=True)
    assert known.named_by(ADA.encode()) == "ada"
    token_file(f"bob:{BOB}")
    known.follow(is_told=True)
    assert known.named_by(ADA.encode()) is None
    assert known.named_by(BOB.encode()) == "bob"


def test_a_file_is_followed_where_it_changed_and_complained_of_once(token_file):
    path = token_file("ada:short")
    known = Principals({digest_of(ADA.encode()): "ada"}, path)
    assert not known.follow()
    with pytest.raises(ConfigurationError):
        known.follow()
    assert not known.follow()
    assert known.named_by(ADA.encode()) == "ada"
    token_file(f"bob:{BOB}")
    assert not known.follow()
    assert known.follow()
    assert known.every == {"bob"}
    assert not known.follow()
    path.unlink()
    assert not known.follow()
    with pytest.raises(ConfigurationError):
        known.follow()
    assert known.named_by(BOB.encode()) == "bob"


def test_of_two_readings_at_once_the_later_one_counts(token_file, monkeypatch):
    known, read = Principals.read(token_file(f"ada:{ADA}")), principals._tokens_in
    second = threading.Thread(target=known.follow, kwargs={"is_told": True})

    def slowly(path):
        tokens = read(path)
        if second.ident is None:
            token_file(f"bob:{BOB}")
            second.start()
            second.join(0.2)
        return tokens

    monkeypatch.setattr(principals, "_tokens_in", slowly)
    known.follow(is_told=True)
    second.join()
    assert known.every == {"bob"}
