"""A file of secrets is read where its user alone may open it, also as systemd hands one out."""

import errno
import os
import struct

import pytest

from engine.errors import ConfigurationError
from engine.host.secret_file import read_secret, read_token

OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 65534
TOKEN = "0123456789abcdef"


@pytest.fixture
def secret(tmp_path):
    """A function that gives the file an access list: who may read beside its owner."""
    file = tmp_path / "token"
    file.write_text("open sesame of a test\n")
    file.chmod(0o400)

    def listing(*users, group=0):
        rows = [(OWNER, 4, 2**32 - 1), *((USER, 4, user) for user in users)]
        rows += [(GROUP, group, 2**32 - 1), (MASK, 4, 2**32 - 1), (OTHER, 0, 2**32 - 1)]
        packed = struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *row) for row in rows)
        try:
            os.setxattr(file, "system.posix_acl_access", packed)
        except OSError as error:
            if error.errno != errno.ENOTSUP:
                raise
            pytest.skip("this file system has no access lists")
        assert file.stat().st_mode & 0o077 == 0o040, "the mask stands in the group's place"
        return file

    return listing


def test_a_file_that_lists_our_user_is_a_secret(secret):
    assert read_secret(secret(os.geteuid()), "it", 100) == "open sesame of a test\n"


@pytest.mark.parametrize(("others", "group"), [([NOBODY], 0), ([], 4)])
def test_a_file_that_somebody_else_or_its_group_may_read_is_none(secret, others, group):
    with pytest.raises(ConfigurationError, match="open to other users"):
        read_secret(secret(os.geteuid(), *others, group=group), "it", 100)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_the_token_is_the_line_without_its_end(path, mode):
    path.chmod(mode)
    assert read_token(path, "token_file") == TOKEN


@pytest.mark.parametrize("mode", [0o644, 0o640, 0o604, 0o620, 0o666])
def test_a_file_that_others_reach_is_refused_with_what_to_run(path, mode):
    path.chmod(mode)
    with pytest.raises(ConfigurationError) as error:
        read_token(path, "token_file")
    wanted = f"token_file {path} is open to other users, mode {mode:04o}; run: chmod 600 {path}"
    assert str(error.value) == wanted


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "holds a token of 0 characters, too few for a secret; write 16 or more"),
        (b" \n", "holds a token of 0 characters"),
        (TOKEN[1:].encode(), "holds a token of 15 characters"),
        (b"one line of it\nand another", "something else than one line of printable ASCII"),
        ("sésame öffne dich bitte".encode(), "something else than one line of printable ASCII"),
        (b"\xff" * 20, "cannot be read"),
        (b"x" * 5000, "too large for a token, above 4,096 bytes"),
    ],
)
def test_what_is_no_token_is_refused_and_not_shown(path, content, reason):
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match=reason) as error:
        read_token(path, "token_file")
    assert content.strip() == b"" or content.decode("latin-1") not in str(error.value)


def test_a_pipe_or_a_folder_in_its_place_keeps_nobody_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe", 0o600)
    with pytest.raises(ConfigurationError, match="is not a regular file"):
        read_token(tmp_path / "pipe", "token_file")
    with pytest.raises(ConfigurationError, match="cannot be read: Is a directory"):
        read_token(tmp_path, "token_file")


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigurationError, match=r"token_file .*gone cannot be read: No such file"):
        read_token(tmp_path / "gone", "token_file")
