import gzip

import pytest

from engine.bench.task_sets import read_rows
from engine.errors import InputError


def read(path):
    return read_rows(path, lambda row: row["name"], "named thing")


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzipped"])
def test_reads_one_object_per_line_and_skips_blank_lines(tmp_path, pack):
    path = tmp_path / "rows"
    path.write_bytes(pack(b'{"name": "a"}\n\n{"name": "\xc3\xa9"}\n'))
    assert read(path) == ["a", "é"]


def test_a_line_separator_inside_a_string_ends_no_line(tmp_path):
    path = tmp_path / "rows"
    path.write_text('{"name": "a\u2028b"}\n', "utf-8")
    assert read(path) == ["a\u2028b"]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "holds no named thing"),
        (b'{"name": 1}\n{"nam', "line 2 is no named thing"),
        (b'{"other": 1}', "line 1 is no named thing .KeyError: 'name'."),
        (b"[1]", "line 1 is no named thing"),
        (b"3", "line 1 is no named thing"),
        (b"\xff\xfe", "cannot be read"),
        (gzip.compress(b'{"name": 1}', mtime=0)[:-9], "cannot be read"),
    ],
)
def test_says_what_is_wrong_with_a_file(tmp_path, content, message):
    path = tmp_path / "rows"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        read(path)


def test_says_that_there_is_no_file(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        read(tmp_path / "rows")
