"""Calls into a driver: counted and given up; their cards are silent for a while."""

from threading import Event, Thread
from time import monotonic, sleep

import pytest
from fake_nvml_kit import LONGEST_SECONDS, A, B, card

from planner.monitor.driver_calls import CallGivenUpError, DriverCalls, DriverReader, HangingCallError
from planner.monitor.nvml import Nvml


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


@pytest.fixture
def opened(near_nvml):
    """Return the library with two cards, and a reader that waits for no call longer than half a second."""
    near_nvml.say(card(0, A), card(1, B))
    nvml = Nvml()
    nvml.call("nvmlInit", "")
    reader = DriverReader(nvml, hang_seconds=0.5)
    yield nvml, reader
    reader.close()
    nvml.call("nvmlShutdown", "")


def hang(nvml, reader, near_nvml):
    """Let the call for the first card hang until the driver is healthy again, then wait for its thread."""
    near_nvml.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1}, card(1, B))
    with pytest.raises(HangingCallError):
        reader.read(lambda: power(nvml, 0, A))
    near_nvml.say(card(0, A), card(1, B))
    until = monotonic() + LONGEST_SECONDS
    while nvml.hanging:
        assert monotonic() < until
        sleep(0.001)


def power(nvml, number, uuid):
    return nvml.call("nvmlDeviceGetPowerUsage", uuid, nvml.call("nvmlDeviceGetHandleByIndex", "", number))


def test_work_returns_its_result_or_raises_its_error(opened):
    nvml, reader = opened
    assert reader.read(lambda: power(nvml, 0, A)) == 200_000
    with pytest.raises(ZeroDivisionError):
        reader.read(lambda: 1 // 0)
    assert reader.read(lambda: power(nvml, 1, B)) == 200_000


def test_work_that_lasts_without_a_call_is_waited_for(opened):
    _nvml, reader = opened
    assert reader.read(lambda: sleep(1.2) or "done") == "done"
    assert reader.silent == {}


def test_a_call_that_hangs_is_named_while_other_work_is_done(opened, near_nvml):
    nvml, reader = opened
    near_nvml.say(card(0, A) | {"0.stall.nvmlDeviceGetPowerUsage": 1}, card(1, B))
    continued = []
    with pytest.raises(HangingCallError):
        reader.read(lambda: continued.append(power(nvml, 0, A)))
    assert [call.call for call in reader.silent.values()] == ["nvmlDeviceGetPowerUsage"]
    assert reader.read(lambda: power(nvml, 1, B)) == 200_000
    reader.end_pauses(1e9)
    assert set(reader.silent) == {A}
    hang_over = monotonic() + LONGEST_SECONDS
    near_nvml.say(card(0, A), card(1, B))
    while nvml.hanging:
        assert monotonic() < hang_over
        sleep(0.001)
    # What was to follow the call is not done any more.
    assert continued == []


def test_each_time_a_card_hangs_it_is_left_alone_for_longer_up_to_a_limit(opened, near_nvml):
    nvml, reader = opened
    pauses = []
    for _ in range(4):
        hang(nvml, reader, near_nvml)
        seconds = 0.0
        while reader.silent:
            reader.end_pauses(seconds)
            seconds += 0.5
        pauses.append(seconds - 0.5)
    assert pauses == [1.0, 2.0, 4.0, 5.0]


def test_a_call_that_returns_just_before_it_is_given_up_has_not_hung(opened):
    nvml, _reader = opened

    class Returned(list):
        def remove(self, call):
            raise ValueError(call)

    before, nvml._pending = nvml._pending, Returned([("nvmlDeviceGetPowerUsage", A, 0.0)])
    assert nvml.give_up_call(0.0) is None
    assert nvml.hanging == {}
    nvml._pending = before


def test_it_can_be_closed_twice_and_used_again(opened):
    nvml, reader = opened
    reader.read(lambda: None)
    reader.close()
    reader.close()
    assert reader.read(lambda: power(nvml, 0, A)) == 200_000
