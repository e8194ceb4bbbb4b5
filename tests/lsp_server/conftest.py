"""What the tests of the editor's side share."""

import pytest

from tests.support.stub_host import stub_host


@pytest.fixture
def stub():
    """A host as a process, in a runtime folder of its own."""
    with stub_host() as stub:
        yield stub
