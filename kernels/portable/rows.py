"""The rows of a batch as the host knows them."""

from dataclasses import fields

import torch

from kernels.batch import BatchMetadata
from kernels.step_rows import StepRows


def rows_of(batch: BatchMetadata) -> StepRows:
    """What the batch brings along, or else what its arrays say: then the device is waited for."""
    if batch.step_rows is not None:
        return batch.step_rows
    held = {one.name: getattr(batch, one.name) for one in fields(batch)}
    arrays = {name: one.cpu().numpy() for name, one in held.items() if torch.is_tensor(one)}
    return StepRows.plan(arrays, batch.tokens.device)
