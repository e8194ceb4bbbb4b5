"""The repository of an editor: filled by processes, asked beside the event loop."""

from pathlib import Path

import pytest

from lsp_server.repository.question import Question
from lsp_server.repository.repository import Repository, index_path
from lsp_server.repository.store import remove_store
from lsp_server.settings import Settings

pytestmark = pytest.mark.asyncio


@pytest.fixture
def work(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "store.py").write_text("def load_order(number: int): ...\n")
    return work


def unheard(_num_read: int, _num_files: int, _note: str) -> None:
    """Nobody watches the progress."""


def settings(tmp_path: Path, **chosen) -> Settings:
    return Settings(
        cache_folder=tmp_path / "cache",
        runtime_folder=tmp_path,
        **{"repository": ("on",), **chosen},
    )


def question(work: Path, *opened: str, is_quick: bool = True) -> Question:
    lines = ["from store import load_order", "load_order("]
    files = frozenset(work / name for name in opened)
    return Question("file:///c", work / "cart.py", lines, 1, 11, files, is_quick)


async def found(repository: Repository, asked: Question) -> list[str]:
    """The paths of what is shown; the first answers may come too late."""
    await repository.filled()
    for _ in range(20):
        if shown := await repository.shown(asked):
            return [one.path for one in shown]
    return []


async def test_a_folder_is_indexed_in_the_users_cache_and_asked(work, tmp_path):
    repository = Repository(unheard)
    repository.enter([work], settings(tmp_path))
    assert await found(repository, question(work)) == ["store.py"]
    assert index_path(settings(tmp_path), work).exists()
    assert await repository.shown(question(tmp_path / "elsewhere")) == ()
    repository.close()


async def test_of_open_files_definitions_are_shown(work, tmp_path):
    repository = Repository(unheard)
    repository.enter([work], settings(tmp_path))
    assert await found(repository, question(work, "store.py")) == ["store.py"]
    repository.close()


async def test_what_changes_is_followed_and_what_becomes_ignored_is_gone(work, tmp_path):
    repository = Repository(unheard)
    repository.enter([work], settings(tmp_path))
    assert await found(repository, question(work)) == ["store.py"]
    (work / ".gitignore").write_text("store.py\n")
    assert await repository.shown(question(work)) == ()  # at once
    repository.changed([work / ".gitignore"])
    await repository.filled()
    (work / ".gitignore").write_text("")
    (work / "more.py").write_text("def load_order(name: str): ...\n")
    repository.changed([work / "more.py", work / ".gitignore"])
    assert set(await found(repository, question(work))) >= {"store.py"}
    repository.close()


async def test_a_damaged_index_shows_nothing_and_is_made_anew(work, tmp_path):
    path = index_path(settings(tmp_path), work)
    path.parent.mkdir(parents=True)
    path.write_bytes(b"damaged" * 999)
    repository = Repository(unheard)
    repository.enter([work], settings(tmp_path))
    assert await found(repository, question(work)) == ["store.py"]
    repository.close()


async def test_an_index_that_another_window_made_anew_is_the_one_that_is_asked(work, tmp_path):
    repository, other = Repository(unheard), Repository(unheard)
    repository.enter([work], settings(tmp_path))
    assert await found(repository, question(work)) == ["store.py"]
    remove_store(index_path(settings(tmp_path), work))
    (work / "store.py").rename(work / "shop.py")
    other.enter([work], settings(tmp_path))
    await other.filled()
    assert await found(repository, question(work)) == ["shop.py"]
    repository.close()
    other.close()


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(("off",), []), (("src/",), []), (("*.py",), ["store.py"]), (("on",), ["store.py"])],
)
async def test_the_setting_says_what_is_known(work, tmp_path, chosen, expected):
    repository = Repository(unheard)
    repository.enter([work], settings(tmp_path, repository=chosen))
    assert await found(repository, question(work)) == expected
    repository.close()
