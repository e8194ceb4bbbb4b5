import json
import math
from dataclasses import replace

import pytest
from rich.console import Console

from engine.bench.gpu import run
from engine.bench.gpu.attention import Attention, AttentionTime
from engine.bench.gpu.cases import Cases
from engine.bench.gpu.chat import ChatSpeed
from engine.bench.gpu.compiling import CompileJob, compile_all, jobs_of, run_job
from engine.bench.gpu.findings import thresholds_of
from engine.bench.gpu.inputs import BenchInputs
from engine.bench.gpu.machine import Machine, cuda_ms
from engine.bench.gpu.picture import draw
from engine.bench.gpu.plans import COMPILED_ROWS, compile_jobs
from engine.bench.gpu.real_model import OwnText
from engine.bench.gpu.recipes import RecipeTime
from engine.bench.gpu.replays import ForcedSet, ForcedSpeed
from engine.bench.gpu.run import GpuBench
from engine.bench.gpu.shapes import ALL_SHAPES, parse_shapes
from engine.bench.gpu.steps import StepTime
from engine.bench.gpu.stress import SplitProduct, Stress
from engine.bench.gpu.tables import failures_table, section_table, thresholds_table
from engine.errors import ConfigurationError
from engine.model.gpu.buffers import StepShape
from engine.progress import NoProgress

SECTIONS = [
    "bandwidth",
    "steps",
    "products",
    "split_products",
    "attention",
    "recipes",
    "invariance",
    "replay_tiny_bf16",
    "recipe_speeds",
    "first_token",
    "own_text",
    "chat",
    "unload",
    "replay_tiny_fp8",
    "programmatic",
]


def step_time(shape, rows, ms, ratio):
    return StepTime(shape, "bf16", rows, 2048, 10, ms * ratio, ms, ratio)


def forced_set(shape, kind, auto, recipe):
    speeds = [
        ForcedSpeed(name, 9, 9, 100 * speed, speed, speed, 3.0, 30.0)
        for name, speed in (("auto", auto), ("15,15,15", recipe))
    ]
    return ForcedSet(shape, "bf16", kind, 9, 90, 9, 100.0, tuple(speeds))


def own_text(items, identical):
    different = tuple(f"item {number}" for number in range(items - identical))
    return OwnText("7b", "bf16", "edit", 0.0, items, identical, different, 1.0, 2.0, 2.0, 2.0, 2.0)


def chat_speed(lookahead, prompts, identical):
    return ChatSpeed(lookahead, prompts, identical, 90, 100.0, 1.0, 1.0, 1.0)


def threshold_of(name, *arguments):
    (threshold,) = (threshold for threshold in thresholds_of(*arguments) if threshold.name == name)
    return threshold


def shown(renderable):
    console = Console(width=200)
    with console.capture() as captured:
        console.print(renderable)
    return captured.get()


@pytest.mark.timeout(300)  # all sections, and what they compile
def test_every_section_is_measured_saved_shown_and_drawn(machine, inputs, sizes, tmp_path):
    bench = GpuBench(machine, inputs, NoProgress(), sizes)
    path = tmp_path / "gpu.json"
    names = []
    for name in bench.run():
        names.append(name)
        bench.findings.save(path)
        assert name not in bench.findings.failures, bench.findings.failures
        section_table(name, bench.findings)
    assert names == SECTIONS
    saved = json.loads(path.read_text())
    assert list(saved["sections"]) == SECTIONS
    assert set(saved) == {
        "machine",
        "thresholds",
        "sections",
        "failures",
        "section_seconds",
        "notes",
    }
    assert {"gpu", "date", "torch", "triton"} <= set(saved["machine"])
    assert len(saved["thresholds"]) == 14
    verdicts = {threshold["name"]: threshold["value"] for threshold in saved["thresholds"]}
    assert verdicts["texts that lookahead changed"] == 0
    (first, *_) = saved["sections"]["replay_tiny_bf16"]
    assert first["speeds"][0]["over_off_of_totals"] > 0
    compared = saved["sections"]["recipe_speeds"]["cases"]
    assert len(compared) == 2 * 2 * 2  # kinds, recipes, ways
    assert all(one["auto_over_recipe"] > 0 for one in compared)
    pytest.importorskip("matplotlib", reason="the extra `plots` is not installed")
    draw(bench.findings.results, tmp_path / "gpu.png")
    assert (tmp_path / "gpu.png").read_bytes().startswith(b"\x89PNG")


