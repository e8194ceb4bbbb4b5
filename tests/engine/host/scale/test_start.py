"""What Ray is told before it is imported."""

import subprocess
import sys

import pytest

pytest.importorskip("ray.serve", reason="the extra `scale` is not installed")

# Ray reads its variables when it is imported, so a process of its own imports it.
SOURCE = """
from engine.host.scale.plan import ReplicaCount, ScaleOptions
from engine.host.scale.plan import _prepare
_prepare(ScaleOptions(ReplicaCount.parse("1")))
from engine.host.scale.cluster import _LOCAL
from ray._common.network_utils import is_localhost
from ray._private.services import resolve_ip_for_localhost
print(is_localhost(resolve_ip_for_localhost(_LOCAL)))
"""


def test_a_ray_of_our_own_takes_the_loopback_address_at_its_word():
    """In place of another one it would open a dozen ports to all machines."""
    command = [sys.executable, "-c", SOURCE]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["True"], done.stderr
