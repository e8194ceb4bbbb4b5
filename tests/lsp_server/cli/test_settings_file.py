"""Settings are added to `foregram.toml` after asking, and what stands there stays."""

import errno
import io
import tomllib
from pathlib import Path

import pytest

from engine.errors import ConfigurationError
from lsp_server.cli.settings_file import add_settings, toml_line
from lsp_server.setting_layers import Layer

OLD = "# mine\ndebounceMs = 50\n\n[languages]\npython = true\n"


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "foregram.toml"
    path.write_text(OLD)
    return Layer(str(path), tomllib.loads(OLD))


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_new_settings_come_before_the_old_text(file, tmp_path):
    assert add_settings(file, {"model": "7b", "enable": False}, is_agreed=True)
    text = (tmp_path / "foregram.toml").read_text()
    assert text == 'model = "7b"\nenable = false\n' + OLD
    assert tomllib.loads(text)["model"] == "7b"


def test_a_setting_that_stands_there_stays_in_any_spelling(file, tmp_path, capsys):
    assert add_settings(file, {"debounce_ms": 250}, is_agreed=True)
    assert (tmp_path / "foregram.toml").read_text() == OLD
    told = capsys.readouterr().out
    assert "says what debounceMs is; it stays" in told
    assert "nothing is to be written" in told


@pytest.mark.parametrize(("answer", "is_written"), [("y\n", True), ("n\n", False), ("", False)])
def test_at_a_terminal_it_asks(file, tmp_path, monkeypatch, answer, is_written):
    monkeypatch.setattr("sys.stdin", Terminal(answer))
    assert add_settings(file, {"model": "7b"}, is_agreed=False) == is_written
    assert ("7b" in (tmp_path / "foregram.toml").read_text()) == is_written


def test_elsewhere_it_only_says_what_it_would_write(file, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.StringIO("y\n"))
    assert add_settings(file, {"model": "7b"}, is_agreed=False)
    assert (tmp_path / "foregram.toml").read_text() == OLD
    told = capsys.readouterr()
    assert '  model = "7b"\n' in told.out
    assert "--yes" in told.err


def test_a_missing_file_is_made_with_its_folder(tmp_path):
    path = tmp_path / "config/foregram.toml"
    add_settings(Layer(str(path), {}), {"max_tokens": 64}, is_agreed=True)
    assert path.read_text() == "max_tokens = 64\n"


def test_a_file_that_cannot_be_written_is_a_sentence(tmp_path):
    (tmp_path / "file").touch()
    layer = Layer(str(tmp_path / "file/foregram.toml"), {})
    with pytest.raises(ConfigurationError, match=r"foregram\.toml cannot be written: "):
        add_settings(layer, {"max_tokens": 64}, is_agreed=True)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "foregram.toml"
    path.write_text("# mine\n")

    def fails(draft, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "replace", fails)
    with pytest.raises(ConfigurationError, match="No space left on device"):
        add_settings(Layer(str(path), {}), {"max_tokens": 64}, is_agreed=True)
    assert [one.name for one in tmp_path.iterdir()] == ["foregram.toml"]
    assert path.read_text() == "# mine\n"


def test_a_link_to_the_file_stays_a_link(tmp_path):
    (tmp_path / "dotfiles").mkdir()
    link = tmp_path / "foregram.toml"
    link.symlink_to(tmp_path / "dotfiles/foregram.toml")
    add_settings(Layer(str(link), {}), {"max_tokens": 64}, is_agreed=True)
    assert link.is_symlink()
    assert (tmp_path / "dotfiles/foregram.toml").read_text() == "max_tokens = 64\n"


@pytest.mark.parametrize(
    "value", [True, 3, 0.5, 'a "b" \\ \x7f \n é \N{GRINNING FACE}', ["*.md", "x"]]
)
def test_a_line_is_toml_of_the_value(value):
    assert tomllib.loads(toml_line("name", value)) == {"name": value}
