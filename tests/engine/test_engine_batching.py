"""Completions that go on side by side share steps, and each writes what it writes alone."""

import itertools
from dataclasses import replace

import msgspec
import pytest
import torch

from engine.config import Lookahead, Sampling, StopRules
from engine.engine import Engine, PromptSizes
from engine.learning import Learning
from engine.model.gpu.flight import GpuFlight
from engine.model.loader import load_model
from engine.progress import Progress
from engine.request import Buffer, CompletionRequest, FinishReason
from engine.scheduler import Scheduler
from tests.support.gpu_models import gpu_qwen2
from tests.support.jobs import CalledJob
from tests.support.tiny_models import save_model, tiny_model

pytestmark = [
    pytest.mark.usefixtures("one_thread"),
    pytest.mark.timeout(300),  # the first one compiles what drafts
]

FILES = {
    "stack.py": "class Stack:\n    def push(self, item):\n        self.items.append(item)\n    def ",
    "queue.py": "class Queue:\n    def put(self, item):\n        self.items.insert(0, item)\n    d",
    "set.py": "def union(one, other):\n    return {*one, *other}\n\n\ndef differ",
}
RULES = StopRules.verbatim(30)


@pytest.fixture(scope="module")
def reference():
    return tiny_model("qwen2", 4, num_attention_heads=7, num_key_value_heads=1, hidden_size=56)


def engine_of(reference, folder, positions):
    model = load_model(
        str(save_model(reference, folder / "model")),
        folder / "cache",
        Progress(),
        device_name="cpu",
    )
    model = replace(model, causal_lm=gpu_qwen2(reference, positions=positions))
    learning = Learning.load(folder / "learned", "key", model.causal_lm, Progress())
    return Engine(model, learning, PromptSizes(256, 256))


@pytest.fixture
def engine(reference, tmp_path):
    return engine_of(reference, tmp_path, positions=8192)


def request(path, *, lookahead="auto", sampling=None, key=None):
    others = tuple(Buffer(other, text) for other, text in FILES.items() if other != path)
    return CompletionRequest(
        prefix=FILES[path],
        suffix="\n",
        path=path,
        open_buffers=others,
        workspace=path,
        cache_key=key or path,
        lookahead=Lookahead.parse(lookahead),
        sampling=sampling or Sampling(),
        stop=RULES,
    )


def run_together(engine, requests, *, cancelled_after=None):
    """The results, in order; the first job is cancelled when it was asked so often."""
    scheduler, results = Scheduler(engine.max_sequences), {}

    def job(number, one):
        asked = itertools.count(1)

        def begin(is_cancelled):
            def cancelled():
                if number == 0 and next(asked) == cancelled_after:
                    jobs[0].cancel()
                return is_cancelled()

            return engine.sequence(
                one, on_chunk=lambda _: None, is_cancelled=cancelled, on_end=ended
            )

        def ended(sequence):
            results[number] = sequence.result()
            if len(results) == len(requests):
                scheduler.stop()

        return CalledJob(client=f"client {number}", document="buffer", start=begin)

    jobs = [job(number, one) for number, one in enumerate(requests)]
    for one in jobs:
        scheduler.submit(one)
    engine.run(scheduler.admit)
    return [results[number] for number in range(len(requests))]


@pytest.fixture
def num_launches(monkeypatch):
    """Of each launch with a head, how many steps it was for."""
    launches: list[int] = []
    launch = GpuFlight._launch

    def counted(flight, steps):
        if steps[0].has_head:
            launches.append(len(steps))
        launch(flight, steps)

    monkeypatch.setattr(GpuFlight, "_launch", counted)
    return launches