def test_a_section_that_fails_is_a_sentence_and_the_others_go_on(
    machine, inputs, sizes, monkeypatch
):
    def broken(*arguments):
        raise RuntimeError("an illegal\nmemory access")

    monkeypatch.setattr(run, "measure_bandwidth", broken)
    bench = GpuBench(
        machine,
        BenchInputs(inputs.shapes, inputs.cache_folder, inputs.tokenizer),
        NoProgress(),
        sizes,
    )
    names = list(bench.run())
    failures = bench.findings.as_json()["failures"]
    assert failures["bandwidth"] == "RuntimeError: an illegal memory access"
    assert failures["steps"] == "ValueError: the bandwidth was not measured"
    assert {"invariance", "first_token", "programmatic"} <= set(bench.findings.results)
    assert "an illegal memory access" in shown(section_table("bandwidth", bench.findings))
    table = failures_table(bench.findings)
    assert table is not None
    assert "ValueError: the bandwidth was not measured" in shown(table)
    assert not [name for name in names if name.startswith(("replay", "own", "chat"))]


def test_an_optional_section_is_left_out_when_time_is_up(machine, inputs, sizes, monkeypatch):
    monkeypatch.setattr(GpuBench, "_measure", lambda self, section: None)
    bench = GpuBench(machine, inputs, NoProgress(), replace(sizes, total_seconds=-1.0))
    assert list(bench.run()) == SECTIONS
    assert list(bench.findings.failures) == ["replay_tiny_fp8"]


def test_the_thresholds_are_judged():
    steps = Cases((step_time("7b", 1, 4.0, 0.84), step_time("7b", 32, 4.2, 0.8)), ())
    attention = Attention(
        (AttentionTime("7b", 16, 8192, 10.0, 0.5, 40.0, 4.0),), (), Stress(10_000, 1)
    )
    results = {
        "steps": steps,
        "attention": attention,
        "replay_7b_bf16": (forced_set("7b", "completion", 2.5, 2), forced_set("7b", "edit", 6, 4)),
        "replay_32b_bf16": (forced_set("32b", "completion", 2.7, 1.5),),
        "recipes": Cases((RecipeTime("32b", 420, 2048, 30.0, 3.0, 3.0, "shared heads"),), ()),
    }
    verdicts = {
        threshold.name: (
            None if threshold.value is None else round(threshold.value, 3),
            threshold.is_met,
        )
        for threshold in thresholds_of(results)
    }
    expected = {
        "floor over step, 7b bf16, 1 row, 2k": (0.84, False),
        "floor over step, 0.5b bf16, 1 row, 2k": (None, None),
        "step of 32 rows over step of 1, 7b bf16, 2k": (1.05, True),
        "lookahead on over off, 7b bf16, completions": (2.5, True),
        "lookahead on over off, 7b bf16, edits": (6, False),
        "auto over 15,15,15 at its own rows, 32b bf16, completions": (2.7, True),
        "attention over torch's, 16 rows, 8k": (4.0, True),
        "launches of attention that differ": (1, False),
        "rows that differ in company": (None, None),
    }
    assert {name: verdicts[name] for name in expected} == expected
    table = shown(thresholds_table(thresholds_of(results)))
    assert "MISSED" in table
    assert "not measured" in table


def test_a_replay_that_had_no_time_for_an_item_is_not_judged():
    speed = ForcedSpeed("auto", 0, 0, math.nan, math.nan, math.nan, 0.0, 0.0)
    empty = ForcedSet("7b", "bf16", "edit", 0, 0, 0, math.nan, (speed,))
    threshold = threshold_of("lookahead on over off, 7b bf16, edits", {"replay_7b_bf16": (empty,)})
    assert threshold.is_met is None


