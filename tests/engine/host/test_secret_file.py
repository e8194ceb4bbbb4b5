"""A file of secrets is read where its user alone may open it, also as systemd hands one out."""

import errno
import os
import struct

import pytest

from engine.errors import ConfigurationError
from engine.host.secret_file import read_secret

OWNER, USER, GROUP, MASK, OTHER = 0x01, 0x02, 0x04, 0x10, 0x20
NOBODY = 65534


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


def test_a_file_that_lists_somebody_else_is_none(secret):
    with pytest.raises(ConfigurationError, match="open to other users"):
        read_secret(secret(os.geteuid(), NOBODY), "it", 100)


def test_a_file_that_its_group_may_read_is_none(secret):
    with pytest.raises(ConfigurationError, match="open to other users"):
        read_secret(secret(os.geteuid(), group=4), "it", 100)


def test_a_file_without_a_list_is_judged_by_its_mode(tmp_path):
    file = tmp_path / "token"
    file.write_text("open sesame")
    file.chmod(0o640)
    with pytest.raises(ConfigurationError, match="mode 0640"):
        read_secret(file, "it", 100)
