"""Matrices of GPTQ and AWQ are the same numbers on a GPU, and whole weights elsewhere."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.errors import ModelCorruptError
from engine.model.gpu.weights import GpuWeights
from engine.model.loading.converted_model import FILE_FORMS
from engine.model.loading.folder_model import FolderModel
from engine.model.loading.store import obtain
from engine.progress import Progress
from tests.support.int4_folder import quantize_folder
from tests.support.tiny_models import save_model, tiny_model

GATE = "model.layers.0.mlp.gate_proj.weight"
KINDS = [("gptq", {}, "int4"), ("gptq", {"sym": False}, "int4_zeros"), ("awq", {}, "int4_zeros")]


def saved(tmp_path):
    model = tiny_model("qwen2", 1, hidden_size=128, intermediate_size=256)
    return save_model(model, tmp_path / "model")


@pytest.mark.parametrize(("method", "more", "form"), KINDS)
def test_the_weights_are_those_of_the_checkpoint(tmp_path, method, more, form):
    folder = saved(tmp_path)
    meant = quantize_folder(folder, method, **more)
    model = FolderModel(folder, "tiny")
    assert not model.lack
    assert model.has_own_forms
    for name, weights in meant.items():
        assert np.array_equal(model.read(name), weights)
        assert model.own_form(name).quantization == form
        assert torch.equal(model.own_form(name).dense(), weights)


@pytest.mark.parametrize(("method", "more", "form"), KINDS)
def test_a_gpu_holds_them_as_they_are(tmp_path, method, more, form):
    folder = saved(tmp_path)
    quantize_folder(folder, method, **more)
    model = obtain(tmp_path / "cache", FolderModel(folder, "tiny"), FILE_FORMS, Progress())
    device = torch.device("cpu")
    weights = GpuWeights.place(model.config, model.tensors(), "float", torch.bfloat16, device)
    assert {one.quantization for layer in weights.layers for one in layer.matrices} == {form}
    assert weights.dtype_name == "int4"
    assert weights.embedding.table.quantization == "float"


def test_inputs_in_another_order_become_whole_weights(tmp_path):
    folder = saved(tmp_path)
    weights = quantize_folder(folder, "gptq", desc_act=True)["model.layers.0.mlp.down_proj.weight"]
    path = folder / "model.safetensors"
    tensors = load_file(path)
    name = GATE.replace("gate", "down")
    order = name.replace("weight", "g_idx")
    tensors[order] = tensors[order].flip(0)
    save_file(tensors, path)
    model = FolderModel(folder, "tiny")
    assert model.own_form(name) is None
    assert model.read(name).shape == weights.shape
    assert not np.array_equal(model.read(name), weights)


def test_another_group_size_becomes_whole_weights(tmp_path):
    folder = saved(tmp_path)
    weights = quantize_folder(folder, "awq")[GATE]
    path = folder / "model.safetensors"
    tensors = load_file(path)
    for part in ("scales", "qzeros"):
        name = GATE.replace("weight", part)
        tensors[name] = tensors[name].repeat_interleave(2, dim=0)
    save_file(tensors, path)
    model = FolderModel(folder, "tiny")
    assert model.own_form(GATE) is None
    assert np.array_equal(model.read(GATE), weights)


def test_zeros_of_another_type_are_damage(tmp_path):
    folder = saved(tmp_path)
    quantize_folder(folder, "gptq")
    tensors = load_file(folder / "model.safetensors")
    zeros = GATE.replace("weight", "qzeros")
    tensors[zeros] = tensors[zeros].float()
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelCorruptError, match="are not packed in int32"):
        FolderModel(folder, "tiny").read(GATE)


def test_a_part_that_is_missing_is_damage(tmp_path):
    folder = saved(tmp_path)
    quantize_folder(folder, "awq")
    tensors = load_file(folder / "model.safetensors")
    del tensors[GATE.replace("weight", "scales")]
    save_file(tensors, folder / "model.safetensors")
    with pytest.raises(ModelCorruptError, match="garbled"):
        FolderModel(folder, "tiny").read(GATE)


def test_other_quantizations_are_left_to_transformers(tmp_path):
    folder = saved(tmp_path)
    quantize_folder(folder, "gptq", bits=8)
    model = FolderModel(folder, "tiny")
    assert model.config.deviations == ("gptq quantization",)
    assert model.lack == "has gptq quantization"
