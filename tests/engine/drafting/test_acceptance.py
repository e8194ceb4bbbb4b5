import zipfile
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from engine.drafting.acceptance import AcceptanceTable, AcceptanceTables
from engine.drafting.tree import Draft, Source


def tables():
    return AcceptanceTables(
        {name: AcceptanceTable(np.full(4, 0.5)) for name in ("pool", "window", "recycler")}
    )


def draft(parents, sources, cells):
    count = len(parents)
    return Draft(
        np.arange(count, dtype=np.int32),
        np.array(parents, np.int32),
        np.full(count, 0.5),
        np.array(sources, np.uint8),
        np.array(cells, np.int32),
    )


def test_a_fresh_table_believes_its_prior():
    assert AcceptanceTable(np.array([0.2, 0.7])).probs.tolist() == [0.2, 0.7]


def test_trials_move_the_prior_which_weighs_four_of_them():
    table = AcceptanceTable(np.array([0.5]))
    table.update(np.zeros(4, np.int64), np.ones(4, bool))
    assert table.probs[0] == pytest.approx((4 + 4 * 0.5) / 8)


def test_evidence_fades_and_leaves_the_prior():
    table = AcceptanceTable(np.array([0.5, 0.5]))
    table.update(np.zeros(50, np.int64), np.ones(50, bool))
    sure = table.probs[0]
    for _ in range(10_000):
        table.update(np.array([1]), np.array([True]))
    assert sure > 0.9
    assert table.probs[0] == pytest.approx(0.5, abs=0.01)


def test_only_nodes_below_an_accepted_one_are_trials():
    both = tables()
    both.update(
        draft([-1, 0, -1, 2], [Source.SUFFIX] * 4, [0, 1, 2, 3]),
        np.array([True, True, False, False]),
    )
    assert both["pool"].counts.tolist() == [[1, 1, 0, 0], [1, 1, 1, 0]]


def test_each_drafter_learns_from_its_own_nodes():
    known = tables()
    known.update(
        draft([-1, -1, -1], [Source.OPEN_BUFFER, Source.WINDOW, Source.RECYCLER], [0, 1, 2]),
        np.array([True, False, True]),
    )
    assert known["pool"].probs[0] > 0.5
    assert known["window"].probs[1] < 0.5
    assert known["recycler"].probs[2] > 0.5
    assert known["recycler"].counts.sum() == 2


def test_what_was_learned_survives_a_restart(tmp_path):
    known, file = tables(), tmp_path / "new" / "tables.npz"
    known.update(draft([-1], [Source.WINDOW], [3]), np.array([True]))
    known.save(file)
    restored = tables()
    assert restored.load(file)
    np.testing.assert_array_equal(restored["window"].probs, known["window"].probs)
    assert [path.name for path in file.parent.iterdir()] == ["tables.npz"]


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 no archive", None])
def test_a_damaged_or_missing_file_leaves_fresh_tables(tmp_path, content):
    file = tmp_path / "tables.npz"
    if content is not None:
        file.write_bytes(content)
    known = tables()
    assert not known.load(file)
    assert known["pool"].probs.tolist() == [0.5] * 4


@pytest.mark.parametrize(
    "counts",
    [
        np.ones((2, 5)),
        np.ones(4),
        np.array([[2.0] * 4, [1.0] * 4]),
        np.full((2, 4), np.nan),
        np.full((2, 4), np.inf),
        np.ones((2, 4), complex),
        np.full((2, 4), "many"),
        np.full((2, 4), None),  # pickled, which is never read
        np.zeros((2, 4), "M8[s]"),
    ],
)
def test_counts_of_another_shape_or_sense_are_ignored_whole(tmp_path, counts, caplog):
    file = tmp_path / "tables.npz"
    np.savez(file, pool=np.ones((2, 4)), window=np.ones((2, 4)), recycler=counts)
    known = tables()
    assert not known.load(file)
    for drafter in ("pool", "window", "recycler"):
        assert known[drafter].probs.tolist() == [0.5] * 4
    assert f"{file} is damaged and not used" in caplog.text


def test_a_file_that_unpacks_to_gigabytes_is_not_unpacked(tmp_path, caplog):
    file = tmp_path / "tables.npz"
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("pool.npy", bytes(50_000_000))
    assert file.stat().st_size < 100_000
    assert not tables().load(file)
    assert "is damaged" in caplog.text


@given(st.data())
@settings(deadline=None, max_examples=200)
def test_whatever_bytes_are_changed_nothing_is_raised(data):
    whole = _saved()
    changed = bytearray(whole)
    for _ in range(data.draw(st.integers(1, 8))):
        changed[data.draw(st.integers(0, len(whole) - 1))] = data.draw(st.integers(0, 255))
    with TemporaryDirectory() as folder:
        file = Path(folder, "tables.npz")
        file.write_bytes(changed[: data.draw(st.integers(1, len(whole)))])
        known = tables()
        known.load(file)
    assert np.isfinite(known["pool"].probs).all()


@cache
def _saved():
    with TemporaryDirectory() as folder:
        file = Path(folder, "tables.npz")
        tables().save(file)
        return file.read_bytes()


def test_a_prior_is_a_probability():
    with pytest.raises(ValueError, match="between 0 and 1"):
        AcceptanceTable(np.array([0.0, 0.5]))
