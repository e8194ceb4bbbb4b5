"""Jobs of many clients run in fair order, side by side where there is room; none is lost."""

import threading
import time

import pytest

from engine.job import Dropped
from engine.scheduler import Scheduler
from tests.support.jobs import CalledJob
from tests.support.stopped_clock import StoppedClock


class Walker:
    """A sequence whose steps are those of a generator."""

    is_done = is_waiting = False

    def __init__(self, steps) -> None:
        self._steps = steps

    def advance(self):
        self.is_done = next(self._steps, self) is self


def run(scheduler, batches=None):
    """The step loop, on the test's own thread; `batches` notes how many ran side by side."""
    while running := scheduler.admit():
        if batches is not None:
            batches.append(len(running))
        for one in running:
            one.advance()


class Recorder:
    """A scheduler whose thread is the test's own."""

    def __init__(self, clock=time.monotonic) -> None:
        self.scheduler = Scheduler(clock=clock)
        self.events: list[tuple[str, str]] = []

    def submit(self, name, *, client="one", buffer=None, during=lambda: None, **options):
        def steps(is_cancelled):
            yield from ()
            during()
            self.events.append((name, "cancelled" if is_cancelled() else "ran"))

        def dropped(reason):
            self.events.append((name, reason.value))

        def begin(is_cancelled):
            return Walker(steps(is_cancelled))

        job = CalledJob(
            client=client, document=buffer or name, start=begin, drop=dropped, **options
        )
        self.scheduler.submit(job)
        return job

    def work(self):
        """Run all that waits."""
        self.submit("end", is_prefetch=True, during=self.scheduler.stop)
        run(self.scheduler)
        return [event for event in self.events if event[0] != "end"]


@pytest.fixture
def recorder():
    return Recorder()


def test_clients_take_turns_and_jobs_of_one_run_in_their_order(recorder):
    for name in "abc":
        recorder.submit(name)
    recorder.submit("theirs", client="two")
    assert [name for name, _ in recorder.work()] == ["a", "theirs", "b", "c"]


@pytest.mark.parametrize(
    ("waited_s", "first"),
    [(0.01, "before"), (0.2, "behind"), (0.5, "before")],
    ids=["both are young", "its next key is about to come", "its person has stopped typing"],
)
def test_a_young_job_comes_before_one_that_is_about_to_be_superseded(waited_s, first):
    clock = StoppedClock()
    recorder = Recorder(clock)
    recorder.submit("before", client="one")
    clock.now += waited_s
    recorder.submit("behind", client="two")
    assert recorder.work()[0] == (first, "ran")


def test_who_asks_without_end_does_not_pass_by_another_whose_job_has_waited():
    """Of two who used as much, each has a turn, however fresh the jobs of one are."""
    clock = StoppedClock()
    recorder = Recorder(clock)

    def ask_again():
        clock.now += 0.1
        recorder.submit("fresh", principal="eve")

    recorder.submit("eve's", principal="eve", during=ask_again)
    recorder.submit("waits", principal="ada")
    assert [name for name, _ in recorder.work()] == ["eve's", "waits", "fresh"]


def test_who_had_the_engine_for_long_does_not_come_first_by_asking_anew():
    clock = StoppedClock()
    recorder = Recorder(clock)

    def take_a_second():
        clock.now += 1.0
        recorder.submit("waits", principal="ada")
        clock.now += 0.2
        recorder.submit("again", principal="eve")

    recorder.submit("long", principal="eve", during=take_a_second)
    assert [name for name, _ in recorder.work()] == ["long", "waits", "again"]


OWN = {"buffer": "b"}
GUESS = {"buffer": "b", "is_prefetch": True}


@pytest.mark.parametrize(
    ("jobs", "dropped"),
    [
        ({"old": OWN, "other": {"buffer": "c"}, "new": OWN}, ["old"]),
        ({"older": OWN, "guess": GUESS, "wanted": OWN}, ["older", "guess"]),
        ({"wanted": OWN, "guess": GUESS, "newer guess": GUESS}, ["guess"]),
        ({"mine": OWN, "theirs": OWN | {"client": "two"}}, []),
        ({"mine": OWN, "theirs": OWN | {"principal": "eve"}}, []),
    ],
)
def test_a_newer_job_of_the_buffer_drops_waiting_ones_but_a_guess_only_guesses(
    recorder, jobs, dropped
):
    for name, options in jobs.items():
        recorder.submit(name, **options)
    assert recorder.events == [(name, Dropped.SUPERSEDED) for name in dropped]
    assert recorder.work()[len(dropped) :] == [(one, "ran") for one in jobs if one not in dropped]


