"""Background runs: results, errors and cancellation."""

import threading

import shiboken6
from PySide6.QtCore import QObject, Signal

from planner.errors import ModelFileError
from planner.gui.tasks import TaskRunner


def unexpected(outcome):
    raise AssertionError(f"not expected: {outcome!r}")


def test_a_result_arrives_on_the_windows_thread(tasks: TaskRunner, qtbot):
    arrived = []
    tasks.run(
        "a", threading.current_thread, lambda worker: arrived.append((worker, threading.current_thread())), unexpected
    )
    assert tasks.busy
    qtbot.waitUntil(lambda: bool(arrived))
    worker, here = arrived[0]
    assert here is threading.main_thread()
    assert worker is not here
    assert not tasks.busy


def test_an_error_arrives_as_it_was_raised(tasks: TaskRunner, qtbot):
    error, arrived = ModelFileError("x.json", "is empty"), []

    def fail():
        raise error

    tasks.run("a", fail, unexpected, arrived.append)
    qtbot.waitUntil(lambda: bool(arrived))
    assert arrived == [error]


def test_only_the_newest_run_of_a_key_calls_back(tasks: TaskRunner, qtbot):
    gate, arrived = threading.Event(), []

    def slow():
        gate.wait(30)
        return "old"

    tasks.run("a", slow, unexpected, unexpected)
    tasks.run("a", lambda: "new", arrived.append, unexpected)
    qtbot.waitUntil(lambda: bool(arrived))
    gate.set()
    tasks.run("b", lambda: "other", arrived.append, unexpected)
    qtbot.waitUntil(lambda: len(arrived) == 2)
    assert arrived == ["new", "other"]


def test_a_cancelled_run_does_not_call_back(tasks: TaskRunner, qtbot):
    gate, arrived = threading.Event(), []
    tasks.run("a", lambda: gate.wait(30), unexpected, unexpected)
    tasks.cancel("a")
    assert not tasks.busy
    gate.set()
    tasks.run("b", lambda: 1, arrived.append, unexpected)
    qtbot.waitUntil(lambda: bool(arrived))


def test_busy_is_announced(tasks: TaskRunner, qtbot):
    seen = []
    tasks.busy_changed.connect(seen.append)
    tasks.run("a", lambda: 1, lambda _: None, unexpected)
    qtbot.waitUntil(lambda: len(seen) == 2)
    assert seen == [True, False]


def test_after_the_shutdown_nothing_calls_back(qapp):
    runner = TaskRunner()
    runner.run("a", lambda: 1, unexpected, unexpected)
    runner.shutdown()
    qapp.processEvents()
    assert not runner.busy


def test_a_replaced_run_is_asked_to_stop(tasks: TaskRunner, qtbot):
    stopped, arrived = [], []
    gates = {name: threading.Event() for name in ("first", "second", "third", "last")}

    def start(name, key="a"):
        def stop():
            stopped.append(name)
            gates[name].set()

        tasks.run(key, lambda: gates[name].wait(30), lambda _result: arrived.append(name), unexpected, stop=stop)

    start("first")
    start("second")
    assert stopped == ["first"]
    tasks.cancel("a")
    assert stopped == ["first", "second"]
    start("third")
    gates["third"].set()
    qtbot.waitUntil(lambda: arrived == ["third"])
    start("last")
    tasks.shutdown()
    assert stopped == ["first", "second", "last"]


def test_the_outcome_for_a_destroyed_object_is_ignored(tasks: TaskRunner, qtbot):
    class Receiver(QObject):
        arrived = Signal(object)

        def take(self, outcome):
            self.arrived.emit(outcome)

    gate, receiver = threading.Event(), Receiver()
    tasks.run("a", lambda: gate.wait(30), receiver.take, unexpected)
    shiboken6.delete(receiver)
    gate.set()
    qtbot.waitUntil(lambda: not tasks.busy)


def test_rounds_arrive_as_they_end(tasks: TaskRunner, qtbot):
    gate, arrived = threading.Event(), []

    def count(_stop):
        yield 1
        gate.wait(30)
        yield 2

    tasks.run_in_rounds("a", count, arrived.append, lambda _result: arrived.append("end"), unexpected)
    qtbot.waitUntil(lambda: arrived == [1])
    gate.set()
    qtbot.waitUntil(lambda: arrived == [1, 2, "end"])


def test_a_cancelled_run_ends_no_further_round(tasks: TaskRunner, qtbot):
    gate, told, arrived = threading.Event(), threading.Event(), []

    def count(stop):
        yield 1
        gate.wait(30)
        if stop():
            told.set()
        yield 2

    tasks.run_in_rounds("a", count, arrived.append, unexpected, unexpected)
    qtbot.waitUntil(lambda: arrived == [1])
    tasks.cancel("a")
    gate.set()
    assert told.wait(30)
    tasks.run("b", lambda: "other", arrived.append, unexpected)
    qtbot.waitUntil(lambda: arrived[-1] == "other")
    assert arrived == [1, "other"]
