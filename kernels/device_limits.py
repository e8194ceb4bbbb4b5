"""The limits of GPUs, by architecture. Tiles follow them, but no result does."""

from dataclasses import dataclass, replace
from functools import lru_cache

import torch

LEAST_CAPABILITY = (8, 0)  # of the tensor cores' instruction for bfloat16, and of `cp.async`
LEAST_SHARED_BYTES = 101_376  # of a program: what RTX 30 to 50 have; the greediest kernel fits
_RESERVED = 1024  # bytes that the system takes per program
_FILLED = 0.95  # part of a share for tiles: sums pass through shared memory, too


@dataclass(frozen=True, slots=True)
class DeviceLimits:
    """One kind of device; its `architecture` is 86 for compute capability 8.6.

    A program may take `shared_bytes` of shared memory; a multiprocessor has 1 KiB more.
    """

    architecture: int
    shared_bytes: int

    @property
    def has_warp_groups(self) -> bool:
        """Whether matrix instructions read shared memory while the warps go on: wgmma, tcgen05.

        A tile then stays there until its product is done. By `mma.sync` it is already in registers,
        so shared memory holds one tile less than stages are under way.
        """
        return self.architecture // 10 in (9, 10)

    @property
    def has_tensor_memory(self) -> bool:
        """Whether matrix instructions keep sums in a memory of their own: tcgen05."""
        return self.architecture // 10 == 10

    @property
    def converts_fp8(self) -> bool:
        """Whether there is an instruction from e4m3; without it codes are shifted into place."""
        return self.architecture >= 89

    @property
    def is_wide(self) -> bool:
        """Whether programs of 128 outputs and 128 rows pay where rows are many, as on an H200.

        Elsewhere they are not measured, and by Triton 3.7.1 they spill for sm_80 and sm_100.
        """
        return self.architecture // 10 == 9

    def share(self, programs: int) -> int:
        """Bytes for the tiles of a program where `programs` are to be on a multiprocessor."""
        return int(((self.shared_bytes + _RESERVED) // programs - _RESERVED) * _FILLED)


LIMITS = {
    limits.architecture: limits
    for limits in (
        DeviceLimits(80, 166_912),  # A100
        DeviceLimits(86, 101_376),  # RTX 30
        DeviceLimits(87, 166_912),  # Orin
        DeviceLimits(89, 101_376),  # RTX 40, L4, L40
        DeviceLimits(90, 232_448),  # H100, H200
        DeviceLimits(100, 232_448),  # B200
        DeviceLimits(103, 232_448),  # B300
        DeviceLimits(120, 101_376),  # RTX 50
        DeviceLimits(121, 101_376),  # DGX Spark
    )
}
_TESTED = LIMITS[90]  # whose tiles the interpreter runs


def limits_of(device: torch.device) -> DeviceLimits:
    """The limits that kernels on `device` are cut for; in the interpreter those of an H100."""
    return _limits_of_gpu(device) if device.type == "cuda" else _TESTED


@lru_cache
def _limits_of_gpu(device: torch.device) -> DeviceLimits:
    gpu = torch.cuda.get_device_properties(device)
    shared_bytes = getattr(gpu, "shared_memory_per_block_optin", None)  # a torch may not say
    return limits_for(10 * gpu.major + gpu.minor, shared_bytes)


def limits_for(architecture: int, shared_bytes: int | None = None) -> DeviceLimits:
    """The limits of an architecture, or of the nearest older one in the table.

    `shared_bytes` is what the device itself reports, where it does.
    """
    older = max((one for one in LIMITS if one <= architecture), default=min(LIMITS))
    limits = replace(LIMITS[older], architecture=architecture)
    return limits if shared_bytes is None else replace(limits, shared_bytes=shared_bytes)


def early_launch(*, programmatic: bool) -> dict[str, bool]:
    """Triton's option to start a kernel early, unless unwanted: not every GPU knows it."""
    return {"launch_pdl": True} if programmatic else {}