@pytest.mark.parametrize(
    ("running", "newer", "fate"),
    [
        (OWN, OWN, "cancelled"),
        (OWN, GUESS, "ran"),
        (OWN, {"buffer": "c"}, "ran"),
        (OWN, OWN | {"client": "two"}, "ran"),
        (GUESS, {"client": "two", "is_prefetch": True}, "ran"),
        (GUESS, {"is_prefetch": True}, "cancelled"),
        (GUESS, {"client": "two"}, "cancelled"),
        (GUESS, {}, "cancelled"),
    ],
)
def test_a_newer_job_of_the_buffer_ends_the_running_one_and_any_wanted_job_a_guess(
    recorder, running, newer, fate
):
    old = recorder.submit("old", during=lambda: recorder.submit("new", **newer), **running)
    assert recorder.work()[0] == ("old", fate)
    assert old.is_superseded == (running is newer is OWN)


def test_a_speculative_job_runs_last_and_ends_when_another_comes(recorder):
    def ask_for_more():
        recorder.submit("wanted", during=recorder.scheduler.stop)

    recorder.submit("guess", is_prefetch=True, during=ask_for_more)
    recorder.submit("first", client="two")
    run(recorder.scheduler)
    assert recorder.events == [("first", "ran"), ("guess", "cancelled"), ("wanted", "cancelled")]


def crowded(recorder):
    """Jobs of many clients, of whom all but one have to wait."""
    return [recorder.submit(f"own {number}", client=f"{number}") for number in range(12)]


def test_nothing_is_computed_ahead_while_most_jobs_find_those_of_others_in_all_places(recorder):
    crowded(recorder)
    recorder.submit("guess", client="3", is_prefetch=True)
    assert recorder.events == [("guess", Dropped.SUPERSEDED)]


def test_guesses_run_again_once_the_crowd_has_gone(recorder):
    for job in crowded(recorder):
        recorder.scheduler.cancel(job)
    for _ in range(12):
        recorder.scheduler.cancel(recorder.submit("alone"))
    recorder.events.clear()
    recorder.submit("guess", is_prefetch=True)
    assert recorder.work() == [("guess", "ran")]


def test_guesses_run_beside_others_where_there_are_places(recorder):
    recorder.scheduler.max_sequences = 16
    crowded(recorder)
    recorder.submit("guess", client="3", is_prefetch=True)
    assert recorder.events == []


@pytest.mark.parametrize("is_running", [False, True])
def test_a_cancelled_job_never_begins_or_ends_early(recorder, is_running):
    jobs: list[CalledJob] = []

    def cancel():
        recorder.scheduler.cancel(jobs[0])

    jobs.append(recorder.submit("a", during=cancel))
    if not is_running:
        cancel()
    assert recorder.work() == [("a", "cancelled")]


def test_what_waits_when_all_stops_is_told(recorder):
    recorder.submit("a")
    recorder.scheduler.stop()
    recorder.submit("b")
    run(recorder.scheduler)
    assert recorder.events == [("a", "stopped"), ("b", "stopped")]


def test_the_thread_waits_for_jobs_and_for_errands():
    recorder = Recorder()
    thread = threading.Thread(target=run, args=[recorder.scheduler])
    thread.start()
    ran, done = threading.Event(), threading.Event()
    recorder.submit("a", during=ran.set)
    assert ran.wait(10)
    recorder.scheduler.run_between(done.set)
    assert done.wait(10)
    recorder.scheduler.stop()
    thread.join(10)
    assert not thread.is_alive()


