"""Kernels cut for a device that this machine lacks."""

from collections.abc import Iterator
from contextlib import contextmanager
from unittest import mock

from kernels import device_limits
from kernels.device_limits import DeviceLimits


@contextmanager
def assumed(limits: DeviceLimits) -> Iterator[None]:
    with (
        mock.patch.object(device_limits, "_TESTED", limits),
        mock.patch.object(device_limits, "_limits_of_gpu", return_value=limits),
    ):
        yield
