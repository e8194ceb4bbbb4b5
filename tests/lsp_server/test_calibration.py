"""A model that is too sure of itself is found out, by counts alone; what goes wrong costs no more."""

import json
import random

import msgspec
import pytest

from engine.host.protocol import Status
from lsp_server.calibration import (
    Calibrator,
    Outcomes,
    outcome_file,
    outcome_sentence,
    read_outcomes,
    threshold,
)
from lsp_server.settings import Settings

STATUS = Status(1, "0.1.0", "ready", 42, 1.0, model="owner/Coder-0.5B", dtype="int8")


def outcomes_of(exponent: float, count: int, seed: int = 1) -> list[tuple[float, bool]]:
    """Suggestions as the gate lets them pass, right with their probability to the `exponent`."""
    rng = random.Random(seed)  # noqa: S311 - a draw, no secret
    said = [rng.uniform(0.5, 1) for _ in range(count)]
    return [(one, rng.random() < one**exponent) for one in said]


def summed(outcomes: list[tuple[float, bool]]) -> Outcomes:
    total = Outcomes()
    for confidence, is_right in outcomes:
        total = total.plus(Outcomes.of(confidence, is_right=is_right))
    return total


@pytest.fixture
def settings(tmp_path):
    return Settings(cache_folder=tmp_path / "cache", runtime_folder=tmp_path)


def calibrator_of(settings: Settings, exponent: float = 1.0, count: int = 0) -> Calibrator:
    calibrator = Calibrator(lambda: settings)
    calibrator.follow(STATUS)
    for confidence, is_right in outcomes_of(exponent, count):
        calibrator.note(confidence, is_right=is_right)
    return calibrator


@pytest.mark.parametrize("exponent", [0.7, 1.0, 1.3, 1.6])
def test_the_fit_finds_how_sure_of_itself_the_model_is(exponent):
    found = summed(outcomes_of(exponent, 3_000)).overconfidence
    assert found == pytest.approx(exponent, abs=0.11)


@pytest.mark.parametrize("exponent", [0.7, 1.6])
def test_what_is_asked_for_is_right_as_often_as_was_wanted(exponent):
    """Without the fit, those said to be right in 60 % of the cases would be so in 70 or 44 %."""
    asked = threshold(0.6, summed(outcomes_of(exponent, 3_000)).overconfidence)
    assert asked**exponent == pytest.approx(0.6, abs=0.03)


def test_a_model_counts_as_right_until_some_hundred_outcomes_say_otherwise():
    assert Outcomes().overconfidence == 1.0
    assert summed([(0.7, False)] * 10).overconfidence <= 1.25
    assert summed(outcomes_of(1.6, 30)).overconfidence <= 1.2
    assert summed(outcomes_of(1.6, 600)).overconfidence >= 1.3


@pytest.mark.parametrize(("is_right", "bound"), [(True, 0.5), (False, 2.0)])
def test_whatever_happens_the_number_is_bounded(is_right, bound):
    worst = summed([(0.6, is_right)] * 2_000)
    assert worst.overconfidence == bound
    assert threshold(0.0, bound) == 0.0
    assert threshold(1.0, bound) == 1.0
    assert 0.25 <= threshold(0.5, bound) <= 0.71


@pytest.mark.parametrize("confidence", [0.0, 1.0])
def test_the_bins_hold_every_probability(confidence):
    assert Outcomes.of(confidence, is_right=True).total == 1


def test_old_outcomes_count_for_less():
    """So a model that got another kind of work is known soon."""
    former, latter = outcomes_of(1.0, 6_000), outcomes_of(1.6, 4_000, seed=2)
    total = summed(former + latter)
    assert total.total <= 4_000
    assert total.overconfidence == pytest.approx(1.5, abs=0.15)


def test_what_was_learned_is_there_at_the_next_start(settings):
    first = calibrator_of(settings, 1.6, 2_000)
    assert first.asked(0.5) == pytest.approx(0.5 ** (1 / 1.6), abs=0.03)
    first.save()
    assert calibrator_of(settings).asked(0.5) == first.asked(0.5)


def test_each_model_and_form_of_its_weights_has_its_own(settings):
    calibrator = calibrator_of(settings, 1.6, 2_000)
    for other in ({"model": "../Coder"}, {"dtype": "float32"}):
        calibrator.follow(msgspec.structs.replace(STATUS, **other))
        assert calibrator.asked(0.5) == 0.5
    calibrator.follow(STATUS)  # what was learned has been kept
    assert calibrator.asked(0.5) > 0.55
    (file,) = (settings.cache_folder / "outcomes").iterdir()
    assert file == outcome_file(settings, STATUS)


def test_windows_add_to_what_others_have_learned(settings):
    one, other = calibrator_of(settings, 1.0, 30), calibrator_of(settings, 1.0, 20)
    one.save()
    other.save()
    other.save()  # nothing twice
    assert read_outcomes(outcome_file(settings, STATUS)).total == 50


def test_the_file_holds_counts_and_nothing_else(settings):
    calibrator_of(settings, 1.0, 500).save()
    content = outcome_file(settings, STATUS).read_bytes()
    kept = json.loads(content)
    assert kept.pop("version") == 1
    assert kept.keys() == {"right", "wrong"}
    assert all(type(count) is int for counts in kept.values() for count in counts)
    assert sum(map(sum, kept.values())) == 500
    assert len(content) < 1_000


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no object",
        b"\xff\xfe",
        b'{"version": 2}',
        b'{"right": [1, 2]}',
        b'{"right": ' + json.dumps([-1] * 50).encode() + b"}",
        b'{"right": ' + json.dumps([10**9] * 50).encode() + b"}",
        b'{"text": "secret"}',
        b" " * 20_000,
    ],
)
def test_a_damaged_file_is_begun_anew(settings, content):
    file = outcome_file(settings, STATUS)
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    calibrator = calibrator_of(settings, 1.0, 3)
    assert calibrator.asked(0.5) == pytest.approx(0.5, abs=0.03)
    calibrator.save()
    assert read_outcomes(file).total == 3


def test_where_nothing_can_be_kept_it_lasts_until_the_end(settings):
    settings.cache_folder.write_text("a file in the folder's place")
    calibrator = calibrator_of(settings, 1.6, 1_000)
    before = calibrator.asked(0.5)
    calibrator.save()
    assert calibrator.asked(0.5) == before > 0.55
    calibrator.note(0.7, is_right=True)
    calibrator.save()


def test_switched_off_it_neither_learns_nor_changes_anything(settings):
    calibrator_of(settings, 1.6, 2_000).save()
    off = msgspec.structs.replace(settings, calibrate=False)
    calibrator = calibrator_of(off, 1.0, 50)
    assert calibrator.asked(0.5) == 0.5
    calibrator.save()
    assert read_outcomes(outcome_file(settings, STATUS)).total == 2_000
    assert outcome_sentence(off, STATUS) == "`calibrate` is off: 0.5 is asked for as it is"


def test_a_sentence_says_what_was_learned(settings):
    assert "no suggestion's outcome is known yet" in outcome_sentence(settings, STATUS)
    calibrator_of(settings, 1.6, 2_000).save()
    said = outcome_sentence(settings, STATUS)
    assert said.startswith("of 2,000 suggestions 6")
    assert "% were right, and 75% said to be: 0.5 is asked for as 0.6" in said