class Walkers:
    """Jobs of several steps, side by side, each a second; `path` is whose steps ran, in order."""

    def __init__(self, **options) -> None:
        self.now = 0.0
        self.scheduler = Scheduler(clock=lambda: self.now, **options)
        self.path: list[str] = []
        self.batches: list[int] = []

    def submit(self, name, num_steps, *, during=None, last=lambda: None, **options):
        """`during` is called in the steps of these numbers."""
        during = during or {}

        def steps(is_cancelled):
            for number in range(num_steps):
                if is_cancelled():
                    self.path.append(f"{name} cancelled")
                    return
                self.path.append(name)
                during.get(number, lambda: None)()
                yield
            last()

        job = CalledJob(
            client=options.pop("client", name),
            document=name,
            start=lambda c: Walker(steps(c)),
            **options,
        )
        self.scheduler.submit(job)
        return job

    def work(self, max_sequences=1):
        self.scheduler.max_sequences = max_sequences
        while running := self.scheduler.admit():
            self.batches.append(len(running))
            for one in running:
                one.advance()
            self.now += 1.0
            if not (self.scheduler.load_of().waiting or any(not one.is_done for one in running)):
                paused = [one for one in self.scheduler._running if one.is_paused]
                if not paused:
                    self.scheduler.stop()


def test_jobs_go_on_step_by_step_and_the_next_one_comes_in_when_one_ends():
    walkers = Walkers()
    walkers.submit("a", 3)
    walkers.submit("b", 1)
    walkers.submit("c", 2)
    walkers.work(max_sequences=2)
    assert walkers.path == ["a", "b", "a", "a", "c", "c"]
    assert walkers.batches == [2, 2, 2, 2, 1]


@pytest.mark.parametrize(
    ("max_sequences", "path"),
    [
        (3, ["asker", "guess", "guess", "guess", "wanted", "guess", "guess cancelled"]),
        (2, ["asker", "guess", "guess cancelled", "wanted"]),
    ],
)
def test_a_guess_ends_for_a_wanted_job_only_where_that_would_wait(max_sequences, path):
    walkers = Walkers()

    def ask():
        walkers.submit("wanted", 1, last=walkers.scheduler.stop)

    walkers.submit("guess", 9, is_prefetch=True)
    walkers.submit("asker", 1, last=ask)
    walkers.work(max_sequences)
    assert walkers.path == path


def test_an_errand_runs_between_the_steps_of_a_job_and_where_no_job_is(recorder):
    scheduler, events = recorder.scheduler, recorder.events
    batches: list[int] = []

    def steps():
        scheduler.run_between(lambda: events.append(("errand", "ran")))
        yield
        events.append(("job", "ran"))

    scheduler.run_between(lambda: events.append(("early errand", "ran")))
    scheduler.submit(CalledJob(client="one", document="a", start=lambda _: Walker(steps())))
    recorder.submit("end", is_prefetch=True, during=scheduler.stop)
    run(scheduler, batches)
    assert [name for name, _ in events] == ["early errand", "errand", "job", "end"]
    assert set(batches) == {1}


def test_a_job_that_begins_nothing_is_over():
    scheduler = Scheduler()
    scheduler.submit(CalledJob(client="one", document="a", start=lambda _: None))
    scheduler.run_between(scheduler.stop)
    assert list(scheduler.admit()) == []
    assert scheduler.load_of().running == 0


def test_a_principal_gains_nothing_by_new_names_of_clients():
    """Each of them was the first before, as it had no turn yet."""
    walkers = Walkers()
    for number in range(5):
        walkers.submit(f"eve{number}", 1, principal="eve")
    walkers.submit("ada", 1, principal="ada")
    walkers.work()
    assert walkers.path[:3].count("ada") == 1


def test_a_long_job_makes_way_for_another_principal_and_goes_on_afterwards():
    walkers = Walkers()
    asked = {2: lambda: walkers.submit("ada", 2, principal="ada")}
    walkers.submit("eve", 6, principal="eve", during=asked)
    walkers.work()
    assert walkers.path == ["eve"] * 3 + ["ada"] * 2 + ["eve"] * 3
    assert set(walkers.batches) == {1}


