"""The user's settings file with other values."""

import pytest

from engine.errors import ConfigurationError
from lsp_server.cli.settings_file import with_values, write_settings

VALUES = {"lookahead": "8,8,8", "prompt_tokens": 512}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", 'lookahead = "8,8,8"\nprompt_tokens = 512\n'),
        (
            '# mine\nlookahead = "off"  # for now\n\n[languages]\npython = true\n',
            '# mine\nlookahead = "8,8,8"  # for now\nprompt_tokens = 512\n\n'
            "[languages]\npython = true\n",
        ),
        ("promptTokens = 9\nlookahead='off'", 'prompt_tokens = 512\nlookahead = "8,8,8"'),
    ],
)
def test_values_are_set_and_all_else_stays(before, after):
    assert with_values(before, VALUES) == after


def test_a_file_whose_lines_hide_the_key_is_left_alone(tmp_path):
    path = tmp_path / "foregram.toml"
    path.write_text('"lookahead" = "off"\n')
    with pytest.raises(ConfigurationError, match='write lookahead = "8,8,8", prompt_tokens = 512'):
        write_settings(path, VALUES)
    assert path.read_text() == '"lookahead" = "off"\n'


def test_a_missing_file_is_made_with_its_folder(tmp_path):
    write_settings(tmp_path / "a/foregram.toml", {"threads": 2})
    assert (tmp_path / "a/foregram.toml").read_text() == "threads = 2\n"