@pytest.mark.parametrize(
    "lookahead", ["auto", "off", pytest.param("8,8,8", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("sampling", [Sampling(), Sampling(temperature=0.8, seed=1)])
def test_each_writes_what_it_writes_alone(engine, lookahead, sampling):
    requests = [request(path, lookahead=lookahead, sampling=sampling) for path in FILES]
    alone = [engine.complete(one) for one in requests]
    together = run_together(engine, requests)
    assert [one.text for one in together] == [one.text for one in alone]
    assert [one.finish_reason for one in together] == [one.finish_reason for one in alone]


def test_each_is_as_sure_as_it_is_alone(engine):
    """PyTorch's products round otherwise beside other rows; kernels do not."""
    rules = msgspec.structs.replace(RULES, min_confidence=1e-9)
    requests = [replace(request(path), stop=rules) for path in FILES]
    alone = [engine.complete(replace(one, lookahead=Lookahead.parse("off"))) for one in requests]
    together = run_together(engine, requests)
    for one, other in zip(together, alone, strict=True):
        assert one.log_probs == pytest.approx(other.log_probs, rel=0, abs=1e-3)
    assert [one.text for one in together] == [one.text for one in alone]
    assert FinishReason.UNSURE in {one.finish_reason for one in together}


def test_they_share_their_steps(engine, num_launches):
    results = run_together(engine, [request(path, lookahead="off") for path in FILES])
    steps = [result.cost.steps for result in results]
    assert len(num_launches) <= max(steps) + 2
    assert num_launches.count(3) >= min(steps) - 2


WAYS = [Sampling(), Sampling(1.0, seed=7), Sampling(0.6, seed=7)]
CANDIDATES = [Sampling(0.9, seed=seed) for seed in (1, 2, 3)]  # of one explicit request


@pytest.mark.parametrize(
    ("paths", "samplings"), [(FILES, WAYS), (["stack.py"] * 3, CANDIDATES)], ids=["ways", "prompt"]
)
def test_ways_of_drawing_and_one_prompt_may_meet_in_a_step(engine, paths, samplings):
    requests = [
        request(path, sampling=sampling) for path, sampling in zip(paths, samplings, strict=True)
    ]
    alone = [engine.complete(one).text for one in requests]
    assert [one.text for one in run_together(engine, requests)] == alone


def test_one_that_is_cancelled_leaves_the_others_alone(engine):
    requests = [request(path, lookahead="off") for path in FILES]
    alone = [engine.complete(one).text for one in requests]
    together = run_together(engine, requests, cancelled_after=3)
    assert together[0].finish_reason is FinishReason.CANCELLED
    assert [one.text for one in together[1:]] == alone[1:]
    assert engine.complete(requests[0]).text == alone[0]


def test_more_than_there_is_room_for_wait(engine):
    requests = [
        request("set.py", key=f"key {seed}", sampling=Sampling(0.9, seed=seed))
        for seed in range(17)
    ]
    assert len(run_together(engine, requests)) == 17


def test_a_completion_that_breaks_leaves_its_slot_and_draft_state_to_others(engine, monkeypatch):
    asked = request("set.py")
    with monkeypatch.context() as patch:
        patch.setattr("engine.engine.healed_start", lambda *_: 1 / 0)
        for _ in range(20):
            with pytest.raises(ZeroDivisionError):
                engine.complete(asked)
    assert not any(entry.is_leased for entry in engine._prompts._entries.values())
    assert len(engine._drafters.states._states) == 1
    assert engine.complete(asked).text


def test_what_a_slot_holds_behind_a_step_that_failed_is_not_reused(engine, monkeypatch):
    asked = request("set.py", lookahead="off")
    text = engine.complete(asked).text
    steps = [GpuFlight.finish] * 3

    def finish(flight):
        return steps.pop()(flight)

    with monkeypatch.context() as patch:
        patch.setattr(GpuFlight, "finish", finish)
        with pytest.raises(IndexError, match="pop from empty list"):
            engine.complete(asked)
    again = engine.complete(asked)
    assert (again.text, again.cost.reused_tokens) == (text, 0)
    assert engine.complete(asked).cost.reused_tokens > 0


def test_workspaces_come_back_to_their_draft_states(engine):
    run_together(engine, [request(path) for path in FILES])
    held = engine.usage_of().pool_tokens
    run_together(engine, [request(path) for path in FILES])
    assert engine.usage_of().pool_tokens <= 2 * held
    assert torch.isfinite(engine.model.causal_lm.arena.keys).all()


@pytest.mark.parametrize("lookahead", ["auto", "off"])
def test_a_completion_that_is_over_leaves_its_memory_to_the_next(reference, tmp_path, lookahead):
    """The arena has room for one slot, so the second prompt takes the place of the first."""
    engine = engine_of(reference, tmp_path, positions=1024)
    for path in FILES:
        assert engine.complete(request(path, lookahead=lookahead)).text
    results = run_together(engine, [request(path, lookahead=lookahead) for path in FILES])
    assert all(result.text for result in results)
