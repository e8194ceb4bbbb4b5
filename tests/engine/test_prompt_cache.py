"""A prompt pays for what differs from those before it, and for nothing after a cancel."""

import weakref
from typing import Any

import pytest

from engine.errors import NoSpaceError
from engine.prompt_cache import PromptCache
from engine.request import ClosedBuffers
from engine.standing_prompt import StandingPrompt


class CountingSlot:
    """Remembers what was prefilled. Fails once at what `failing` names, half of which is done."""

    failing = ""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.held: list[int] = []
        self.pieces: list[list[int]] = []

    @property
    def length(self):
        return len(self.held)

    @property
    def num_bytes(self):
        return self.capacity

    def copy_from(self, other, length):
        self._fail_at("copy", other.held[:length])
        self.held = other.held[:length]

    def truncate(self, length):
        del self.held[length:]

    def read(self, token_ids):
        """As a step does that reads a piece of a prompt."""
        self._fail_at("read", token_ids)
        self.pieces.append(list(token_ids))
        self.unread = list(token_ids)

    def commit(self, rows):
        self.held += self.unread[: len(rows)]

    def _fail_at(self, what, token_ids):
        if self.failing == what:
            self.failing = ""
            self.held[: len(token_ids)] = token_ids
            raise RuntimeError(what)


class CountingModel:
    """Hands out slots and keeps them."""

    most_read_rows = 128

    def __init__(self) -> None:
        self.slots: list[CountingSlot] = []

    def new_slot(self, capacity):
        self.slots.append(CountingSlot(capacity))
        return self.slots[-1]


class ReservingModel:
    """Has memory for so many slots at a time."""

    most_read_rows = 128

    def __init__(self, num_slots) -> None:
        self.num_slots = num_slots
        self._slots: weakref.WeakSet[CountingSlot] = weakref.WeakSet()

    def new_slot(self, capacity):
        if len(self._slots) == self.num_slots:
            raise NoSpaceError("full")
        slot = CountingSlot(capacity)
        self._slots.add(slot)
        return slot


@pytest.fixture
def model():
    return CountingModel()


@pytest.fixture
def cache(model):
    return PromptCache(model, 3 * 512)


def reserving_cache(num_slots):
    model: Any = ReservingModel(num_slots)
    return PromptCache(model, 10**9)


def read_on(lease):
    """Read what the prompt still lacks, as a sequence does."""
    while len(unread := lease.unread):
        try:
            lease.slot.read(unread)
        except RuntimeError:
            lease.spoil()
            lease.close()
            raise
        lease.commit_read(len(unread))


def enter(cache, key, token_ids, neighbours=(), principal=""):
    """Lease a slot and read the prompt into it."""
    lease = cache.lease(key, token_ids, 10, neighbours, principal)
    read_on(lease)
    return lease


def leave(lease, written=()):
    lease.commit_written(written)
    lease.close()


def visit(cache, key, token_ids, principal=""):
    """Enter and leave at once."""
    lease = enter(cache, key, token_ids, principal=principal)
    leave(lease)
    return lease.slot, lease.reused


def test_the_common_prefix_is_not_read_again(cache):
    visit(cache, "a", [1, 2, 3, 4])
    slot, reused = visit(cache, "a", [1, 2, 9])
    assert slot.held == [1, 2, 9]
    assert slot.pieces == [[1, 2, 3, 4], [9]]
    assert reused == 2


@pytest.mark.parametrize(("prompt", "reused"), [([1, 2, 7, 8, 9], 4), ([1, 2], 2)])
def test_what_was_generated_is_kept_only_if_the_prompt_goes_on_so(cache, prompt, reused):
    entered = enter(cache, "a", [1, 2])
    entered.slot.held.extend([7, 8])
    leave(entered, [7, 8, 9])  # the last token is not committed yet
    slot, found = visit(cache, "a", prompt)
    assert (slot.held, found) == (prompt, reused)


def test_a_prompt_begins_with_what_another_slot_holds_and_leaves_that_whole(cache, model):
    visit(cache, "a", [1, 2, 3])
    slot, reused = visit(cache, "a, accepted", [1, 2, 9])
    assert slot.held == [1, 2, 9]
    assert reused == 2
    assert model.slots[0].held == [1, 2, 3]


