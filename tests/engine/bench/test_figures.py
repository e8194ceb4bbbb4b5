import math

import pytest

from engine.bench.figures import Speed, percentile, speed_figures
from engine.bench.measured import Measured, PeerRun
from tests.support.replayed import result


def measured(group="p", *, on_ms=40.0, off_ms=80.0, tokens=8, steps=2, off_first=True):
    return Measured(
        id="i",
        group=group,
        off=result(tokens=tokens, steps=tokens, decode_ms=off_ms),
        on=result(tokens=tokens, steps=steps, decode_ms=on_ms),
        off_first=off_first,
        peers={},
    )


def test_totals_weigh_tokens_and_medians_weigh_items():
    speed = Speed.of([10, 10, 100], [100.0, 300.0, 2000.0])
    assert speed.tokens_per_second == pytest.approx(50.0)
    assert speed.ms_per_token_p50 == 20.0
    assert speed.ms_per_token_p95 == pytest.approx(29.0)


def test_an_item_without_tokens_costs_time_but_has_no_speed():
    speed = Speed.of([10, 0], [100.0, 100.0])
    assert speed.tokens_per_second == pytest.approx(50.0)
    assert speed.ms_per_token_p50 == 10.0


def test_nothing_written_has_no_speed_and_no_ratio():
    speed = Speed.of([0], [0.0])
    assert math.isnan(speed.tokens_per_second)
    assert math.isnan(speed.over(speed).of_medians)
    assert math.isnan(percentile([], 50))


def test_ratios_are_above_one_where_lookahead_is_faster():
    figures = speed_figures([measured(), measured(on_ms=20.0)])
    assert figures.on_over_off.of_totals == pytest.approx(160 / 60)
    assert figures.on_over_off.of_medians == pytest.approx(10 / 3.75)


def test_tokens_per_step_of_totals_and_over_items():
    figures = speed_figures([measured(steps=8), measured(steps=2), measured(steps=1)])
    assert figures.tokens_per_step == pytest.approx(24 / 11)
    assert figures.tokens_per_step_p50 == 4.0


def test_the_worst_group_is_the_one_that_gained_least():
    runs = [measured("a"), measured("b", on_ms=100.0), measured("b", on_ms=90.0), measured("c")]
    worst = speed_figures(runs).worst_group
    assert worst.group == "b"
    assert worst.ratio == pytest.approx(160 / 190)


def test_a_group_that_wrote_nothing_is_not_the_worst():
    runs = [measured("a"), measured("empty", tokens=0, on_ms=0.0, off_ms=0.0)]
    assert speed_figures(runs).worst_group.group == "a"


def test_prefill_is_known_where_plain_decoding_came_first_and_found_no_prompt_held():
    figures = speed_figures([measured(), measured(off_first=False)])
    assert figures.prefill_ms_p50 == 50.0
    assert math.isnan(speed_figures([measured(off_first=False)]).prefill_ms_p50)


def test_a_peer_that_wrote_nothing_behind_its_first_token_has_no_pace():
    assert math.isnan(PeerRun(0, 3.0, 0.0).ms_per_token)