def test_texts_that_lookahead_changed_are_counted_in_both_sections():
    name = "texts that lookahead changed"
    results = {
        "own_text": (own_text(9, 9), own_text(9, 8)),
        "chat": (chat_speed("off", 4, 4), chat_speed("auto", 4, 2)),
    }
    assert (threshold_of(name, results).value, threshold_of(name, results).is_met) == (3, False)
    assert threshold_of(name, {"own_text": (own_text(9, 9),)}).is_met is True


def test_texts_are_not_judged_where_some_were_not_compared():
    name = "texts that lookahead changed"
    assert threshold_of(name, {}).value is None
    assert threshold_of(name, {"chat": (chat_speed("auto", 0, 0),)}).value is None
    results, failed = {"own_text": (own_text(9, 9),)}, {"chat": "RuntimeError: no memory"}
    assert threshold_of(name, results, failed).value is None


def test_launches_of_products_that_are_split_are_judged():
    name = "launches of a split product that differ"
    whole = SplitProduct("tiny", "o", 1, 1, 100, 0)
    found = (
        SplitProduct("1.5b", "down", 1, 8, 100, 0),
        SplitProduct("1.5b", "down", 128, 8, 100, 2),
    )
    assert threshold_of(name, {"split_products": found}).value == 2
    assert threshold_of(name, {"split_products": found[:1]}).is_met is True
    assert threshold_of(name, {"split_products": (whole,)}).value is None


def test_a_report_in_which_all_went_well_ends_with_the_thresholds(machine, inputs):
    assert failures_table(GpuBench(machine, inputs, NoProgress()).findings) is None


def test_everything_that_will_be_launched_is_compiled_once():
    jobs = compile_jobs(parse_shapes(ALL_SHAPES))
    keys = [(job.shape, job.rows, job.is_programmatic) for job in jobs]
    assert len(set(keys)) == len(keys)
    assert [job.rows for job in jobs] == sorted((job.rows for job in jobs), reverse=True)
    large = {
        job.rows for job in jobs if job.shape.name == "32b" and job.shape.quantization == "float"
    }
    assert large == {1, 8, 16, 32, 64, 128}
    assert all(
        job.is_full for job in jobs if job.shape.quantization == "float" and not job.is_programmatic
    )
    for quantization in ("fp8", "int4"):
        full = [
            job for job in jobs if job.shape.name == "7b" and job.shape.quantization == quantization
        ]
        assert {job.rows for job in full if job.is_full} == set(COMPILED_ROWS)


def test_a_job_makes_the_steps_it_names(machine, shape):
    job = CompileJob(shape.held("fp8"), 8, is_full=True)
    assert job.steps == (
        StepShape(8, 1),
        StepShape(8, 1, is_sampled=True),
        StepShape(8, 1, has_logits=True),
        StepShape(8, 1, is_sampled=True, has_logits=True),
    )
    run_job(machine, job)


def test_a_job_that_fails_beside_is_a_note(shape, lab):
    """Here because there is no GPU; the run itself says where a kernel does not compile."""
    jobs = jobs_of([shape], (1,))
    compiled = compile_all(lab, jobs, workers=1)
    assert (compiled.jobs, compiled.workers) == (1, 1)
    (note,) = compiled.failures
    assert note.startswith("tiny bf16, 1 rows: device cuda:0: torch sees no GPU here")


def test_without_a_gpu_the_machine_is_refused():
    with pytest.raises(ConfigurationError, match="torch sees no GPU here"):
        Machine.gpu()


def test_a_report_that_cannot_be_written_is_told_of(machine, inputs, tmp_path):
    bench = GpuBench(machine, inputs, NoProgress())
    with pytest.raises(ConfigurationError, match="cannot be written"):
        bench.findings.save(tmp_path / "missing" / "gpu.json")


def test_a_cuda_timer_takes_the_median_of_its_repeats(monkeypatch):
    class Event:
        clock = 0.0

        def __init__(self, enable_timing):
            self.at = 0.0

        def record(self):
            self.at = Event.clock

        def synchronize(self):
            pass

        def elapsed_time(self, other):
            return other.at - self.at

    durations = iter([9.0] * 3 + [1.0, 50.0, 2.0, 3.0, 4.0])

    def work():
        Event.clock += next(durations)

    monkeypatch.setattr("torch.cuda.Event", Event)
    assert cuda_ms(work, repeats=5) == 3.0
