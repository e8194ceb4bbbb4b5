"""Which replica a workspace is on. Plain data, and nothing is remembered here.

A language server names the replica that answered it last, and stays there. Who names none, or one
that is gone, has an order of the replicas of its own, by rendezvous hashing (Thaler and Ravishankar
1998): every router finds the same, without talking to another, and a replica that goes moves no
workspace but those that it had.
"""

import hashlib
from collections.abc import Mapping

_UNEVEN = 4  # times the requests of another: a lower bar would have chance move workspaces


def ranked(workspace: str, ongoing: Mapping[str, int], last: str, load: int) -> list[str]:
    """All replicas, the workspace's own first; the next is for when that takes no more.

    `ongoing` are the requests of each that run or wait; `last` is where the workspace was, if
    anywhere; `load` is what is aimed at for each.
    """
    order = sorted(ongoing, key=lambda replica: _weight(workspace, replica))
    own = last if last in ongoing else order[0]
    idlest = min(order, key=ongoing.__getitem__)
    if ongoing[own] >= max(load, _UNEVEN * ongoing[idlest]):
        own = idlest
    return [own, *(replica for replica in order if replica != own)]


def _weight(workspace: str, replica: str) -> bytes:
    return hashlib.blake2b(f"{workspace}\0{replica}".encode(), digest_size=8).digest()
