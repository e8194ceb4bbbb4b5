import json

import numpy as np
import pytest

from engine.bench.task_sets import ReplayItem
from engine.drafting.pool import NgramPool
from engine.drafting.tree import Source
from engine.model.tokenizer import Tokenizer
from engine.request import Buffer
from tests.bench.oracle import Oracle, agreeing
from tests.bench.oracle_score import OracleCase, oracle_json, oracle_table
from tests.bench.pool_bench import measure_pool
from tests.support.byte_tokenizer import byte_tokenizer

BODY = "    total = first + second\n    return total * 2\n"
ITEM = ReplayItem(
    id="completion/p/1/p/a.py:2",
    kind="completion",
    package="p",
    path="p/a.py",
    prefix="def one(first, second):\n    ",
    target=BODY.strip(),
    suffix="\n",
    open_buffers=(Buffer("p/b.py", "def two(first, second):\n" + BODY),),
)
WITH, WITHOUT = OracleCase(32, open_buffers=True), OracleCase(32, open_buffers=False)


@pytest.fixture(scope="module")
def tokenizer():
    return Tokenizer.from_json(byte_tokenizer().to_str())


def scores(tokenizer, items, cases=(WITHOUT, WITH)):
    return Oracle(tokenizer, cases).run(items)


def test_a_buffer_with_the_same_body_saves_steps(tokenizer):
    without, known = scores(tokenizer, [ITEM])
    assert known.tokens == without.tokens == len(tokenizer.encode(ITEM.target))
    assert known.steps < without.steps / 2
    assert known.accepted_by_source["open_buffer"] > 0
    # A step emits what it accepted and one more, the last perhaps nothing more.
    emitted = known.steps + known.accepted_by_source.total()
    assert emitted - 1 <= known.tokens <= emitted


def test_the_first_step_drafts_across_the_indentation(tokenizer):
    """Two steps for a body that one buffer holds: 32 nodes and the next token, then the rest."""
    (score,) = scores(tokenizer, [ITEM], (OracleCase(64, open_buffers=True),))
    assert score.steps <= 3


def test_the_same_items_score_the_same(tokenizer):
    first, again = (scores(tokenizer, [ITEM] * 3)[1] for _ in range(2))
    assert (first.steps, first.drafted) == (again.steps, again.drafted)


def test_what_was_accepted_is_learned_from_item_to_item(tokenizer):
    oracle = Oracle(tokenizer, (WITH,))
    before = oracle._tables[WITH]["pool"].probs.copy()
    oracle.run([ITEM])
    assert not np.array_equal(before, oracle._tables[WITH]["pool"].probs)


def test_only_the_path_of_the_target_agrees():
    pool = NgramPool(100, 20)
    pool.add([1, 2, 3, 1, 2, 4], Source.OPEN_BUFFER)
    draft = pool.draft([1, 2], 8)
    accepted = agreeing(draft, [3, 1, 2, 9])
    assert draft.tokens[accepted].tolist() == [3, 1, 2]


def test_the_report_is_one_object_and_one_table(tokenizer):
    found = scores(tokenizer, [ITEM])
    cases = json.loads(json.dumps(oracle_json(found)))["cases"]
    assert [case["open_buffers"] for case in cases] == [False, True]
    assert cases[1]["tokens_per_step"] == found[1].tokens_per_step
    assert oracle_table(found).row_count == 2


def test_a_pool_is_measured_without_a_model():
    figures = measure_pool(50_000)
    assert figures.tokens == 50_000
    assert figures.bytes_per_token > 13
    assert figures.tree_us_p50 > 0
    assert figures.table().row_count == 4
