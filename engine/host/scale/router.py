"""Ray Serve's request router for workspaces: each to its own replica, as long as that has room.

It runs in Ray's proxies, and in replicas that call each other. What it knows of a request is in its
headers: the session that a language server names, or else, for other programs, who they are; and
the replica that answered last.
"""

import hashlib
import pickle
from collections.abc import Mapping

from ray.serve.request_router import PendingRequest, RequestRouter, RunningReplica

from engine.host.protocol import REPLICA_HEADER
from engine.host.scale.placement import ranked

_WHO = b"authorization"
_LAST = REPLICA_HEADER.encode()


class WorkspaceRouter(RequestRouter):  # type: ignore[misc] # Ray's types are not looked at
    """Offers Ray the replicas in a workspace's order; Ray takes the first that has room."""

    queue_len_response_deadline_s = 1.0  # one that is slow for a moment keeps its workspaces

    def initialize_state(self, *, load: int) -> None:
        """As Ray hands on what the deployment says: the requests that a replica is to have."""
        self._load = load

    async def choose_replicas(
        self,
        candidate_replicas: list[RunningReplica],
        pending_request: PendingRequest | None = None,
    ) -> list[list[RunningReplica]]:
        """The ranks in which Ray tries replicas; those of one rank are alike."""
        if pending_request is None:
            return [candidate_replicas]
        pending_request.routing_context.should_backoff = True  # before all are tried once more
        headers = _headers(pending_request)
        workspace = _workspace(pending_request, headers)
        if workspace is None:
            return [candidate_replicas]
        by_name = {one.replica_id.unique_id: one for one in candidate_replicas}
        ongoing = {name: self._ongoing(one) for name, one in by_name.items()}
        last = headers.get(_LAST, b"").decode("latin-1")
        return [[by_name[name]] for name in ranked(workspace, ongoing, last, self._load)]

    def _ongoing(self, replica: RunningReplica) -> int:
        """The requests there; none are known of one that this router has sent nothing for long."""
        return self.replica_queue_len_cache.get(replica.replica_id) or 0


def _workspace(request: PendingRequest, headers: Mapping[bytes, bytes]) -> str | None:
    """What is to stay together; None: wherever there is room, as it is for /health."""
    if request.metadata.session_id:
        return f"session {request.metadata.session_id}"
    who = headers.get(_WHO)
    return None if who is None else f"principal {hashlib.sha256(who).hexdigest()}"


def _headers(request: PendingRequest) -> dict[bytes, bytes]:
    """Those of a request that came over HTTP; none of a call between replicas."""
    if not (request.args and isinstance(request.args[0], bytes)):
        return {}
    asked = pickle.loads(request.args[0])  # noqa: S301 - this very process pickled it
    return dict(asked._asgi_scope["headers"])  # noqa: SLF001 - Ray has no other way to them