def test_a_long_job_makes_no_way_for_its_own_principal():
    walkers = Walkers()
    asked = {2: lambda: walkers.submit("other", 2)}
    walkers.submit("long", 6, during=asked)
    walkers.work()
    assert walkers.path == ["long"] * 6 + ["other"] * 2


def test_a_patient_job_makes_way_for_its_own_principals_keys_and_goes_on_afterwards():
    walkers = Walkers()
    asked = {2: lambda: walkers.submit("key", 2), 4: lambda: walkers.submit("other key", 1)}
    walkers.submit("chat", 6, is_patient=True, during=asked)
    walkers.work()
    assert walkers.path == [*["chat"] * 3, *["key"] * 2, *["chat"] * 2, "other key", "chat"]
    assert set(walkers.batches) == {1}


@pytest.mark.parametrize("other", [{"is_patient": True}, {"is_prefetch": True}])
def test_a_patient_job_makes_no_way_for_another_one_or_for_a_guess(other):
    walkers = Walkers()
    walkers.submit("chat", 4, is_patient=True, during={1: lambda: walkers.submit("b", 2, **other)})
    walkers.work()
    assert walkers.path == ["chat"] * 4 + ["b"] * 2


def test_two_long_jobs_of_two_principals_share_the_time():
    walkers = Walkers()
    walkers.submit("eve", 20, principal="eve")
    walkers.submit("ada", 20, principal="ada")
    walkers.work()
    for end in range(4, 40):
        assert abs(walkers.path[:end].count("eve") - end / 2) <= 2


def test_a_prefetch_waits_for_all_and_pauses_nobody():
    walkers = Walkers()
    asked = {2: lambda: walkers.submit("guess", 1, principal="ada", is_prefetch=True)}
    walkers.submit("eve", 6, principal="eve", during=asked)
    walkers.work()
    assert walkers.path == ["eve"] * 6 + ["guess"]


def test_no_more_jobs_are_paused_than_memory_is_meant_for():
    walkers, paused = Walkers(), []

    def note():
        paused.append(sum(job.is_paused for job in walkers.scheduler._running))

    def submit(number):
        during = {0: lambda: submit(number + 1), 1: note} if number < 12 else {}
        walkers.submit(f"p{number}", 4, principal=f"p{number}", during=during)

    walkers.submit("eve", 40, principal="eve", during={3: lambda: submit(0)})
    walkers.work()
    assert 1 <= max(paused) <= 4
    assert walkers.path.count("eve") == 40


def test_a_paused_job_that_is_cancelled_ends_at_once():
    walkers, jobs = Walkers(), list[CalledJob]()
    cancel = {1: lambda: walkers.scheduler.cancel(jobs[0])}
    ask = {1: lambda: walkers.submit("ada", 3, principal="ada", during=cancel)}
    jobs.append(walkers.submit("eve", 9, principal="eve", during=ask))
    walkers.work()
    assert walkers.path[:4] == ["eve", "eve", "ada", "ada"]
    assert sorted(walkers.path[4:]) == ["ada", "eve cancelled"]


def test_a_paused_job_goes_on_while_the_one_in_its_place_waits_for_its_memory():
    walkers = Walkers()

    def key(_):
        def steps():
            for _ in range(9):
                one.is_waiting = walkers.path.count("chat") < 4
                walkers.path.append("key waits" if one.is_waiting else "key")
                yield

        one = Walker(steps())
        return one

    job = CalledJob(client="chat", document="key", start=key, drop=walkers.path.append)
    asked = {1: lambda: walkers.scheduler.submit(job)}
    walkers.submit("chat", 4, is_patient=True, during=asked)
    walkers.work()
    assert walkers.path == ["chat", "chat", *["key waits", "chat"] * 2, *["key"] * 7]


def test_jobs_beyond_the_number_that_may_run_wait_while_others_run():
    walkers = Walkers(most_running=lambda _: 2)
    for number in range(4):
        walkers.submit(f"eve{number}", 2, principal="eve")
    walkers.submit("ada", 2, principal="ada")
    assert walkers.scheduler.load_of("eve") == (4, 0)
    walkers.work(max_sequences=4)
    assert sorted(walkers.path[:3]) == ["ada", "eve0", "eve1"]
    assert len(walkers.path) == 10
