"""Ray's router, as Ray calls it."""

import asyncio
import pickle
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("ray.serve", reason="the extra `scale` is not installed")

from ray.serve._private.common import DeploymentID
from ray.serve._private.request_router.common import ReplicaQueueLengthCache
from ray.serve.request_router import ReplicaID, RequestRouter

from engine.host.protocol import REPLICA_HEADER
from engine.host.scale.router import WorkspaceRouter


@dataclass(frozen=True)
class Seat:
    """A replica, as far as the router looks at it."""

    name: str

    @property
    def replica_id(self) -> ReplicaID:
        return ReplicaID(self.name, DeploymentID("Host", "foregram"))


@dataclass
class Scope:
    """What Ray's proxy pickles of a request."""

    _asgi_scope: dict[str, Any]


@dataclass
class Request:
    """A request before Ray's router."""

    session_id: str = ""
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)

    @property
    def metadata(self):
        return SimpleNamespace(session_id=self.session_id)

    @property
    def args(self):
        return [pickle.dumps(Scope({"headers": self.headers}))]

    routing_context = SimpleNamespace(should_backoff=False)


SEATS = [Seat(name) for name in "abcd"]
LOAD = 8


@pytest.fixture
def router(monkeypatch):
    monkeypatch.setattr(RequestRouter, "__init__", lambda self: None)
    router = WorkspaceRouter()
    router.initialize_state(load=LOAD)
    router._replica_queue_len_cache = ReplicaQueueLengthCache()
    return router


def ranks(router, request):
    chosen = asyncio.run(router.choose_replicas(SEATS, request))
    return [[one.name for one in rank] for rank in chosen]


def test_a_session_has_an_order_of_its_own(router):
    orders = {str(ranks(router, Request(f"{number}"))) for number in range(20)}
    assert len(orders) > 5
    assert ranks(router, Request("one")) == ranks(router, Request("one"))
    assert all(len(rank) == 1 for rank in ranks(router, Request("one")))


def test_without_a_session_who_asks_decides(router):
    ada = Request(headers=[(b"authorization", b"Bearer ada")])
    bob = [Request(headers=[(b"authorization", b"Bearer %d" % one)]) for one in range(20)]
    assert ranks(router, ada) == ranks(router, ada)
    assert len({str(ranks(router, one)) for one in bob}) > 5


def test_who_has_neither_goes_wherever_there_is_room(router):
    assert ranks(router, Request()) == [["a", "b", "c", "d"]]


def test_a_workspace_stays_where_it_says_that_it_was(router):
    *_, last = ranks(router, Request("one"))
    named = Request("one", [(REPLICA_HEADER.encode(), last[0].encode())])
    assert ranks(router, named)[0] == last
    gone = Request("one", [(REPLICA_HEADER.encode(), b"one-that-is-gone")])
    assert ranks(router, gone) == ranks(router, Request("one"))


def test_a_workspace_moves_where_its_replica_has_too_much_to_do(router):
    (first,), *_ = ranks(router, Request("one"))
    home = Seat(first).replica_id
    router.replica_queue_len_cache.update(home, LOAD - 1)
    assert ranks(router, Request("one"))[0] == [first]
    router.replica_queue_len_cache.update(home, LOAD)
    assert ranks(router, Request("one"))[0] != [first]
