"""Ray Serve's request router for workspaces: each to its own replica, as long as that has room.

It runs in Ray's proxies, and in replicas that call each other. What it knows of a request is in its
headers: the session that a language server names, or else, for other programs, who they are.
"""

import hashlib
import pickle
from typing import Any

from ray.serve.request_router import PendingRequest, ReplicaID, RequestRouter, RunningReplica

from engine.host.scale.placement import Placement

_WHO = b"authorization"


class WorkspaceRouter(RequestRouter):  # type: ignore[misc] # Ray's types are not looked at
    """Offers Ray the replicas in a workspace's order; Ray takes the first that has room."""

    def __init__(self, *places: Any, **options: Any) -> None:  # noqa: ANN401 - Ray's
        super().__init__(*places, **options)
        self._placement = Placement()

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """The ranks in which Ray tries replicas; those of one rank are alike."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # before all are tried once more
        workspace = _workspace(pending_request)
        if workspace is None:
            return [candidate_replicas]
        by_name = {one.replica_id.unique_id: one for one in candidate_replicas}
        return [[by_name[name]] for name in self._placement.order(workspace, by_name)]

    def on_request_routed(
        self,
        pending_request: PendingRequest,
        replica_id: ReplicaID,
        result: Any,  # noqa: ANN401 - Ray's
    ) -> None:
        """A replica has taken a request."""
        super().on_request_routed(pending_request, replica_id, result)
        workspace = _workspace(pending_request)
        if workspace is not None:
            names = [one.unique_id for one in self.curr_replicas]
            self._placement.note(workspace, replica_id.unique_id, names)


def _workspace(request: PendingRequest) -> str | None:
    """What is to stay together; None: wherever there is room, as it is for /health."""
    if request.metadata.session_id:
        return f"session {request.metadata.session_id}"
    who = _headers(request).get(_WHO)
    return None if who is None else f"principal {hashlib.sha256(who).hexdigest()}"


def _headers(request: PendingRequest) -> dict[bytes, bytes]:
    """Those of a request that came over HTTP; none of a call between replicas."""
    if not (request.args and isinstance(request.args[0], bytes)):
        return {}
    asked = pickle.loads(request.args[0])  # noqa: S301 - this very process pickled it
    return dict(asked._asgi_scope["headers"])  # noqa: SLF001 - Ray has no other way to them