def test_the_least_recently_used_slot_goes_when_memory_is_short(cache):
    for key, token in (("a", 1), ("b", 2), ("c", 3), ("a", 1), ("d", 4)):
        visit(cache, key, [token])
    assert cache.num_bytes() == 3 * 512
    assert visit(cache, "a", [1])[1] == 1
    assert visit(cache, "b", [2])[1] == 0


def test_a_prompt_larger_than_the_budget_is_served_alone(cache):
    visit(cache, "a", [1])
    slot, _ = visit(cache, "b", [2] * 2000)
    assert cache.num_bytes() == slot.capacity


def test_a_longer_prompt_gets_a_larger_slot_and_keeps_what_was_read(cache, model):
    visit(cache, "a", [1])
    slot, reused = visit(cache, "a", [1] * 600)
    assert len(model.slots) == 2
    assert slot.capacity == 1024
    assert reused == 1


def test_who_asks_for_a_slot_in_use_gets_another_with_the_same_beginning(cache):
    first = enter(cache, "a", [1, 2, 3])
    second = enter(cache, "a", [1, 2, 4])
    assert second.slot is not first.slot
    assert (first.slot.held, second.slot.held) == ([1, 2, 3], [1, 2, 4])
    assert second.reused == 2


def test_a_slot_in_use_stays_when_memory_is_short(cache):
    used = enter(cache, "a", [1])
    for key, token in (("b", 2), ("c", 3), ("d", 4)):
        visit(cache, key, [token])
    leave(used)
    assert visit(cache, "a", [1])[1] == 1


def test_where_memory_is_reserved_idle_slots_make_room_and_the_useful_one_goes_last():
    cache = reserving_cache(2)
    visit(cache, "a", [1, 2, 3])
    visit(cache, "b", [7])
    assert visit(cache, "c", [1, 2, 4])[1] == 2
    assert visit(cache, "d", [9])[1] == 0


def test_where_all_reserved_memory_is_in_use_a_prompt_waits_for_a_slot():
    cache = reserving_cache(1)
    used = enter(cache, "a", [1])
    for _ in range(3):
        assert cache.lease("b", [2], 10) is None
    assert used.slot.held == [1]
    leave(used)
    del used
    assert enter(cache, "b", [2]).slot.held == [2]


def test_a_prompt_that_nothing_makes_room_for_is_refused():
    cache = reserving_cache(0)
    with pytest.raises(NoSpaceError):
        enter(cache, "a", [1])


def test_a_slot_whose_reading_failed_is_given_back_and_its_prompt_read_anew(cache, model):
    visit(cache, "a", [1, 2])
    model.slots[0].failing = "read"
    with pytest.raises(RuntimeError):
        enter(cache, "a", [1, 2, 3])
    slot, reused = visit(cache, "a", [1, 2, 3])
    assert (slot.held, reused) == ([1, 2, 3], 0)


def test_a_reading_that_failed_leaves_the_slot_of_who_came_meanwhile(cache, model):
    reading = cache.lease("a", list(range(300)), 10)
    visit(cache, "a", [1, 2])
    model.slots[0].failing = "read"
    with pytest.raises(RuntimeError):
        read_on(reading)
    assert visit(cache, "a", [1, 2]) == (model.slots[1], 2)


def test_what_a_copy_that_failed_has_written_over_is_not_built_on(cache, model):
    visit(cache, "a", [1, 2, 3])
    visit(cache, "b", [7, 8])
    model.slots[1].failing = "copy"
    with pytest.raises(RuntimeError):
        enter(cache, "b", [1, 2, 3, 4])
    slot, reused = visit(cache, "b", [7, 8])
    assert (slot.held, reused) == ([7, 8], 0)
    assert model.slots[0].held == [1, 2, 3]


def closed(keys, paths=(), principal=""):
    return ClosedBuffers(
        cache_scope="shop\0",
        cache_keys=frozenset(keys),
        paths=frozenset(paths),
        principal=principal,
    )


