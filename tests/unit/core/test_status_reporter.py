"""When a status is written."""

from itertools import pairwise
from random import Random

from taintkeeper.core.status_reporter import StatusReporter


class Bench:
    """An object whose status is a number; every write is answered at once, well unless told otherwise."""

    def __init__(self, known: int | None = None) -> None:
        self.now = 1000.0
        self.number = 0
        self.works: bool | None = True
        self.written: list[tuple[float, str, int]] = []
        self.reporter: StatusReporter[int] = StatusReporter(lambda name, known, now: self.number, Random(0))
        self.reporter.put("p", "p-uid", known)

    def change(self) -> None:
        """Let the number grow by one."""
        self.number += 1
        self.reporter.touch("p")
        self.work()

    def work(self) -> int:
        """Write what is due now; return how many writes that were."""
        due = self.reporter.due(self.now)
        for name, uid, status in due:
            self.written.append((self.now, uid, status))
            if self.works is not None:
                self.reporter.written(name, self.now, done=self.works)
        assert not due or self.reporter.due(self.now) == []
        return len(due)

    def wait(self, seconds: float) -> None:
        """Let time pass and wake the reporter when it asks for it."""
        end = self.now + seconds
        while (at := self.reporter.wake_at()) is not None and at <= end:
            self.now = max(self.now, at)
            self.work()
        self.now = end
        self.work()


def test_a_status_is_written_once_and_not_again_while_it_is_right() -> None:
    bench = Bench()
    bench.work()
    bench.reporter.touch("p")
    bench.wait(3600.0)
    assert bench.written == [(1000.0, "p-uid", 0)]


def test_a_status_that_the_object_has_is_not_written_after_a_restart() -> None:
    bench = Bench(known=0)
    bench.wait(3600.0)
    assert bench.written == []


def test_what_somebody_else_wrote_is_put_right() -> None:
    bench = Bench(known=0)
    bench.reporter.put("p", "p-uid", 7)
    bench.wait(60.0)
    assert [status for _, _, status in bench.written] == [0]


def test_in_a_storm_a_status_is_written_every_few_seconds_and_ends_up_right() -> None:
    bench = Bench()
    for _ in range(100):
        bench.change()
        bench.wait(0.2)
    bench.wait(5.0)
    times = [at for at, _, _ in bench.written]
    assert len(times) <= 6
    assert all(after - before >= 5.0 for before, after in pairwise(times))
    assert bench.written[-1][2] == 100


def test_one_write_at_a_time_and_its_answer_brings_the_next() -> None:
    bench = Bench()
    bench.works = None
    bench.work()
    bench.change()
    bench.reporter.put("p", "p-uid", None)
    bench.wait(60.0)
    assert len(bench.written) == 1
    bench.reporter.written("p", bench.now, done=True)
    assert bench.work() == 1
    assert bench.written[-1][2] == 1


def test_a_write_that_fails_is_tried_again_ever_more_seldom() -> None:
    bench = Bench()
    bench.works = False
    bench.work()
    bench.wait(3600.0)
    times = [at for at, _, _ in bench.written]
    pauses = [after - before for before, after in pairwise(times)]
    assert 5.0 <= pauses[0] < 7.0
    assert pauses[:5] == sorted(pauses[:5])
    assert 300.0 <= pauses[-1] <= 375.0
    bench.works = True
    bench.wait(400.0)
    count = len(bench.written)
    bench.wait(3600.0)
    assert len(bench.written) == count


def test_an_answer_that_nobody_waits_for_changes_nothing() -> None:
    bench = Bench(known=0)
    bench.work()
    bench.reporter.written("p", bench.now, done=False)
    bench.reporter.written("unknown", bench.now, done=False)
    assert bench.work() == 0
    assert bench.reporter.wake_at() is None


def test_an_object_that_is_gone_is_not_written_and_one_that_comes_back_is_another() -> None:
    bench = Bench()
    bench.work()
    bench.change()
    bench.reporter.drop("p")
    bench.wait(60.0)
    assert len(bench.written) == 1
    bench.reporter.put("p", "another", None)
    bench.work()
    bench.reporter.put("p", "a third", None)
    bench.work()
    assert [uid for _, uid, _ in bench.written] == ["p-uid", "another", "a third"]
