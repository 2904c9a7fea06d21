"""The sampling loop: intervals, inventories and commands."""

from collections import deque
from time import monotonic

import pytest
from fake_nvml_kit import A, card

from planner.monitor.host.environment import HostEnvironment
from planner.monitor.host.sleep import nvidia_sleep_policy
from planner.monitor.readings.faults import RESTART_EXIT_CODE
from planner.monitor.readings.inventory import Inventory
from planner.monitor.readings.sample import Sample
from planner.monitor.readings.wire import PendingCall, read_line
from planner.monitor.sampler.__main__ import Sampler
from planner.monitor.sampler.all_cards import AllCards
from planner.monitor.sampler.nvidia_watch import NvidiaWatch
from planner.monitor.settings import BackOff, SamplerSettings

PLAIN = HostEnvironment("Linux", is_container=False, is_wsl=False, has_own_pids=False)


class Heard:
    """A channel that gives its commands one after the other, each once so many samples were sent."""

    def __init__(self, *commands):
        self._commands = deque(commands)
        self.messages = []

    def send(self, line):
        self.messages.append(read_line(line))

    @property
    def samples(self):
        return [message for message in self.messages if isinstance(message, Sample)]

    def wait(self, seconds):
        after, command = self._commands[0]
        if len(self.samples) >= after:
            self._commands.popleft()
            return command
        until = monotonic() + seconds
        while monotonic() < until:
            pass
        return {}


@pytest.fixture
def sampler(near_nvml, tmp_path):
    def make(settings):
        sleep = nvidia_sleep_policy(tmp_path / "pci")
        cards = NvidiaWatch(PLAIN, sleep, 0.0, BackOff(0.0, 0.0), BackOff(10.0, 300.0), hang_seconds=10.0)
        return Sampler(AllCards(cards, (), dict), settings)

    return make


def test_fast_and_slow_readings_and_processes_have_their_own_intervals(near_nvml, sampler):
    near_nvml.say(card(0, A))
    channel = Heard((30, {"stop": True}))
    made = sampler(SamplerSettings(fast_seconds=0.02, slow_seconds=0.2, process_seconds=0.3))
    assert made.run(channel) == 0
    assert isinstance(channel.messages[0], Inventory)
    times = [sample.monotonic_seconds for sample in channel.samples]
    slow = [at for at, sample in zip(times, channel.samples, strict=True) if "pcie_width" in sample.devices[A]]
    listed = [at for at, sample in zip(times, channel.samples, strict=True) if sample.processes is not None]
    assert 1 < len(slow) < len(times)
    assert 1 <= len(listed) <= len(slow)
    assert slow[1] - slow[0] >= 0.2
    cost = channel.samples[times.index(slow[1])].cost
    assert cost.calls > 0
    # Five microseconds for each field value, as the library says.
    assert made._cards.usage[2] == 5 * 20
    assert cost.memory_bytes > 0
    assert near_nvml.calls()[-1] == "nvmlShutdown "


def test_an_inventory_is_sent_only_if_changed(near_nvml, sampler):
    near_nvml.say(card(0, A))
    channel = Heard((5, {"stop": True}))
    sampler(SamplerSettings(fast_seconds=0.01)).run(channel)
    assert sum(isinstance(message, Inventory) for message in channel.messages) == 2


def test_commands_are_executed_between_samples(near_nvml, sampler):
    near_nvml.say(card(0, A))
    commands = (
        (1, {"release": True}),
        (3, {"resume": True}),
        (5, {"interval": 0.1}),
        (6, {"other": 1}),
        (10, {"stop": True}),
    )
    channel = Heard(*commands)
    sampler(SamplerSettings(fast_seconds=0.01)).run(channel)
    assert [bool(sample.devices) for sample in channel.samples[:5]] == [True, False, False, True, True]
    # What starts and what connects again says nothing about what reading costs.
    assert [sample.cost is None for sample in channel.samples[:5]] == [True, False, False, True, False]
    times = [sample.monotonic_seconds for sample in channel.samples]
    # Three intervals, of which the first may begin late on a busy machine.
    assert times[9] - times[6] >= 0.15


def test_missed_samples_are_not_made_up_for(near_nvml, sampler):
    near_nvml.say(card(0, A) | {"0.slow.nvmlDeviceGetPowerUsage": "600 0"})
    channel = Heard((3, {"stop": True}))
    sampler(SamplerSettings(fast_seconds=0.2)).run(channel)
    times = [sample.monotonic_seconds for sample in channel.samples]
    assert times[1] - times[0] >= 0.6
    assert times[2] - times[1] >= 0.1


def test_an_old_library_requests_a_new_sampler_process(near_nvml, sampler):
    near_nvml.say(
        card(0, A, error=None) | {"0.error.nvmlDeviceGetMemoryInfo_v2": "0 1"}, error__nvmlInitWithFlags="0 18"
    )
    channel = Heard((100, {}))
    assert sampler(SamplerSettings(fast_seconds=0.01)).run(channel) == RESTART_EXIT_CODE


def test_the_pending_driver_call_can_be_queried_at_any_time(near_nvml, sampler):
    near_nvml.say(card(0, A))
    made = sampler(SamplerSettings(fast_seconds=0.01))
    assert read_line(made.pending_call_message()) is None
    made.run(Heard((1, {"stop": True})))
    assert read_line(made.pending_call_message()) is None
    made._cards._nvidia.nvml._pending = [("nvmlInit", "", 1.0)]
    assert read_line(made.pending_call_message()) == PendingCall("nvmlInit", "", 1.0)
