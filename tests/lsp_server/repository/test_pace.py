"""How long to wait for more changes."""

from lsp_server.repository.pace import Pace


def waited(pace: Pace, *, goes_on: bool) -> float:
    pace.begin()
    wait_s = pace.wait_s
    if goes_on:
        pace.hear()
    pace.end()
    return wait_s


def test_the_wait_grows_while_changes_go_on_and_is_short_again_after_them():
    pace = Pace()
    assert [waited(pace, goes_on=True) for _ in range(8)] == [0.5, 1, 2, 4, 8, 16, 30, 30]
    assert waited(pace, goes_on=False) == 30
    assert waited(pace, goes_on=False) == 0.5
