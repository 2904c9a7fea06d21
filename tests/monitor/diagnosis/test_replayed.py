"""Recordings of several minutes, replayed as the window replays them: which verdicts stand, one after the other.

The shapes are those of public logs: a training of eight cards (karpathy/nanoGPT pull 643: 98.6 % used, 392 of 700 W, a
second or two of rest at each evaluation), and one whose data are not ready in time (bursts of 60 to 100 %, then nothing
for as long, beside a full processor).
"""

from itertools import groupby
from pathlib import Path
from random import Random

import pytest
from recording_kit import WALL, A, B, plain, recording

from planner.monitor.diagnosis.tracker import VerdictTracker
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Reading
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample
from planner.monitor.recording.player import Player
from planner.monitor.recording.recording import read_recording
from planner.units import GIB

pytestmark = pytest.mark.sweep

MINUTE = 60
LIMIT = 700.0
LOOK = 2.0
FACTS = plain({"memory_total_bytes": 80 * GIB, "sm_clock_most_mhz": 1980})


def replayed(tell, seconds, cards=(A,), command="python train.py"):
    """Return the verdicts on the first card, each with the time at which it began to stand, of a replay by the second.

    `tell` says at a time the use, the share of the power limit, memory in GiB, the processor's share, and what else is.
    """
    chance = Random(5)
    devices = tuple(Device(uuid, "NVIDIA H100 80GB HBM3", place, facts=FACTS) for place, uuid in enumerate(cards))
    samples = (_sample(time, cards, tell, chance, command) for time in range(seconds))
    found = recording(Inventory("580", devices=devices), *samples)
    player, history, tracker = Player(found), History(), VerdictTracker()
    for update in player.seek(0):
        history.note(update)
    kinds = []
    while not player.is_over:
        for update in player.advance(LOOK):
            history.note(update)
        verdict = tracker.note(history)[A]
        kinds.append((player.position, verdict.kind, verdict.severity))
    return [(kind, next(group)[0]) for kind, group in groupby(kinds, key=lambda one: one[1])]


def _sample(time, cards, tell, chance, command):
    use, power, memory, cpu, *more = tell(float(time), chance)
    card = {
        "utilization_fraction": min(1.0, max(0.0, use)),
        "memory_controller_fraction": use * 0.4,
        "memory_used_bytes": memory * GIB,
        "power_watts": LIMIT * power + chance.gauss(0, 4),
        "power_limit_watts": LIMIT,
        "sm_clock_mhz": 1755.0,
        "clock_reasons": 0.0 if use else 1.0,
        "temperature_celsius": 46.0,
        "encoder_fraction": 0.0,
        "decoder_fraction": 0.0,
        "pcie_transmit_bytes_per_s": 1e8 * use,
        "pcie_receive_bytes_per_s": 6e8 * use,
        "pcie_generation": 5.0 if use else 1.0,
        "pcie_width": 16.0,
    }
    for one in more:
        card |= one
    host = {"cpu_fraction": min(1.0, max(0.0, cpu + chance.gauss(0, 0.02))), "io_wait_fraction": 0.01}
    processes = tuple(_process(pid, uuid, memory, cpu, command) for pid, uuid in enumerate(cards) if memory > 1)
    return Sample(time, WALL + time, {uuid: plain(card) for uuid in cards}, plain(host), (cpu,) * 8, processes)


def _process(pid, uuid, memory, cpu, command):
    own = HostProcess("python", "ada", f"{command} --local-rank={pid}", WALL, min(0.8, cpu), GIB, is_own=True)
    return CardProcess(pid, uuid, "compute", Reading(memory * GIB), host=own)


def saturating(power):
    """Return five minutes of a training that is always at work, but for its evaluations; it begins after 40 seconds."""

    def tell(time, chance):
        if time < 40 or time >= 5 * MINUTE:
            return 0.0, 0.11, 0.5 if time < 40 else 61.0, 0.05
        rests = time % 40 >= 38.5
        return (0.0, 0.15, 61.0, 0.3) if rests else (chance.choice([0.99, 1.0]), power, 61.0, 0.3)

    return tell


def input_bound(time, chance):
    """Return a training whose loader cannot keep up: two seconds of work, three of waiting, a full processor."""
    works = time % 5 < 2
    return (chance.uniform(0.6, 1.0), 0.5, 30.0, 0.97) if works else (chance.uniform(0.0, 0.04), 0.14, 30.0, 0.99)


