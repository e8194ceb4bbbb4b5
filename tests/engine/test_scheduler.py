"""Jobs of many clients run in fair turns, side by side where there are lanes; none is lost."""

import threading

import pytest

from engine.scheduler import Dropped, Job, Scheduler


class Recorder:
    """A scheduler whose thread is the test's own."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.events: list[tuple[str, str]] = []

    def submit(self, name, *, client="one", buffer=None, during=lambda: None, **options):
        def turns(cancelled):
            yield from ()
            during()
            self.events.append((name, "cancelled" if cancelled() else "ran"))

        def dropped(reason):
            self.events.append((name, reason.value))

        job = Job(client, buffer or name, turns, dropped, **options)
        self.scheduler.submit(job)
        return job

    def work(self):
        """Run all that waits."""
        self.submit("end", is_speculative=True, during=self.scheduler.stop)
        self.scheduler.work()
        return [event for event in self.events if event[0] != "end"]


@pytest.fixture
def recorder():
    return Recorder()


def test_jobs_of_one_client_run_in_their_order(recorder):
    for name in "abc":
        recorder.submit(name)
    assert recorder.work() == [("a", "ran"), ("b", "ran"), ("c", "ran")]


def test_clients_take_turns(recorder):
    for name in "abc":
        recorder.submit(name)
    recorder.submit("theirs", client="two")
    assert [name for name, _ in recorder.work()] == ["a", "theirs", "b", "c"]


def test_a_newer_job_of_the_buffer_drops_the_waiting_one(recorder):
    recorder.submit("old", buffer="b")
    recorder.submit("other", buffer="c")
    recorder.submit("new", buffer="b")
    assert recorder.events == [("old", Dropped.SUPERSEDED)]


def test_the_same_buffer_of_another_client_is_another(recorder):
    recorder.submit("mine", buffer="b")
    recorder.submit("theirs", buffer="b", client="two")
    assert recorder.events == []


def test_a_speculative_job_runs_last_and_ends_when_another_comes(recorder):
    def ask_for_more():
        recorder.submit("wanted", during=recorder.scheduler.stop)

    recorder.submit("guess", is_speculative=True, during=ask_for_more)
    recorder.submit("first", client="two")
    recorder.scheduler.work()
    assert recorder.events == [("first", "ran"), ("guess", "cancelled"), ("wanted", "cancelled")]


def test_a_guess_drops_older_guesses_of_its_buffer_and_never_a_wanted_job(recorder):
    recorder.submit("wanted", buffer="b")
    recorder.submit("guess", buffer="b", is_speculative=True)
    recorder.submit("newer guess", buffer="b", is_speculative=True)
    assert recorder.events == [("guess", Dropped.SUPERSEDED)]
    assert recorder.work()[1:] == [("wanted", "ran"), ("newer guess", "ran")]


def test_a_wanted_job_drops_wanted_ones_and_guesses_of_its_buffer(recorder):
    recorder.submit("older", buffer="b")
    recorder.submit("guess", buffer="b", is_speculative=True)
    recorder.submit("wanted", buffer="b")
    assert recorder.events == [("older", Dropped.SUPERSEDED), ("guess", Dropped.SUPERSEDED)]


@pytest.mark.parametrize(
    ("client", "is_speculative", "fate"),
    [
        ("two", True, "ran"),
        ("one", True, "cancelled"),
        ("two", False, "cancelled"),
        ("one", False, "cancelled"),
    ],
)
def test_a_running_guess_ends_for_wanted_jobs_and_for_guesses_of_its_client(
    recorder, client, is_speculative, fate
):
    def submit_another():
        recorder.submit("other", client=client, is_speculative=is_speculative)

    recorder.submit("guess", is_speculative=True, during=submit_another)
    assert recorder.work()[0] == ("guess", fate)


def test_a_job_cancelled_while_it_waits_never_runs(recorder):
    job = recorder.submit("a")
    recorder.scheduler.cancel(job)
    assert recorder.work() == [("a", "cancelled")]


def test_a_job_cancelled_while_it_runs_hears_of_it(recorder):
    jobs: list[Job] = []
    jobs.append(recorder.submit("a", during=lambda: recorder.scheduler.cancel(jobs[0])))
    assert recorder.work() == [("a", "cancelled")]


def test_what_waits_when_all_stops_is_told(recorder):
    recorder.submit("a")
    recorder.scheduler.stop()
    recorder.submit("b")
    recorder.scheduler.work()
    assert recorder.events == [("a", "stopped"), ("b", "stopped")]


def test_the_thread_waits_for_jobs():
    recorder = Recorder()
    thread = threading.Thread(target=recorder.scheduler.work)
    thread.start()
    ran = threading.Event()
    recorder.submit("a", during=ran.set)
    assert ran.wait(10)
    recorder.scheduler.stop()
    thread.join(10)
    assert not thread.is_alive()


class Walkers:
    """Jobs of several turns on a scheduler with lanes; `path` is who took a turn, in order."""

    def __init__(self) -> None:
        self.scheduler = Scheduler()
        self.path: list[str] = []
        self.expected: list[int] = []

    def submit(self, name, num_turns, *, client=None, is_speculative=False, last=lambda: None):
        def turns(cancelled):
            for _ in range(num_turns):
                if cancelled():
                    self.path.append(f"{name} cancelled")
                    return
                self.path.append(name)
                yield
            last()

        job = Job(client or name, name, turns, lambda _: None, is_speculative)
        self.scheduler.submit(job)

    def work(self, num_lanes):
        self.scheduler.work(num_lanes, self.expected.append)


def test_jobs_share_the_lanes_turn_by_turn_and_the_next_one_comes_in_when_one_ends():
    walkers = Walkers()
    walkers.submit("a", 3)
    walkers.submit("b", 1)
    walkers.submit("c", 2, last=walkers.scheduler.stop)
    walkers.work(num_lanes=2)
    assert walkers.path == ["a", "b", "a", "a", "c", "c"]
    assert walkers.expected == [2, 1]


@pytest.mark.parametrize(
    ("num_lanes", "path"),
    [
        (3, ["asker", "guess", "guess", "guess", "wanted", "guess", "guess cancelled"]),
        (2, ["asker", "guess", "guess cancelled", "wanted"]),
    ],
)
def test_a_guess_ends_for_a_wanted_job_only_where_that_would_wait(num_lanes, path):
    walkers = Walkers()

    def ask():
        walkers.submit("wanted", 1, last=walkers.scheduler.stop)

    walkers.submit("guess", 9, is_speculative=True)
    walkers.submit("asker", 1, last=ask)
    walkers.work(num_lanes)
    assert walkers.path == path


def test_an_errand_runs_between_the_turns_of_a_job_and_where_no_job_is(recorder):
    scheduler, events = recorder.scheduler, recorder.events
    expected: list[int] = []

    def turns(_cancelled):
        scheduler.run_between(lambda: events.append(("errand", "ran")))
        yield
        events.append(("job", "ran"))

    scheduler.run_between(lambda: events.append(("early errand", "ran")))
    scheduler.submit(Job("one", "a", turns, lambda _: None))
    recorder.submit("end", is_speculative=True, during=scheduler.stop)
    scheduler.work(expect=expected.append)
    assert [name for name, _ in events] == ["early errand", "errand", "job", "end"]
    assert expected == [1]


def test_an_errand_needs_no_job():
    scheduler, done = Scheduler(), threading.Event()
    thread = threading.Thread(target=scheduler.work)
    thread.start()
    scheduler.run_between(done.set)
    assert done.wait(10)
    scheduler.stop()
    thread.join()
