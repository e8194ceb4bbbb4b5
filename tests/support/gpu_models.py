"""Our GPU model with the weights of a transformers model, and the operations a test wants."""

import torch
import transformers

from engine.model.gpu.loading import place_qwen2
from engine.model.gpu.qwen2 import GpuQwen2
from engine.model.loading.float_packing import pack_own_forms
from engine.model.model_config import ModelConfig
from engine.progress import Progress
from kernels.operations import Operations
from kernels.weight import Quantization


def gpu_qwen2(
    reference: transformers.PreTrainedModel,
    *,
    positions: int = 2048,
    dtype: torch.dtype = torch.float32,
    quantization: Quantization = "float",
    operations: Operations | None = None,
    device: torch.device | str = "cpu",
) -> GpuQwen2:
    """Pack the reference's weights in `dtype`, or in `quantization`."""
    config = ModelConfig.from_hugging_face(reference.config.to_dict())
    state = {name: tensor.to(dtype) for name, tensor in reference.state_dict().items()}
    tensors = dict(pack_own_forms(config, state.__getitem__, dtype=dtype))
    given = (config, tensors, quantization, positions, torch.device(device), Progress())
    return place_qwen2(*given, dtype, operations)
