"""Files and cursors as the command line names them."""

from pathlib import Path

import pytest

from engine.errors import InputError
from lsp_server.cli.source_file import MAX_BYTES, Location, SourceFile


def written(tmp_path, content):
    path = tmp_path / "a.py"
    path.write_bytes(content)
    return path


def test_reads_utf8_with_emoji_or_a_byte_order_mark(tmp_path):
    assert SourceFile.read(written(tmp_path, "x = '🦉é'\n".encode())).text == "x = '🦉é'\n"
    assert SourceFile.read(written(tmp_path, b"\xef\xbb\xbfx\n")).text == "x\n"
    assert SourceFile.read(written(tmp_path, b"")).text == ""


@pytest.mark.parametrize("line_end", ["\n", "\r\n", "\r"])
def test_the_engine_sees_line_feeds_and_the_files_own_line_end_is_known(tmp_path, line_end):
    source = SourceFile.read(written(tmp_path, f"a{line_end}b{line_end}".encode()))
    assert (source.text, source.line_end) == ("a\nb\n", line_end)


def test_bytes_that_are_no_utf8_are_replaced_and_reported(tmp_path):
    source = SourceFile.read(written(tmp_path, b"caf\xe9 = 1\n"))
    assert source.text == "caf\ufffd = 1\n"
    assert source.is_damaged


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"\x7fELF\x02\0\0\0", "is a binary file"),
        ("x = 1\n".encode("utf-16"), "is UTF-16"),
    ],
)
def test_what_is_no_text_is_refused(tmp_path, content, complaint):
    with pytest.raises(InputError, match=complaint):
        SourceFile.read(written(tmp_path, content))


def test_a_missing_file_a_folder_and_a_device_are_refused(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        SourceFile.read(tmp_path / "missing.py")
    for path in (tmp_path, Path("/dev/null")):
        with pytest.raises(InputError, match="not a regular file"):
            SourceFile.read(path)


def test_a_name_that_no_system_can_hold_is_refused(tmp_path):
    with pytest.raises(InputError, match="cannot be read"):
        SourceFile.read(tmp_path / ("x" * 5000))
    with pytest.raises(InputError, match=r"cannot be read|no file"):
        SourceFile.read(tmp_path / "a\0b")


def test_an_enormous_file_is_refused_before_it_is_read(tmp_path):
    path = tmp_path / "huge.py"
    with path.open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(InputError, match="bytes"):
        SourceFile.read(path)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.py:3", (Path("a.py"), 3, None)),
        ("a.py:3:7", (Path("a.py"), 3, 7)),
        ("a.py:3:7:", (Path("a.py"), 3, 7)),  # pasted from a compiler's output
        ("dir:with:colons/a.py:3:7", (Path("dir:with:colons/a.py"), 3, 7)),
        ("a:1:2:3", (Path("a:1"), 2, 3)),
    ],
)
def test_a_location_is_what_compilers_print(text, expected):
    location = Location.parse(text)
    assert (location.path, location.line, location.column) == expected


@pytest.mark.parametrize(
    "text", ["", "a.py", "a.py:", "a.py:x", ":3", "a.py:-1", "a.py:9999999999"]
)
def test_a_location_without_file_or_line_is_refused(text):
    with pytest.raises(InputError, match="names no line"):
        Location.parse(text)


TEXT = "one\n🦉two\n"


@pytest.mark.parametrize(
    ("line", "column", "before"),
    [
        (1, 1, ""),
        (1, 4, "one"),
        (1, None, "one"),
        (2, 1, "one\n"),
        (2, 2, "one\n🦉"),
        (2, None, "one\n🦉two"),
        (3, None, TEXT),  # after the last line end, as editors show it
        (3, 1, TEXT),
    ],
)
def test_the_cursor_stands_before_the_column_or_at_the_lines_end(line, column, before):
    assert TEXT[: Location(Path("a.py"), line, column).offset_in(TEXT)] == before


@pytest.mark.parametrize(
    ("line", "column", "complaint"),
    [
        (0, None, "3 lines, counted from 1; there is no 0"),
        (4, None, "there is no 4"),
        (1, 0, "columns 1 to 4; there is no 0"),
        (1, 5, "columns 1 to 4; there is no 5"),
    ],
)
def test_a_cursor_outside_the_file_is_refused_with_what_there_is(line, column, complaint):
    with pytest.raises(InputError, match=complaint):
        Location(Path("a.py"), line, column).offset_in(TEXT)