@pytest.mark.parametrize(
    "gone", [closed({"shop\0a", "mill\0a"}), closed({"shop\0b"}, {"b.py"})], ids=["key", "file"]
)
def test_prompts_of_a_closed_file_and_prompts_that_show_it_are_forgotten(model, gone):
    cache = PromptCache(model, 10_000)
    for key, neighbours in (("shop\0a", ["b.py"]), ("shop\0c", []), ("mill\0a", ["b.py"])):
        tokens = [ord(key[0]), ord(key[-1]), 1, 2]
        enter(cache, key, tokens, neighbours=neighbours).close()
    cache.forget(gone)
    for key, reused in (("shop\0a", 1), ("shop\0c", 4), ("mill\0a", 4)):
        tokens = [ord(key[0]), ord(key[-1]), 1, 2]
        assert enter(cache, key, tokens).reused == reused


def test_a_slot_in_use_is_forgotten_when_it_is_left(model):
    cache = PromptCache(model, 10_000)
    entered = enter(cache, "shop\0a", [1, 2, 3])
    cache.forget(closed({"shop\0a"}))
    leave(entered)
    assert enter(cache, "shop\0a", [1, 2, 3]).reused == 0


def test_a_prompt_never_starts_from_another_principals_slot(cache):
    visit(cache, "a", [1, 2, 3, 4], "ada")
    slot, reused = visit(cache, "a", [1, 2, 3, 4], "eve")
    assert (reused, slot.pieces) == (0, [[1, 2, 3, 4]])
    assert visit(cache, "b", [1, 2, 9], "ada")[1] == 2
    assert (cache.num_bytes("ada"), cache.num_bytes("eve")) == (1024, 512)


def test_what_a_principal_closes_is_forgotten_of_its_own_alone(cache):
    for principal in ("ada", "eve"):
        visit(cache, "shop\0a", [1, 2], principal)
    cache.forget(closed({"shop\0a"}, principal="eve"))
    assert visit(cache, "shop\0a", [1, 2], "eve")[1] == 0
    assert visit(cache, "shop\0a", [1, 2], "ada")[1] == 2


def test_many_prompts_of_one_principal_take_no_other_one_below_its_share(model):
    cache = PromptCache(model, 6 * 512)
    for number in range(3):
        visit(cache, f"mine {number}", [number + 1], "ada")
    for number in range(40):
        visit(cache, f"theirs {number}", [number + 1], "eve")
    assert cache.num_bytes() == 6 * 512
    for number in range(3):
        assert visit(cache, f"mine {number}", [number + 1], "ada")[1] == 1


def test_what_is_beyond_a_share_gives_way_first_and_its_latest_slots_stay(model):
    cache = PromptCache(model, 6 * 512)
    for number in range(6):
        visit(cache, f"mine {number}", [number + 1], "ada")
    for number in range(3):
        visit(cache, f"theirs {number}", [number + 1], "eve")
    reused = [visit(cache, f"mine {number}", [number + 1], "ada")[1] for number in (3, 4, 5)]
    assert reused == [1, 1, 1]
    assert cache.num_bytes("eve") == 3 * 512


def test_whoever_was_not_here_for_long_has_no_share_any_more(model):
    now = 0.0
    cache = PromptCache(model, 4 * 512, clock=lambda: now)
    visit(cache, "old", [1], "gone")
    now = 601.0
    for number in range(3):
        visit(cache, f"mine {number}", [number + 1], "ada")
    visit(cache, "mine 3", [4], "ada")
    assert cache.num_bytes("ada") == 4 * 512
    assert cache.num_bytes("gone") == 0


def test_where_memory_is_reserved_a_prompt_waits_before_it_takes_anothers_share():
    cache = reserving_cache(2)
    mine = enter(cache, "mine", [1], principal="ada")
    mine.close()
    theirs = enter(cache, "theirs", [2], principal="eve")
    cache._max_bytes = 2 * theirs.slot.num_bytes
    assert cache.lease("more", [3], 10, principal="eve") is None
    theirs.close()
    del theirs
    assert enter(cache, "more", [3], principal="eve").reused == 0
    assert cache.num_bytes("ada") == mine.slot.num_bytes


def test_tokens_behind_the_longest_beginning_that_its_principal_has_read_are_unread(cache):
    assert cache.unread([1, 2, 9]) == 3
    visit(cache, "a", [1, 2, 3])
    visit(cache, "b", [1, 7], "eve")
    assert cache.unread([1, 2, 9]) == 1
    assert cache.unread([1, 2, 9], "eve") == 2
    assert cache.unread([1, 2, 3]) == 0


