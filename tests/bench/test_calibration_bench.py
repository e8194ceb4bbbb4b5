"""A model that says 80 % is to be right in 80 of 100 cases; one temperature mends one that is not."""

import numpy as np
import pytest

from engine.bench.task_sets import ReplayItem
from engine.config import StopRules
from engine.engine import Engine
from engine.errors import InputError
from engine.options import EngineOptions
from engine.request import CompletionRequest
from tests.bench.calibration_bench import (
    TEMPERATURES,
    ChosenTokens,
    calibration_error,
    calibration_figures,
    fitted_temperature,
    read_choices,
    reliability,
)
from tests.support.tiny_models import save_model, tiny_model


def tokens_of(overconfidence: float, count: int = 40_000) -> ChosenTokens:
    """Of choices between two ids, whose logits are `overconfidence` times too far apart."""
    rng = np.random.default_rng(1)
    lead = rng.uniform(0, 4, count)  # of the logits, as they should be
    right = rng.random(count) < 1 / (1 + np.exp(-lead))
    log_probs = -np.logaddexp(0, -overconfidence * lead[:, None] / TEMPERATURES)
    packages = rng.choice(["a", "b", "c", "d"], count)
    return ChosenTokens(packages, log_probs, right)


def test_one_that_is_right_as_often_as_it_says_has_no_error():
    figures = calibration_figures(tokens_of(1.0))
    assert figures.error < 0.01
    assert figures.temperature == pytest.approx(1.0, abs=0.051)


def test_one_that_is_too_sure_is_mended_by_its_temperature():
    figures = calibration_figures(tokens_of(1.5))
    assert figures.error > 0.05
    assert figures.fitted_error < 0.01
    assert figures.temperature == pytest.approx(1.5, abs=0.051)
    assert figures.confidence > figures.right


def test_a_half_is_mended_by_what_the_other_half_says():
    """Were it fitted on itself, it would look better than it is."""
    good, bad = tokens_of(1.0, 4_000), tokens_of(2.0, 4_000)
    packages = np.repeat(["a", "b"], 4_000)
    both = ChosenTokens(
        packages,
        np.concatenate([good.log_probs, bad.log_probs]),
        np.concatenate([good.right, bad.right]),
    )
    own = TEMPERATURES[fitted_temperature(both, packages == "b")]
    assert own == pytest.approx(2.0, abs=0.11)
    assert calibration_figures(both).fitted_error > 0.03


def test_the_error_is_the_mean_gap_by_tokens():
    confidence = np.array([0.95, 0.95, 0.95, 0.5])
    bins = reliability(confidence, np.array([True, True, False, True]))
    assert [(one.tokens, one.right) for one in bins] == [(1, 1.0), (3, pytest.approx(2 / 3))]
    assert calibration_error(bins) == pytest.approx((0.5 + 3 * (0.95 - 2 / 3)) / 4)


def test_a_certain_choice_that_is_wrong_counts_for_much_and_not_for_all():
    certain = ChosenTokens(
        np.array(["a"]), np.zeros((1, len(TEMPERATURES)), np.float32), np.array([False])
    )
    assert fitted_temperature(certain, np.array([True])) == 0


def test_a_model_is_read_behind_its_own_prompts(tmp_path):
    folder = save_model(tiny_model("qwen2", seed=4), tmp_path / "model")
    engine = Engine.load(EngineOptions(cache_folder=tmp_path / "cache", model=str(folder)))
    items = [item("one", "    return 1\n"), item("two", "    total = 0\n    return total\n")]
    asked = CompletionRequest("", "", stop=StopRules(max_tokens=5))
    tokens = read_choices(engine.model, items, engine.prompt, asked)
    assert sorted(set(tokens.packages)) == ["one", "two"]
    assert tokens.log_probs.shape == (len(tokens.right), len(TEMPERATURES))
    assert (np.diff(tokens.log_probs, axis=1) <= 1e-6).all()  # the hotter, the less sure
    assert len(tokens.right) <= 10
    with pytest.raises(InputError, match="its target is empty"):
        read_choices(engine.model, [item("three", "")], engine.prompt, asked)
    engine.close()


def item(package: str, target: str) -> ReplayItem:
    return ReplayItem("i", "completion", package, "a.py", "def f():\n", target, "", ())
