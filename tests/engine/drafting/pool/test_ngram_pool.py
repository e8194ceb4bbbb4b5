"""The pool against a dictionary that does the same slowly, through any sequence of operations."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafting.pool import MOST_REMEMBERED, NgramPool, PoolFullError, token_log
from engine.drafting.pool.chains import CHAIN, EXACT
from engine.drafting.tree import Source
from tests.support.naive_pool import NaivePool

VOCABULARY = 5  # few, so that texts repeat themselves
NODES = 512
texts = st.lists(st.integers(0, VOCABULARY - 1), max_size=12)
operations = st.lists(
    st.one_of(
        st.tuples(st.just("add"), texts),
        st.tuples(st.just("remove"), st.floats(0, 1)),
    ),
    max_size=8,
)
additions = st.lists(
    st.one_of(
        st.tuples(st.just("add"), texts),
        st.tuples(st.just("write"), texts, st.lists(texts, max_size=3)),
    ),
    max_size=8,
)


class Twins:
    """A pool and its naive twin, told the same things."""

    def __init__(self):
        self.pool = NgramPool(4096, VOCABULARY)
        self.naive = NaivePool()

    def apply(self, operation):
        name, *arguments = operation
        if name == "add":
            document = self.pool.add(arguments[0], Source.OPEN_BUFFER)
            self.naive.documents[document] = list(arguments[0])
        elif name == "write":
            document = self.pool.add(arguments[0], Source.EDITED_FILE)
            self.naive.documents[document] = sum(arguments[1], arguments[0])
            for generated in arguments[1]:
                self.pool.extend(generated)
        elif name == "remove" and self.naive.documents:
            document = self._document(arguments[0])
            self.pool.remove(document)
            del self.naive.documents[document]

    def _document(self, share):
        documents = list(self.naive.documents)
        return documents[min(int(share * len(documents)), len(documents) - 1)]

    def agree(self, context):
        followers = self.naive.followers(context)
        expected = Counter(
            (match, self.naive.continuation(*place, 20)) for place, match in followers.items()
        )
        found = self.pool.continuations(context, 20)
        texts_found = Counter(tuple(one.tokens.tolist()) for one in found)
        exact = Counter(
            (one.worth, tuple(one.tokens.tolist())) for one in found if one.kind == EXACT
        )
        if expected.total() <= CHAIN:
            assert texts_found == Counter(text for _, text in expected.elements())
        else:  # more than the pool looks at
            assert texts_found.total() >= CHAIN
            assert texts_found <= Counter(text for _, text in expected.elements())
        assert exact <= expected  # realigned ones are worth more than they match


def paths(draft):
    """The path of each node, as tuples of tokens."""
    found: list[tuple[int, ...]] = []
    for token, parent in zip(draft.tokens.tolist(), draft.parents.tolist(), strict=True):
        found.append((*(found[parent] if parent >= 0 else ()), token))
    return found


def drafts(pool, contexts):
    return [[column.tolist() for column in pool.draft(context, NODES)] for context in contexts]


@settings(deadline=None, max_examples=100)
@given(operations, texts)
def test_any_sequence_of_operations_equals_a_dictionary_that_does_the_same(sequence, context):
    twins = Twins()
    for operation in sequence:
        twins.apply(operation)
        twins.agree(context)


@settings(deadline=None, max_examples=100)
@given(operations, additions, operations, st.lists(texts, min_size=1, max_size=3))
def test_a_savepoint_takes_back_what_was_added(before, during, after, contexts):
    twins = Twins()
    for operation in before:
        twins.apply(operation)
    naive, expected, size = twins.naive.snapshot(), drafts(twins.pool, contexts), len(twins.pool)
    with twins.pool.savepoint():
        for operation in during:
            twins.apply(operation)
            twins.agree(contexts[0])
    twins.naive = naive
    assert drafts(twins.pool, contexts) == expected
    assert len(twins.pool) == size
    for operation in after:  # and what comes next does not notice
        twins.apply(operation)
    twins.agree(contexts[0])


@settings(deadline=None, max_examples=100)
@given(operations, operations, texts)
def test_compaction_changes_no_document_and_leaves_nothing_dead(before, after, context):
    twins = Twins()
    for operation in before:
        twins.apply(operation)
    twins.pool.compact()
    held = twins.naive.documents.values()
    assert len(twins.pool) == 1 + sum(len(tokens) + 1 for tokens in held)
    twins.agree(context)
    for operation in after:
        twins.apply(operation)
    twins.agree(context)


@settings(deadline=None, max_examples=100)
@given(operations, texts, st.integers(0, 40))
def test_a_draft_is_a_tree_of_texts_that_documents_hold_best_first(sequence, context, nodes):
    twins = Twins()
    for operation in sequence:
        twins.apply(operation)
    draft = twins.pool.draft(context, nodes)
    assert len(draft.tokens) <= nodes
    assert np.all(np.diff(draft.probs) <= 0)
    assert np.all(draft.parents < np.arange(len(draft.tokens)))
    found = paths(draft)
    assert len(set(found)) == len(found)
    held = {
        tuple(tokens[start : start + len(path)])
        for tokens in twins.naive.documents.values()
        for path in found
        for start in range(len(tokens))
    }
    assert set(found) <= held
    followers = twins.naive.followers(context)
    firsts = {twins.naive.continuation(*place, 1)[0] for place in followers}
    roots = set(draft.tokens[draft.parents < 0].tolist())
    assert firsts <= roots or len(draft.tokens) == nodes


def test_the_same_calls_give_the_same_drafts():
    rng = np.random.default_rng(0)
    operations = [rng.integers(0, VOCABULARY, 30).tolist() for _ in range(5)]
    results = []
    for _ in range(2):
        pool = NgramPool(1000, VOCABULARY)
        for ids in operations:
            pool.add(ids, Source.OPEN_BUFFER)
        results.append(drafts(pool, operations))
    assert results[0] == results[1]


def test_a_wide_tree_holds_the_narrow_one():
    pool = NgramPool(1000, VOCABULARY)
    pool.add(np.random.default_rng(1).integers(0, VOCABULARY, 300), Source.OPEN_BUFFER)
    narrow, wide = (pool.draft([1, 2, 3], nodes) for nodes in (16, 64))
    for few, many in zip(narrow, wide, strict=True):
        np.testing.assert_array_equal(few, many[:16])


def test_a_shallow_tree_gives_the_room_of_deep_nodes_to_others():
    pool = NgramPool(1000, VOCABULARY)
    pool.add(np.random.default_rng(1).integers(0, VOCABULARY, 300), Source.OPEN_BUFFER)
    deep, shallow = (paths(pool.draft([1, 2, 3], 40, depth)) for depth in (40, 2))
    assert max(map(len, shallow)) == 2
    assert {path for path in deep if len(path) <= 2} < set(shallow)
    assert not len(pool.draft([1, 2, 3], 40, 0).tokens)


@pytest.mark.parametrize(
    ("documents", "context", "drafted"),
    [
        ([[1, 2, 3, 10], [9, 2, 3, 11]], [1, 2, 3], [(10,)]),
        # Where a document said 5 6 the context says 40; after 7 it goes on as before.
        ([[*range(1, 12)], *[[30, 7, 20, 21, 22]] * 3], [1, 2, 3, 4, 40, 7], [(8,), (8, 9)]),
        # Nothing ever followed 40, but 3 followed what stood in its place.
        ([[1, 2, 5, 3, 4]], [1, 2, 40], [(3,), (3, 4)]),
    ],
    ids=["longest match", "replaced word", "new token"],
)
def test_what_follows_the_most_similar_text_is_drafted_first(documents, context, drafted):
    pool = NgramPool(200, 50)
    for document in documents:
        pool.add(document, Source.OPEN_BUFFER)
    assert paths(pool.draft(context, len(drafted))) == drafted


def test_an_occurrence_that_the_chains_hash_alike_is_compared_token_by_token():
    """A pool of 2^12 heads and 30,000 different n-grams has many collisions."""
    rng = np.random.default_rng(2)
    pool = NgramPool(8000, 1000)
    ids = rng.integers(0, 1000, 7000)
    pool.add(ids, Source.OPEN_BUFFER)
    for start in range(0, 6000, 500):
        best = max(pool.continuations(ids[start : start + 5], 1), key=lambda one: one.worth)
        assert (best.worth, best.tokens.tolist()) == (5, [ids[start + 5]])


def test_a_pool_that_outgrows_its_heads_drafts_what_one_with_all_of_them_drafts(monkeypatch):
    """Also where they grow within a savepoint, which then takes back what was written before."""
    rng = np.random.default_rng(3)
    ids = rng.integers(0, 300, 40_000)

    def drafts():
        pool, found = NgramPool(1_000_000, 300), []
        pool.add(ids[:3000], Source.OPEN_BUFFER)
        with pool.savepoint():
            pool.add(ids[3000:9000], Source.EDITED_FILE)
            found.append(pool.draft(ids[2000:2020], NODES))
        found.append(pool.draft(ids[2000:2020], NODES))
        pool.add(ids[9000:], Source.SUFFIX)
        return [*found, *(pool.draft(ids[at : at + 6], NODES) for at in range(0, 39_000, 3000))]

    grown = drafts()
    monkeypatch.setattr(token_log, "MIN_HEAD_BITS", token_log.MAX_HEAD_BITS)
    for one, other in zip(grown, drafts(), strict=True):
        assert all(np.array_equal(*columns) for columns in zip(one, other, strict=True))


def test_a_pool_takes_few_bytes_a_token_however_many_it_holds():
    pool = NgramPool(1_000_000, 300)
    for count in (5000, 20_000, 10_000, 100_000):
        pool.add(np.zeros(count, np.int32), Source.OPEN_BUFFER)
        log = pool._log
        slot = sum(one.itemsize for one in (log.tokens, log.sources, *log._links[:2]))
        heads = sum(one.nbytes for one in log._links[2:])
        assert slot * len(pool) + heads < 24 * len(pool)


def test_a_text_that_cannot_fit_is_refused():
    pool = NgramPool(100, 50)
    pool.add([1] * 60, Source.OPEN_BUFFER)
    with pytest.raises(PoolFullError, match="do not fit"):
        pool.add([1] * 60, Source.OPEN_BUFFER)


@pytest.mark.parametrize("ids", [[50], [-1]])
def test_a_token_outside_the_vocabulary_is_refused(ids):
    with pytest.raises(ValueError, match="vocabulary"):
        NgramPool(100, 50).add(ids, Source.OPEN_BUFFER)


def test_a_context_of_unknown_tokens_drafts_nothing():
    pool = NgramPool(100, 50)
    pool.add([1, 2, 3], Source.OPEN_BUFFER)
    for context in ([], [49], [7000], [-1]):
        assert len(pool.draft(context, 8).tokens) == 0


def test_what_is_removed_in_a_savepoint_stays_so():
    pool = NgramPool(300, 50)
    document = pool.add([1, 2, 3], Source.OPEN_BUFFER)
    with pool.savepoint():
        pool.add([1, 2, 4], Source.OPEN_BUFFER)
        pool.remove(document)
        assert paths(pool.draft([1, 2], 40)) == [(4,)]
    assert not paths(pool.draft([1, 2], 40))


def test_the_oldest_completions_go_when_there_are_too_many():
    pool = NgramPool(3 * MOST_REMEMBERED, 50)
    for token in (10, 20, 30):
        filling = [0] * (MOST_REMEMBERED // 2 - 3)
        pool.add([1, token, token + 1, *filling], Source.PREVIOUS_COMPLETION)
    drafted = set(pool.draft([1], 9).tokens.tolist())
    assert {20, 30} <= drafted
    assert 10 not in drafted


def test_generated_tokens_beyond_the_capacity_are_ignored():
    pool = NgramPool(100, 50)
    with pool.savepoint():
        pool.add([1] * 50, Source.EDITED_FILE)
        for _ in range(10):
            pool.extend([2] * 20)
        assert len(pool) <= 100
        assert paths(pool.draft([1, 2], 1)) == [(2,)]


def test_a_pool_is_wasteful_until_it_is_compacted():
    pool = NgramPool(20_000, 50)
    found = [pool.wasteful]
    for _ in range(200):
        pool.remove(pool.add([1, 2, 3] * 10, Source.OPEN_BUFFER))
    found.append(pool.wasteful)
    pool.compact()
    found.append(pool.wasteful)
    assert found == [False, True, False]
