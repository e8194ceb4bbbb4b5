"""A file is written whole or not at all."""

import os
from pathlib import Path

import pytest

from engine.atomic_write import atomic_write


def test_takes_the_place_of_the_old_file_once_it_is_whole(tmp_path):
    path = tmp_path / "new" / "file"
    for content in (b"one", b"two"):
        with atomic_write(path) as file:
            file.write(content)
        assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]


def test_leaves_the_old_file_where_writing_fails(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_half():
        with atomic_write(path) as file:
            file.write(b"ha")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a full device")
def test_an_error_names_the_file_and_not_its_draft(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.mkstemp", lambda **_: (os.open("/dev/full", os.O_WRONLY), "gone"))
    with pytest.raises(OSError, match="No space") as caught, atomic_write(tmp_path / "f") as file:
        file.write(b"x")
    assert caught.value.filename == str(tmp_path / "f")
