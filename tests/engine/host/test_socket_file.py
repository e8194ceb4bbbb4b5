"""A socket file belongs to its user alone, and to one listener at a time."""

import os
import socket
import stat

import pytest

from engine.errors import ConfigurationError
from engine.host.socket_file import listening


@pytest.fixture
def path(tmp_path):
    return tmp_path / "host.sock"


def test_it_is_its_users_alone_from_its_first_moment(path):
    former = os.umask(0)
    try:
        with listening(path):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert os.umask(0) == 0
    finally:
        os.umask(former)
    assert not path.exists()


def test_one_that_nobody_listens_on_is_replaced_and_one_that_lives_is_not(path):
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
    with listening(path):
        with pytest.raises(ConfigurationError, match="cannot listen on"), listening(path):
            pass
        assert path.is_socket()


def test_another_listeners_file_stays(path):
    with listening(path):
        path.unlink()
        path.touch()
    assert path.exists()
