"""A socket file belongs to its user alone, and to one listener at a time."""

import socket
import stat
from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from engine.host.draining_server import host_listener
from engine.host.options import HostOptions
from engine.host.socket_file import listening


@pytest.fixture
def path(tmp_path):
    return tmp_path / "host.sock"


def test_it_is_its_users_alone_from_its_first_moment(path, monkeypatch):
    modes, chmod = [], Path.chmod

    def noting(self, mode):
        modes.append(stat.S_IMODE(self.stat().st_mode))
        chmod(self, mode)

    monkeypatch.setattr(Path, "chmod", noting)
    with host_listener(HostOptions(socket=path)):  # as the host listens
        modes.append(stat.S_IMODE(path.stat().st_mode))
    assert modes == [0o600, 0o600]
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
