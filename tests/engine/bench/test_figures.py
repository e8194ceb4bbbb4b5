import math

import pytest

from engine.bench.figures import Speed, percentile, speed_figures
from engine.bench.measured import Measured
from tests.support.replayed import result


def measured(*, on_ms=40.0, off_ms=80.0, tokens=8, steps=2):
    return Measured(
        id="i",
        off=result(tokens=tokens, steps=tokens, decode_ms=off_ms),
        on=result(tokens=tokens, steps=steps, decode_ms=on_ms),
    )


def speed_of(tokens, decode_ms):
    costs = zip(tokens, decode_ms, strict=True)
    return Speed.of([result(tokens=count, decode_ms=ms).cost for count, ms in costs])


def test_totals_weigh_tokens_and_medians_weigh_items():
    speed = speed_of([10, 10, 100], [100.0, 300.0, 2000.0])
    assert speed.tokens_per_second == pytest.approx(50.0)
    assert speed.ms_per_token_p50 == 20.0
    assert speed.ms_per_token_p95 == pytest.approx(29.0)


def test_an_item_without_tokens_costs_time_but_has_no_speed():
    speed = speed_of([10, 0], [100.0, 100.0])
    assert speed.tokens_per_second == pytest.approx(50.0)
    assert speed.ms_per_token_p50 == 10.0


def test_nothing_written_has_no_speed_and_no_ratio():
    speed = speed_of([0], [0.0])
    assert math.isnan(speed.tokens_per_second)
    assert math.isnan(speed.over(speed))
    assert math.isnan(percentile([], 50))


def test_ratios_and_tokens_per_step_are_of_all_tokens():
    figures = speed_figures([measured(steps=8), measured(steps=2), measured(on_ms=20.0, steps=1)])
    assert figures.tokens_per_step == pytest.approx(24 / 11)
    assert figures.on_over_off == pytest.approx(240 / 100)  # above 1 where lookahead is faster
