"""The computed time of a step with all layers in one launch."""

from dataclasses import replace

import pytest

from engine.model.gpu import persistent_step
from engine.model.gpu.cards import CARDS, card_named
from engine.model.gpu.held_forms import HELD_FORMS
from engine.model.gpu.persistent_step import LUCKY, UNLUCKY, layers_us, takes
from engine.model.gpu.step_model import one_launch_step, six_launches_step
from engine.model.gpu.step_work import StepWork
from engine.model.known_shapes import QWEN_SHAPES

H200 = card_named("H200")
HALF = StepWork(QWEN_SHAPES["0.5b"])


@pytest.mark.parametrize("card", CARDS, ids=lambda card: card.name)
@pytest.mark.parametrize("form", HELD_FORMS)
def test_no_step_is_faster_than_its_bytes(card, form):
    for model in ("0.5b", "1.5b"):
        for rows in (1, 16):
            step = one_launch_step(StepWork(QWEN_SHAPES[model], form, rows), card)
            assert step.floor < step.least < step.middle < step.most


@pytest.mark.parametrize(
    ("work", "is_taken"),
    [
        (HALF, True),
        (replace(HALF, rows=16), True),
        (replace(HALF, rows=17), False),
        (replace(HALF, form="int4"), True),
        (replace(HALF, config=QWEN_SHAPES["1.5b"], form="Q4_K_M"), False),  # layers of two kinds
        (replace(HALF, config=QWEN_SHAPES["3b"]), False),
    ],
)
def test_it_is_for_small_models_few_rows_and_layers_that_are_alike(work, is_taken):
    assert takes(work) == is_taken


def test_a_layer_has_six_barriers_but_the_last_one_five(monkeypatch):
    monkeypatch.setattr(persistent_step, "PREFETCHED_BYTES", 0)  # which barriers hide
    slower = replace(LUCKY, barrier=LUCKY.barrier + 1)
    layers = HALF.config.num_layers
    more = layers_us(HALF, H200, slower) - layers_us(HALF, H200, LUCKY)
    assert more == pytest.approx(6 * layers - 1)


def test_what_is_asked_for_ahead_hides_some_of_the_bytes_and_no_more_than_barriers_last(
    monkeypatch,
):
    with_it = layers_us(HALF, H200, LUCKY)
    no_barrier = layers_us(HALF, H200, replace(LUCKY, barrier=0.0))
    monkeypatch.setattr(persistent_step, "PREFETCHED_BYTES", 0)
    without = layers_us(HALF, H200, LUCKY)
    layer = (without - with_it) / HALF.config.num_layers
    assert 1 < layer < 4 * LUCKY.barrier + LUCKY.attend + LUCKY.combine
    gained = layers_us(HALF, H200, replace(LUCKY, barrier=0.0)) - no_barrier
    assert gained < without - with_it


def test_programs_with_more_tiles_than_others_are_waited_for():
    """280 tiles of gate and up: two for each of 140 multiprocessors, a third for some of 132."""
    work = StepWork(QWEN_SHAPES["1.5b"])
    fair, rest = (
        layers_us(work, replace(H200, multiprocessors=count), UNLUCKY) for count in (140, 132)
    )
    assert rest - fair > UNLUCKY.tile * work.config.num_layers


def test_a_card_of_few_multiprocessors_gains_nothing():
    """Their programs take tile after tile, and only two programs side by side hide where one ends."""
    card = card_named("RTX 4060")
    assert one_launch_step(HALF, card).middle > six_launches_step(HALF, card).middle
