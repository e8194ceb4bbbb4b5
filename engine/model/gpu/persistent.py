"""Which models and devices take all layers of a step in one launch."""

import torch

from engine.model.gpu.forward import Forward
from engine.model.model_config import ModelConfig
from kernels.operations import persistent_layers
from kernels.persistent_layers import LayersLaunch, LayerTensors

_MOST_PARAMETERS = 2e9  # of larger models the launches are long enough for the gaps between them
WORTHWHILE = 0.97  # of the usual time: less gain is not worth another form


def is_small(config: ModelConfig) -> bool:
    """Whether the gaps between a model's launches are worth a form of its own."""
    return config.num_parameters <= _MOST_PARAMETERS


def persistent_for(forward: Forward) -> LayersLaunch | None:
    """The layers of a model on a GPU as one launch; None where that is not to be had, or no gain."""
    device = forward.arena.keys.device
    if device.type != "cuda" or torch.version.hip or not is_small(forward.config):
        return None
    num_programs = torch.cuda.get_device_properties(device).multi_processor_count
    return persistent_layers(layers_of(forward), num_programs)


def layers_of(forward: Forward) -> list[LayerTensors]:
    """Each layer with the norm weight behind it and its part of the cache."""
    weights, arena = forward.weights, forward.arena
    return [
        LayerTensors(
            qkv=layer.qkv,
            qkv_bias=layer.qkv_bias,
            o=layer.o,
            gate_up_norm_weight=layer.gate_up_norm_weight,
            gate_up=layer.gate_up,
            down=layer.down,
            next_norm_weight=next_norm_weight,
            keys=arena.keys[index],
            values=arena.values[index],
        )
        for index, (layer, next_norm_weight) in enumerate(
            zip(weights.layers, weights.next_norm_weights, strict=True)
        )
    ]
