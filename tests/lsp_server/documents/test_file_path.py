"""Which file a URI names."""

from pathlib import Path

import pytest

from lsp_server.documents.file_path import file_path


def test_a_file_is_named_by_its_path_and_what_is_none_by_nothing():
    assert file_path("file:///work/a%20b.py") == Path("/work/a b.py")
    assert file_path("") is None


@pytest.mark.parametrize("uri", ["weird://[x/y.py", "http://[::1"])
def test_a_uri_that_makes_no_sense_names_none(uri):
    assert file_path(uri) is None
