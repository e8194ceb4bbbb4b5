"""The figures of the page about models are those by which `auto` chooses."""

from pathlib import Path

import pytest

from engine.model.cpu.fit import CPU_MODELS, SMALLEST, CpuMachine
from engine.model.gpu.fit import PLANNED_CARDS, pick

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "engine/models.md").read_text()
GB = 1e9
CHOSEN = [model for model in CPU_MODELS if not model.hindrance]


@pytest.mark.parametrize("card", PLANNED_CARDS, ids=lambda card: card.name)
def test_the_page_has_what_auto_takes_on_each_card(card):
    fit = pick(card)
    held, least = f"`{fit.model}` | `{fit.form}`", f"{fit.floor_ms:.0f} ms"
    assert f"| {card.memory_gib} GB | {card.name} | {held} | {least} |\n" in PAGE


@pytest.mark.parametrize("model", CHOSEN, ids=lambda model: model.name)
def test_the_page_has_the_sizes_of_each_model_for_processors(model):
    sizes = (model.fetched, model.disk, model.memory)
    row = f"| `{model.name}` | " + "".join(f"{size / GB:.1f} GB | " for size in sizes)
    assert row in PAGE
    told = PAGE.split(row)[1].split(" |")[0]
    if model != SMALLEST.model:
        needed = float(told.removesuffix(" GB")) * GB
        assert not CpuMachine(needed * 1.02, 1.0).lack(model)
        assert CpuMachine(needed * 0.97, 1.0).lack(model)
    assert f"at most {min(model.most_ms, 200):.0f} ms" in PAGE


@pytest.mark.parametrize("file", ["README.md", "src/installer.ts"])
def test_vs_code_tells_the_size_of_the_small_models_converted_copy(file):
    size = (SMALLEST.model.disk - SMALLEST.model.fetched) / GB
    text = (ROOT / "editor_plugins/vscode" / file).read_text()
    assert f"another {size:.1f} GB in the cache folder" in text


def test_the_readme_tells_the_sizes_of_the_models_for_most_machines():
    small, large = CHOSEN[:2]
    told = f"{small.fetched / GB} or {large.fetched / GB} GB to fetch, "
    told += f"{small.disk / GB:.1f} or {large.disk / GB:.1f} GB on disk"
    assert told in (ROOT / "README.md").read_text()