@pytest.mark.parametrize(("power", "kind"), [(0.56, VerdictKind.HEALTHY), (0.87, VerdictKind.COMPUTE_BOUND)])
def test_a_training_that_saturates(power, kind):
    found = replayed(saturating(power), 7 * MINUTE, (A, B))
    assert [one for one, _ in found] == [
        VerdictKind.TOO_EARLY,
        VerdictKind.IDLE,
        VerdictKind.TOO_EARLY,
        kind,
        VerdictKind.IDLE_HELD,
    ], found
    begun, ended = found[3][1], found[4][1]
    assert 60 <= begun <= 66, "20 seconds of work are enough"
    assert 5 * MINUTE + 30 <= ended <= 5 * MINUTE + 36, "a rest of half a minute is one"


def test_an_input_bound_training():
    found = replayed(input_bound, 6 * MINUTE)
    assert [kind for kind, _ in found] == [VerdictKind.TOO_EARLY, VerdictKind.INPUT_BOUND]
    assert found[1][1] <= 25


def test_a_loader_that_is_mended_and_one_that_breaks():
    def tell(time, chance):
        return saturating(0.87)(time, chance) if 150 <= time < 270 else input_bound(time, chance)

    found = replayed(tell, 7 * MINUTE)
    kinds = [kind for kind, _ in found]
    assert found[2][1] <= 190, "half a minute of full use is enough"
    assert kinds[1] is VerdictKind.INPUT_BOUND
    assert kinds[-1] is VerdictKind.INPUT_BOUND
    assert {VerdictKind.COMPUTE_BOUND, VerdictKind.HEALTHY} & set(kinds)
    assert set(kinds) <= {
        VerdictKind.TOO_EARLY,
        VerdictKind.INPUT_BOUND,
        VerdictKind.FLUCTUATING,
        VerdictKind.HEALTHY,
        VerdictKind.COMPUTE_BOUND,
    }


# What a false alarm would be raised on, minute after minute.
COUNTER_EXAMPLES = {
    "the power cap's bit at idle": (
        lambda time, chance: (0.0, 0.156, 0.4, 0.04, {"clock_reasons": 0x4, "pcie_generation": 1.0}),
        [VerdictKind.IDLE],
    ),
    "an encoder at work": (
        lambda time, chance: (0.08, 0.2, 0.9, 0.2, {"encoder_fraction": chance.uniform(0.6, 1.0)}),
        [VerdictKind.MEDIA],
    ),
    "all used, and no memory": (lambda time, chance: (1.0, 0.41, 0.0, 0.04), [VerdictKind.UNEXPLAINED]),
    "a healthy GPU whose memory bus is hardly used": (
        lambda time, chance: (1.0, 0.896, 40.0, 0.1, {"memory_controller_fraction": 0.07}),
        [VerdictKind.COMPUTE_BOUND],
    ),
    "an engine that took all memory": (
        lambda time, chance: (chance.uniform(0.9, 1.0), 0.6, 74.0, 0.2),
        [VerdictKind.HEALTHY],
    ),
    "a full processor beside an idle GPU": (lambda time, chance: (0.0, 0.1, 0.4, 0.99), [VerdictKind.IDLE]),
    "a moment of heat": (
        lambda time, chance: (0.98, 0.7, 40.0, 0.2, {"clock_reasons": 0x20 if time in (100, 101) else 0}),
        [VerdictKind.HEALTHY],
    ),
    "a desktop that draws now and then": (
        lambda time, chance: (0.35 if time % 45 < 1 else 0.01, 0.05, 0.7, 0.1),
        [VerdictKind.IDLE],
    ),
}


@pytest.mark.parametrize("name", COUNTER_EXAMPLES)
def test_no_false_alarm_in_four_minutes(name):
    tell, kinds = COUNTER_EXAMPLES[name]
    told = [kind for kind, _ in replayed(tell, 4 * MINUTE)]
    assert [kind for kind in told if kind is not VerdictKind.TOO_EARLY] == kinds


DEMO = Path(__file__).parents[3] / "resources" / "demo" / "training.gpurec"


def test_the_demo_tells_what_its_notes_say():
    player, history, tracker = Player(read_recording(DEMO)), History(), VerdictTracker()
    kinds = []
    while not player.is_over:
        for update in player.advance(5.0):
            history.note(update)
        kinds += [verdict.kind for verdict in list(tracker.note(history).values())[:1]]
    told = [kind for kind, _ in groupby(kinds) if kind not in (VerdictKind.TOO_EARLY, VerdictKind.UNDER_USED)]
    assert told == [
        VerdictKind.IDLE,
        VerdictKind.INPUT_BOUND,
        VerdictKind.COMPUTE_BOUND,
        VerdictKind.THERMAL,
        VerdictKind.NEAR_FULL,
        VerdictKind.COMPUTE_BOUND,
        VerdictKind.UNDER_FILLED,
        VerdictKind.IDLE_HELD,
        VerdictKind.COMPUTE_BOUND,
    ]