def stood(cache, principal=""):
    return [one.path for one in cache.standing(principal)]


def leave_standing(cache, key, token_ids, neighbours=(), principal="", **how):
    """Read a prompt that can go on, and release its slot."""
    unused: Any = None
    one = StandingPrompt(unused, unused, "", "", path=key, workspace="")
    lease = cache.lease(key, token_ids, 10, neighbours, principal, one, **how)
    read_on(lease)
    return lease


def test_the_prompts_that_can_go_on_are_its_principals_the_latest_first(cache):
    for key, principal in (("a", ""), ("b", ""), ("a", ""), ("c", "eve")):
        leave_standing(cache, key, [1], principal=principal).close()
    assert stood(cache) == ["a", "b"]
    visit(cache, "b", [1])
    assert stood(cache) == ["a"]


@pytest.mark.parametrize("is_leased", [False, True])
def test_the_prompt_of_a_closed_file_and_one_that_shows_it_do_not_go_on(model, is_leased):
    cache = PromptCache(model, 10_000)
    shown = {"shop\0a": ["b.py"], "shop\0b": [], "shop\0c": []}
    leases = [leave_standing(cache, key, [1], paths) for key, paths in shown.items()]
    for one in leases[: 0 if is_leased else 3]:
        one.close()
    cache.forget(closed({"shop\0b"}, {"b.py"}))
    assert stood(cache) == ["shop\0c"]
    for one in leases:
        one.close()
    assert stood(cache) == ["shop\0c"]


def test_the_next_layout_is_read_in_short_pieces_beside_the_present_one(cache, model):
    leave_standing(cache, "a", [1, 2, 3]).close()
    leave_standing(cache, "a", [1, *range(50)], next_rows=16).close()
    assert stood(cache) == ["a"]
    present, spare = model.slots
    assert present.held == [1, 2, 3]
    assert [len(piece) for piece in spare.pieces] == [16, 16, 16, 2]
    assert visit(cache, "a", [1, *range(50)]) == (spare, 51)  # it takes the other's place
    assert cache.num_bytes() == spare.num_bytes


def test_the_next_layout_takes_the_place_of_a_later_document_before_the_present_ones(model):
    cache = PromptCache(model, 2 * 512)
    for key in ("a", "b"):
        leave_standing(cache, key, [1, 2, 3]).close()
    leave_standing(cache, "a", [1, *range(50)], next_rows=16).close()
    assert stood(cache) == ["a"]


def test_what_was_read_makes_room_as_soon_as_its_slot_is_left(model, monkeypatch):
    monkeypatch.setattr(CountingSlot, "num_bytes", property(lambda slot: slot.length))
    cache = PromptCache(model, 100)
    for key in ("a", "b"):
        leave_standing(cache, key, [ord(key), *range(59)]).close()
    assert stood(cache) == ["b"]
    assert cache.num_bytes() == 60


def test_the_next_layout_fits_where_no_other_document_was_used_lately(model):
    now = 0.0
    cache = PromptCache(model, 3 * 512, clock=lambda: now)
    leave_standing(cache, "a", [*range(400)]).close()
    assert cache.fits_next("a", 600)
    assert not cache.fits_next("a", 1000)
    leave_standing(cache, "b", [7, 8]).close()
    assert not cache.fits_next("a", 600)
    now = 121.0
    assert cache.fits_next("a", 600)
    assert not cache.fits_next("c", 1)  # it has no present one


def test_prompts_of_other_documents_go_before_both_of_a_document(model):
    cache = PromptCache(model, 3 * 512)
    leave_standing(cache, "a", [1, 2, 3]).close()
    leave_standing(cache, "a", [1, *range(50)], next_rows=16).close()
    for key in ("b", "c"):
        leave_standing(cache, key, [7, 8]).close()
        leave_standing(cache, "a", [1, 2, 3]).close()
    assert stood(cache) == ["a", "c"]
    assert visit(cache, "a", [1, *range(50)])[1] == 51


def test_the_next_layout_of_a_closed_file_is_forgotten_too(model):
    cache = PromptCache(model, 10_000)
    leave_standing(cache, "shop\0a", [1, 2, 3], next_rows=16).close()
    cache.forget(closed({"shop\0a"}))
    assert cache.unread([1, 2, 3]) == 3
