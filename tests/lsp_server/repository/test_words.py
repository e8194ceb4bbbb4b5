"""The words that a text is found by."""

from lsp_server.repository.words import words_in


def test_a_name_is_found_as_a_whole_and_by_its_parts():
    assert words_in("loadYaml(http_path)") == {
        "loadyaml",
        "load",
        "yaml",
        "http_path",
        "http",
        "path",
    }
    assert words_in("HTTPServer2") == {"httpserver2", "http", "server"}


def test_what_a_program_made_is_no_word():
    assert words_in("x" * 65) == set()
