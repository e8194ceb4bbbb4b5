"""Long pieces of a prompt are read where they leave the same keys and are sooner done."""

from dataclasses import replace

import pytest
import torch

from engine.model.gpu.selfcheck import reads_check
from engine.model.gpu.selfcheck.reads_check import read_finding
from engine.model.gpu.selfcheck.verdict import ReadFinding
from tests.support.faults import STAND_INS, in_one_order
from tests.support.gpu_models import gpu_qwen2
from tests.support.tiny_models import tiny_model

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def reference():
    return tiny_model(
        "qwen2",
        1,
        num_attention_heads=2,
        num_key_value_heads=1,
        hidden_size=32,
        num_hidden_layers=2,
        max_position_embeddings=1024,
    )


@pytest.fixture(autouse=True)
def _one_order():
    with in_one_order():
        yield


@pytest.fixture
def taking(monkeypatch):
    """Let the text take so many ms in pieces of 128, 256 and 512 tokens."""

    def take(*times):
        by_rows = dict(zip((128, 256, 512), times, strict=True))
        monkeypatch.setattr(reads_check, "_read_ms", lambda _: by_rows)

    return take


def graphs_of(reference, operations=STAND_INS, positions=1024):
    return gpu_qwen2(reference, operations=operations, positions=positions).graphs


@pytest.mark.parametrize(
    ("times", "rows"),
    [
        ((40.0, 30.0, 20.0), 512),
        ((40.0, 30.0, 29.9), 256),  # hardly faster any more
        ((400.0, 190.0, 120.0), 256),  # a key would wait 120 ms
        ((40.0, 39.9, 39.8), 128),
        ((900.0, 500.0, 400.0), 128),
    ],
)
def test_the_longest_piece_that_is_worth_it_is_taken(reference, taking, times, rows):
    taking(*times)
    found = read_finding(graphs_of(reference))
    assert found.rows == rows
    told = f"prompts are read {rows} tokens at a time: 512 take {times[rows // 256]:.3g} ms"
    assert found.note.startswith(told) if rows > 128 else not found.note


def test_pieces_that_leave_other_keys_are_not_taken(reference, taking):
    """The rows that a second program takes have another last bit."""

    def other(inputs, weight, norm_weight, stream, scratch):
        STAND_INS.skinny_matmul(inputs, weight, norm_weight, stream, scratch)
        stream.normed[128:] = torch.nextafter(stream.normed[128:], torch.tensor(9.0))

    taking(40.0, 30.0, 20.0)
    faulty = replace(STAND_INS, skinny_matmul=other)
    note = "long pieces of a prompt, 256 tokens, leave other keys"
    assert read_finding(graphs_of(reference, faulty)) == ReadFinding(note=note)


def test_keys_that_are_not_written_are_missed(reference, taking):
    """Though those of a run before were the right ones."""

    def silent(stream, weight, bias, cos_sin, batch, queries, keys, values, scratch):
        if batch.capacity <= 128:
            STAND_INS.project_qkv(
                *(stream, weight, bias, cos_sin, batch, queries, keys, values, scratch)
            )

    taking(40.0, 30.0, 20.0)
    found = read_finding(graphs_of(reference, replace(STAND_INS, project_qkv=silent)))
    assert found.note.endswith("leave other keys")


def test_pieces_that_fail_are_not_taken(reference, taking):
    def failing(stream, weight, out, scratch):
        if len(out) > 128:
            raise RuntimeError("no such tile")
        STAND_INS.gate_up(stream, weight, out, scratch)

    taking(40.0, 30.0, 20.0)
    found = read_finding(graphs_of(reference, replace(STAND_INS, gate_up=failing)))
    assert found == ReadFinding(note="long pieces of a prompt: RuntimeError: no such tile")


def test_a_cache_that_holds_no_such_text_reads_as_ever(reference):
    assert read_finding(graphs_of(reference, positions=512)) == ReadFinding()


def test_the_text_is_read_whole_and_leaves_nothing_behind(reference):
    graphs = graphs_of(reference)
    assert set(reads_check._read_ms(graphs)) == {128, 256, 512}
    assert graphs.forward.arena.keys.count_nonzero() > 0
    read_finding(graphs)
    assert graphs.forward.arena.keys.count_nonzero() == 0
