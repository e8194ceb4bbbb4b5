"""The thread of the questions: none pile up in it."""

import asyncio
import threading
from functools import partial

import pytest

from lsp_server.repository.question_thread import QuestionThread

pytestmark = pytest.mark.asyncio


async def test_of_one_buffer_the_latest_question_alone_waits():
    thread, release, done = QuestionThread(), threading.Event(), list[str]()
    assert thread.busy_s == 0

    def slow():
        release.wait()
        done.append("a1")

    first = thread.ask("a", slow)
    others = [thread.ask("a", partial(done.append, f"a{n}")) for n in (2, 3, 4)]
    elsewhere = thread.ask("b", partial(done.append, "b1"))
    assert thread.busy_s > 0
    release.set()
    assert await asyncio.gather(first, *others, elsewhere) == [True, False, False, True, True]
    assert done == ["a1", "a4", "b1"]
    thread.close()


async def test_what_was_asked_before_the_end_is_done():
    thread, release, done = QuestionThread(), threading.Event(), list[str]()
    thread.ask("a", release.wait)
    last = thread.ask("b", partial(done.append, "closed"))
    thread.close()
    release.set()
    assert await last
    assert done == ["closed"]
