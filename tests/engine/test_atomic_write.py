"""A file is written whole or not at all."""

import os
from pathlib import Path

import msgspec
import pytest

from engine.atomic_write import atomic_write, read_kept


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


class Kept(msgspec.Struct):
    number: int


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b'{"num',
        b"\0" * 13,
        b'{"number": "one"}',
        b'{"number\xff": 1}',
        b'"\xff\xfe"',
        b"[" * 200_000,
        b"[1]",
    ],
)
def test_a_damaged_file_holds_nothing(tmp_path, content):
    path = tmp_path / "kept.json"
    if content is not None:
        path.write_bytes(content)
    assert read_kept(path, Kept) is None
    path.write_bytes(b'{"number": 1}')
    assert read_kept(path, Kept) == Kept(1)


def test_a_folder_in_the_place_of_a_file_holds_nothing(tmp_path):
    assert read_kept(tmp_path, Kept) is None
