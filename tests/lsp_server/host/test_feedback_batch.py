"""Feedback waits for a request to go along with."""

import asyncio

import pytest

from engine.host.protocol import MAX_FEEDBACK, Feedback
from lsp_server.host.feedback_batch import FeedbackBatch

pytestmark = pytest.mark.asyncio


def shown(number):
    return Feedback("", str(number), "shown")


@pytest.fixture
def told():
    return []


@pytest.fixture
def batch(told):
    async def send(feedback):
        told.append(feedback)

    return FeedbackBatch(send)


async def test_a_request_takes_along_what_waits(batch, told):
    batch.add(shown(1))
    batch.add(shown(2))
    assert batch.take() == (shown(1), shown(2))
    await batch.flush()
    assert told == []


async def test_without_a_request_it_is_told_after_a_moment(batch, told):
    batch.add(shown(1))
    async with asyncio.timeout(5):
        while not told:
            await asyncio.sleep(0.01)
    assert told == [shown(1)]
    assert batch.take() == ()


async def test_no_more_waits_than_a_request_may_take_along(batch, told):
    for number in range(MAX_FEEDBACK + 1):
        batch.add(shown(number))
    assert batch.take() == (shown(MAX_FEEDBACK),)
    await batch.flush()
    assert told == [shown(number) for number in range(MAX_FEEDBACK)]


async def test_who_leaves_tells_what_waits(batch, told):
    batch.add(shown(1))
    await batch.flush()
    assert told == [shown(1)]
