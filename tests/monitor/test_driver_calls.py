"""Calls into a driver: counted, named while they run, and given up."""

from threading import Event, Thread

import pytest

from planner.monitor.driver_calls import CallGivenUpError, DriverCalls


def test_calls_are_counted_and_named_while_they_run():
    calls = DriverCalls()

    def look(value, *, more):
        assert calls.pending_call[:2] == ("reading", "GPU-a")
        # A call that has just begun is not given up.
        assert calls.give_up_call(60.0) is None
        return value + more

    assert calls.timed("reading", "GPU-a", look, 1, more=2) == 3
    assert (calls.calls, calls.pending_call, calls.hanging) == (1, None, {})
    assert calls.driver_seconds > 0
    with pytest.raises(OSError, match="gone"):
        calls.timed("reading", "GPU-a", _fail)
    assert (calls.calls, calls.pending_call) == (2, None)


def _fail():
    raise OSError("gone")


def test_a_call_that_was_given_up_ends_its_thread_when_it_returns():
    calls, begun, may_return, ended = DriverCalls(), Event(), Event(), []

    def hang():
        begun.set()
        may_return.wait(30.0)

    def work():
        try:
            calls.timed("reading", "GPU-a", hang)
        except CallGivenUpError:
            ended.append(True)

    thread = Thread(target=work)
    thread.start()
    begun.wait(30.0)
    assert calls.give_up_call(0.0).call == "reading"
    assert list(calls.hanging) == ["GPU-a"]
    # Others may call meanwhile.
    assert calls.timed("reading", "GPU-b", int, "7") == 7
    may_return.set()
    thread.join()
    assert (ended, calls.hanging, calls.calls) == ([True], {}, 2)
    assert calls.give_up_call(0.0) is None


def test_a_call_that_returns_while_it_is_given_up_is_not_hanging():
    calls = DriverCalls()
    # It returned between the look at the clock and the removal.
    calls._pending = _Vanishing([("reading", "GPU-a", 0.0)])
    assert calls.give_up_call(0.0) is None
    assert calls.hanging == {}


class _Vanishing(list):
    def remove(self, call):
        raise ValueError
