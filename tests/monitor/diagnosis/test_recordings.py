"""Ninety recordings of simulated cards with the verdict that a person gave each: none is missed, none is invented.

A recording is described by what its card does at each time, with seeded noise; it is written to a file's bytes and
read back before it is diagnosed. The cards are simulated; `test_real_shapes` has what real ones recorded.
"""

from random import Random

import pytest
from diagnosis_kit import ORDINARY, ORDINARY_HOST, a_process
from recording_kit import WALL, plain, recording

from planner.monitor.diagnosis.diagnose import diagnose
from planner.monitor.diagnosis.verdict import VerdictKind as Kind
from planner.monitor.history import History
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.sample import HostProcess, Sample
from planner.units import GIB

pytestmark = pytest.mark.sweep

USE, POWER, MEMORY, BUS = "utilization_fraction", "power_watts", "memory_used_bytes", "memory_controller_fraction"
REASONS, CLOCK = "clock_reasons", "sm_clock_mhz"
SENT, RECEIVED, GENERATION, WIDTH = (
    "pcie_transmit_bytes_per_s",
    "pcie_receive_bytes_per_s",
    "pcie_generation",
    "pcie_width",
)
SM, TENSOR, DRAM = "sm_active_fraction", "tensor_active_fraction", "dram_active_fraction"
CPU, WAIT = "cpu_fraction", "io_wait_fraction"
CORES = 16
FACTS = plain({"memory_total_bytes": 80 * GIB, "sm_clock_most_mhz": 1980})
ANY = {POWER: 420.0, "power_limit_watts": 700.0, MEMORY: 40 * GIB, CLOCK: 1900.0}


def noisy(mean, spread):
    return lambda time, chance: max(0.0, chance.gauss(mean, spread))


def share(low, high):
    return lambda time, chance: chance.uniform(low, high)


def bursts(high, low, period, part):
    return lambda time, chance: chance.uniform(*high) if time % period < part * period else chance.uniform(*low)


def until(change, before, after):
    return lambda time, chance: at(before if time < change else after, time, chance)


def growing(start, per_hour, most=80):
    return lambda time, chance: min(start + per_hour * time / 3600, most) * GIB + chance.gauss(0, 0.02) * GIB


def settling(start, gain, seconds):
    return lambda time, chance: (start + gain * (1 - 2 ** (-time / seconds))) * GIB


def at(value, time, chance):
    return value(time, chance) if callable(value) else value


def job(uuid="GPU-0", memory=40, cpu=0.6, tree=None, kind="compute", pid=10, command="python train.py"):
    process = a_process(uuid, memory * GIB, pid, command, cpu, kind)
    host = HostProcess(**{**process.host._asdict(), "tree_cpu_fraction": cpu if tree is None else tree})
    return type(process)(pid, uuid, kind, process.memory_bytes, host=host)


def made(cards=None, host=None, processes=None, seconds=180, every=1.0, **card):
    """Return the recording of one card that does `card`, or of several `cards`, as read back from a file."""
    chance = Random(11)
    values = [{**ORDINARY, **ANY, **one} for one in (cards or [card])]
    devices = tuple(Device(f"GPU-{number}", "NVIDIA H100", number, facts=FACTS) for number in range(len(values)))
    machine = {**ORDINARY_HOST, **(host or {})}

    def told(one, time):
        now = {name: at(value, time, chance) for name, value in one.items()}
        return plain({name: value for name, value in now.items() if value is not None})

    samples = (
        Sample(
            step * every,
            WALL + step * every,
            {f"GPU-{number}": told(one, step * every) for number, one in enumerate(values)},
            told(machine, step * every),
            (0.3,) * CORES,
            None if processes is None else tuple(processes),
        )
        for step in range(int(seconds / every) + 1)
    )
    history = History()
    for update in recording(Inventory("580.82.07", devices=devices), *samples):
        history.note(update)
    return history


IDLE = {USE: 0.0, POWER: 72.0, MEMORY: 0.6 * GIB, BUS: 0.0}
HALF = {USE: share(0.3, 0.5), POWER: noisy(260, 10)}
SPIN = {USE: 1.0, BUS: 0.0, POWER: noisy(160, 4), RECEIVED: 1e5, SENT: 1e5}
WORK = {USE: share(0.97, 1.0), BUS: share(0.3, 0.5), POWER: noisy(440, 10)}
BUSY = {USE: share(0.97, 1.0), POWER: noisy(640, 8)}
HALF_OF_TIME = bursts((0.9, 1.0), (0.0, 0.05), 10, 0.5)
STALLS = bursts((0.4, 0.7), (0.0, 0.05), 10, 0.3)
GPM = {"graphics_active_fraction": 0.97, SM: share(0.85, 0.9), TENSOR: share(0.5, 0.6), DRAM: 0.3}
HOT = {REASONS: 0x20, CLOCK: 1200.0, "temperature_celsius": 88}
SLOWS = {"seconds": 1750, "every": 5.0}

FOUND = {
    "rows could not be remapped": (Kind.MEMORY_ERRORS, {"remapping_failed": 1.0}),
    "rows were remapped": (Kind.MEMORY_ERRORS, {"remapped_uncorrected": 2.0}),
    "at the target temperature": (Kind.THERMAL, HOT),
    "hot, its fans at a third": (Kind.THERMAL, {**HOT, "fan_fraction": 0.35}),
    "near the hardware's limit": (Kind.THERMAL, {REASONS: 0x40 | 0x8, CLOCK: 700.0}),
    "hot in every other second": (Kind.THERMAL, {REASONS: lambda time, _: 0x20 * (time % 2 < 1)}),
    "hot since a minute": (Kind.THERMAL, {REASONS: until(120, 0, 0x20)}),
    "slowed by its hardware": (Kind.THERMAL, {REASONS: 0x8, CLOCK: 600.0}),
    "the rack limits power": (Kind.POWER_BRAKE, {REASONS: 0x80 | 0x8, CLOCK: 700.0}),
    "the supply brakes now and then": (Kind.POWER_BRAKE, {REASONS: lambda time, _: 0x80 * (time % 6 < 1)}),
    "a leak of 100 MB a minute": (Kind.LEAK, {"seconds": 700, MEMORY: growing(30, 36)}),
    "a leak of 2 GiB an hour": (Kind.LEAK, {**SLOWS, MEMORY: growing(30, 2.0)}),
    "a leak of 4 GiB an hour in steps": (
        Kind.LEAK,
        {**SLOWS, MEMORY: lambda time, _: (30 + time // 120 * 0.133) * GIB},
    ),
    "a leak in bursts of work": (
        Kind.LEAK,
        {**SLOWS, USE: bursts((0.9, 1.0), (0.0, 0.02), 10, 0.5), MEMORY: growing(20, 3)},
    ),
    "one gibibyte is left": (Kind.NEAR_FULL, {MEMORY: 79 * GIB}),
    "full while it waits": (Kind.NEAR_FULL, {USE: until(150, 0.95, 0.0), MEMORY: until(150, 40 * GIB, 79.5 * GIB)}),
    "a loader on full cores": (Kind.INPUT_BOUND, {USE: STALLS, "host": {CPU: 0.97}, "processes": [job(tree=15.0)]}),
    "a loader on full cores, at the tree's root": (
        Kind.INPUT_BOUND,
        {**HALF, "host": {CPU: 0.95}, "processes": [job(cpu=14.0)]},
    ),
    "a loader whose processes nobody saw": (Kind.INPUT_BOUND, {USE: STALLS, "host": {CPU: 0.97}}),
    "slow disks": (Kind.INPUT_BOUND, {USE: STALLS, "host": {WAIT: 0.7}, "processes": [job()]}),
    "one core waits for disks": (Kind.INPUT_BOUND, {**HALF, "host": {WAIT: 0.12}, "processes": [job()]}),
    "a notebook that was left": (Kind.IDLE_HELD, {**IDLE, MEMORY: 40 * GIB, "processes": [job()]}),
    "a log of an idle GPU that holds 40 GiB": (Kind.IDLE_HELD, {**IDLE, MEMORY: 40 * GIB}),
    "a container that hides its neighbours": (Kind.IDLE_HELD, {**IDLE, MEMORY: 12 * GIB, "processes": []}),
    "one rank has less to do": (
        Kind.IMBALANCE,
        {"cards": [{**WORK, USE: 0.5}, WORK], "processes": [job(), job("GPU-1", pid=11)]},
    ),
    "one GPU has less to do, in a log": (Kind.IMBALANCE, {"cards": [{**WORK, USE: 0.5}, WORK, WORK, WORK]}),
    "a straggler in a log": (Kind.IMBALANCE, {"cards": [BUSY, *[{**WORK, POWER: noisy(300, 5)}] * 3]}),
    "waiting for a straggler in a log": (Kind.IMBALANCE, {"cards": [{**WORK, POWER: noisy(300, 5)}, BUSY]}),
    "a straggler whose processes are known": (
        Kind.IMBALANCE,
        {"cards": [BUSY, {**WORK, POWER: 300.0}], "processes": [job(), job("GPU-1", pid=11)]},
    ),
    "a collective hangs": (Kind.HANGING, {"cards": [SPIN] * 4}),
    "a collective hangs after work": (
        Kind.HANGING,
        {"cards": [{name: until(130, WORK.get(name, 1e9), SPIN[name]) for name in SPIN}] * 2},
    ),
    "a collective hangs, its ranks known": (
        Kind.HANGING,
        {"cards": [SPIN] * 2, "processes": [job(), job("GPU-1", pid=11)]},
    ),
    "copies fill the link": (Kind.TRANSFER_BOUND, {**HALF, GENERATION: 4, RECEIVED: noisy(25e9, 5e8)}),
    "copies fill four lanes": (Kind.TRANSFER_BOUND, {**HALF, GENERATION: 4, WIDTH: 4, SENT: noisy(6.5e9, 1e8)}),
    "copies over a link that the log does not tell": (
        Kind.TRANSFER_BOUND,
        {**HALF, GENERATION: None, WIDTH: None, RECEIVED: noisy(13e9, 5e8)},
    ),
    "copies beside idle multiprocessors": (Kind.TRANSFER_BOUND, {**HALF, **GPM, SM: 0.2, RECEIVED: noisy(3e9, 1e8)}),
    "one thread launches": (Kind.HOST_BOUND, {**HALF, "processes": [job(cpu=1.0)]}),
    "a loader without full cores": (Kind.FLUCTUATING, {USE: HALF_OF_TIME}),
    "a loader beside other people's full cores": (
        Kind.FLUCTUATING,
        {USE: HALF_OF_TIME, "host": {CPU: 0.98}, "processes": [job(tree=1.5)]},
    ),
    "evaluations every twenty seconds": (Kind.FLUCTUATING, {USE: bursts((0.0, 0.02), (0.95, 1.0), 20, 0.1)}),
    "a small batch": (Kind.UNDER_FILLED, {**HALF, MEMORY: 12 * GIB}),
    "the network is waited for": (Kind.SYNC_BOUND, {**HALF, MEMORY: 70 * GIB}),
    "kernels on a fifth of the GPU": (Kind.SYNC_BOUND, {**WORK, **GPM, SM: 0.2, TENSOR: 0.05}),
    "small kernels, always": (Kind.SYNC_BOUND, {**WORK, POWER: noisy(190, 5), BUS: 0.1}),
    "a limit far below the GPU's": (
        Kind.POWER_CAPPED,
        {**WORK, "power_limit_watts": 400.0, POWER: noisy(396, 2), REASONS: 0x4, CLOCK: 1300.0},
    ),
    "decoding token by token": (Kind.MEMORY_BOUND, {**WORK, BUS: share(0.75, 0.9)}),
    "memory traffic, as GPM tells it": (Kind.MEMORY_BOUND, {**WORK, **GPM, SM: 0.4, DRAM: 0.7}),
    # By a second author, who described what such runs do before seeing what the rules say of them.
    "two workers that load for a large GPU": (
        Kind.FLUCTUATING,
        {USE: bursts((0.9, 1.0), (0.0, 0.1), 5, 0.6), "host": {CPU: 0.2}, "processes": [job(cpu=0.4, tree=2.4)]},
    ),
    "samples over a network file system": (
        Kind.INPUT_BOUND,
        {USE: bursts((0.3, 0.6), (0.0, 0.1), 7, 0.6), "host": {CPU: 0.15, WAIT: 0.25}, "processes": [job(tree=1.2)]},
    ),
    "a notebook in which somebody thinks": (
        Kind.IDLE_HELD,
        {
            **IDLE,
            USE: lambda time, _: 0.03 * (time % 60 < 1),
            MEMORY: 22 * GIB,
            "processes": [job(memory=21, cpu=0.02)],
        },
    ),
    "a server that nobody asks": (
        Kind.IDLE_HELD,
        {**IDLE, MEMORY: 72 * GIB, POWER: 115.0, "processes": [job(memory=71, cpu=1.0, command="vllm serve")]},
    ),
    "a server that is asked now and then": (
        Kind.FLUCTUATING,
        {
            USE: bursts((0.85, 1.0), (0.0, 0.0), 20, 0.25),
            MEMORY: 72 * GIB,
            POWER: bursts((380, 450), (115, 120), 20, 0.25),
        },
    ),
    "a warm room at night": (
        Kind.THERMAL,
        {
            **BUSY,
            REASONS: lambda time, chance: 0x20 * (chance.random() < 0.6),
            CLOCK: share(1200, 1700),
            POWER: share(450, 520),
            "temperature_celsius": share(86, 90),
            "fan_fraction": 1.0,
        },
    ),
    "three ranks after the fourth has died": (
        Kind.HANGING,
        {"cards": [SPIN, SPIN, SPIN, {name: until(20, value, IDLE.get(name, 0.0)) for name, value in WORK.items()}]},
    ),
    "a limit that somebody lowered during the run": (
        Kind.POWER_CAPPED,
        {
            **BUSY,
            "power_limit_watts": until(60, 700.0, 350.0),
            POWER: until(60, noisy(640, 8), noisy(347, 2)),
            REASONS: until(60, 0, 0x4),
            CLOCK: until(60, 1950.0, 1150.0),
        },
    ),
    "an environment of reinforcement learning on one core": (
        Kind.HOST_BOUND,
        {USE: share(0.05, 0.25), POWER: 125.0, MEMORY: 3 * GIB, BUS: 0.03, "processes": [job(memory=2.4, cpu=1.0)]},
    ),
    "a small batch beside a desktop": (
        Kind.UNDER_FILLED,
        {
            **HALF,
            MEMORY: 12 * GIB,
            "processes": [job(memory=9), job(memory=1, kind="graphics", pid=11, command="shell")],
        },
    ),
    "a full GPU in MIG mode": (Kind.NEAR_FULL, {USE: None, BUS: None, MEMORY: 79.5 * GIB}),
}

NOTHING = {
    "a steady training": WORK,
    "a training at full power": BUSY,
    "tensor cores at work": {**WORK, **GPM},
    "all multiprocessors at work": {**WORK, **GPM, TENSOR: 0.02},
    "an idle GPU": IDLE,
    "an idle GPU with a desktop": {**IDLE, MEMORY: 3 * GIB, "processes": [job(memory=2.6, kind="graphics")]},
    "an idle GPU at the power cap's bit": {**IDLE, REASONS: 0x4},
    "an idle GPU beside a full processor": {**IDLE, "host": {CPU: 0.99}},
    "an idle GPU beside slow disks": {**IDLE, "host": {WAIT: 0.8}},
    "an idle GPU at PCIe generation 1": {**IDLE, GENERATION: 1},
    "an idle GPU after a run": {USE: until(100, 1.0, 0.0), MEMORY: until(100, 40 * GIB, 0.6 * GIB)},
    "a desktop that draws now and then": {**IDLE, USE: bursts((0.3, 0.4), (0.0, 0.02), 45, 0.02)},
    "a moment of heat": {REASONS: lambda time, _: 0x20 if 90 <= time < 92 else 0},
    "heat that ended a minute ago": {REASONS: until(110, 0x20, 0)},
    "a moment of the power brake": {REASONS: lambda time, _: 0x80 if time == 100 else 0},
    "the power cap's bit below the limit": {**WORK, REASONS: 0x4},
    "at its limit at full clock": {**BUSY, POWER: 695.0, REASONS: 0x4, CLOCK: 1960.0},
    "memory that is loaded": {"seconds": 700, MEMORY: until(300, 4 * GIB, 60 * GIB)},
    "memory that is loaded in steps": {"seconds": 700, MEMORY: lambda time, _: min(4 + time // 10, 40) * GIB},
    "a cache that fills and stops": {**SLOWS, MEMORY: settling(30, 3, 240)},
    "an allocator that grows by ever less": {**SLOWS, MEMORY: settling(30, 2, 400)},
    "lengths that vary": {**SLOWS, MEMORY: lambda time, chance: (40 + chance.gauss(0, 2)) * GIB},
    "memory that breathes": {**SLOWS, MEMORY: lambda time, _: (40 + 5 * (time % 600) / 600) * GIB},
    "half a gibibyte more in half an hour": {**SLOWS, MEMORY: growing(30, 0.8)},
    "an engine that took all memory but 6 GiB": {**WORK, MEMORY: 74 * GIB},
    "a full processor beside a busy GPU": {**WORK, "host": {CPU: 0.99}, "processes": [job(tree=15.0)]},
    "other people's full cores beside a busy GPU": {**WORK, "host": {CPU: 0.99}, "processes": [job()]},
    "slow disks beside a busy GPU": {**WORK, "host": {WAIT: 0.3}},
    "one full thread beside a busy GPU": {**WORK, "processes": [job(cpu=1.0)]},
    "full copies beside a busy GPU": {**WORK, GENERATION: None, WIDTH: None, RECEIVED: 14e9},
    "half a link beside a busy GPU": {**WORK, GENERATION: 5, RECEIVED: 14e9},
    "an encoder at work": {**IDLE, USE: 0.08, "encoder_fraction": share(0.6, 1.0)},
    "a decoder at work": {**IDLE, USE: 0.02, "decoder_fraction": 0.3},
    "two equal ranks": {"cards": [WORK, WORK]},
    "a rank a little behind": {"cards": [{**WORK, USE: 0.9}, WORK]},
    "two jobs of unlike memory": {"cards": [{**WORK, POWER: 340.0}, {**BUSY, MEMORY: 55 * GIB}]},
    "two jobs that began apart": {
        "cards": [
            {**WORK, POWER: 340.0, MEMORY: until(60, 0.6 * GIB, 40 * GIB)},
            {**BUSY, MEMORY: until(10, 0.6 * GIB, 40 * GIB)},
        ],
    },
    "two commands of one user": {
        "cards": [{**WORK, POWER: 340.0}, BUSY],
        "processes": [job(), job("GPU-1", pid=11, command="python other.py")],
    },
    "small kernels on one GPU of two": {"cards": [WORK, {**SPIN, MEMORY: 9 * GIB}]},
    "a group that decodes at low power": {"cards": [{**WORK, POWER: noisy(300, 5), BUS: 0.5}] * 2},
    "a pause of twenty seconds": {USE: lambda time, _: 0.0 if 60 < time < 80 else 0.98},
    "a training that begins": {**WORK, "seconds": 15},
    "a GPU in MIG mode": {USE: None, BUS: None},
    # By the second author.
    "a checkpoint that is being written": {
        **WORK,
        USE: until(155, 0.98, 0.0),
        POWER: until(155, 440.0, 120.0),
        "host": {WAIT: until(155, 0.01, 0.3)},
        "processes": [job(cpu=1.0)],
    },
    "a checkpoint of ten seconds every minute and a half": {**WORK, USE: bursts((0.0, 0.0), (0.97, 1.0), 90, 0.11)},
    "gradients that are summed up over eight passes": {**WORK, POWER: bursts((350, 400), (600, 650), 8, 0.25)},
    "ranks that wait for a short checkpoint of the first": {
        "cards": [
            {name: until(165, WORK[name], SPIN[name]) for name in WORK},
            {name: until(165, WORK[name], IDLE[name]) for name in WORK},
        ],
    },
    "sharded ranks that exchange in turns": {"cards": [{**WORK, POWER: bursts((320, 380), (600, 650), 6, 0.4)}] * 4},
    "stages of a pipeline with a bubble": {"cards": [{**WORK, USE: share(0.78, 0.92)}] * 2},
    "a server with many requests": {**WORK, BUS: share(0.5, 0.62), POWER: noisy(480, 15), MEMORY: 72 * GIB},
    "a compiler that ran before the first step": {
        **WORK,
        USE: until(110, 0.0, 0.98),
        POWER: until(110, 120.0, 440.0),
        MEMORY: until(110, 12 * GIB, 40 * GIB),
        "processes": [job(cpu=1.0)],
    },
    "a browser and a compositor": {
        USE: share(0.05, 0.3),
        POWER: share(60, 110),
        MEMORY: 2.4 * GIB,
        BUS: share(0.02, 0.1),
        "processes": [job(memory=1.2, cpu=0.4, kind="graphics", command="browser")],
    },
    "a daemon that holds fifty megabytes": {**IDLE, "processes": [job(memory=0.05, cpu=0.0, command="agent")]},
    "one job after another": {
        **WORK,
        USE: lambda time, _: 0.0 if 60 <= time < 75 else 0.98,
        MEMORY: lambda time, _: (55 if time < 60 else 0.6 if time < 75 else 30) * GIB,
    },
    "an evaluation that needed two gibibytes more": {**SLOWS, MEMORY: until(900, 40 * GIB, 42 * GIB)},
    "rows that were corrected": {**WORK, "remapped_corrected": 3.0, "ecc_corrected": 12.0},
    "a training on videos that the GPU decodes": {**WORK, "decoder_fraction": share(0.3, 0.6)},
}


@pytest.mark.parametrize("name", FOUND)
def test_a_recording_with_a_problem_has_its_verdict(name):
    kind, described = FOUND[name]
    verdict = diagnose(made(**described), "GPU-0")
    assert verdict.kind is kind, verdict
    assert verdict.severity != "good"
    assert verdict.advice


@pytest.mark.parametrize("name", NOTHING)
def test_a_recording_without_a_problem_has_no_finding(name):
    verdict = diagnose(made(**NOTHING[name]), "GPU-0")
    quiet = {Kind.HEALTHY, Kind.COMPUTE_BOUND, Kind.MEDIA, Kind.IDLE, Kind.TOO_EARLY, Kind.UNKNOWN}
    assert verdict.kind in quiet, verdict
    assert verdict.also == ()


def test_the_table_is_as_large_as_it_says():
    assert len(FOUND) >= 40
    assert len(NOTHING) >= 40


@pytest.mark.parametrize("name", ["at the target temperature", "the rack limits power"])
@pytest.mark.parametrize("work", [{BUS: 0.8}, {POWER: 190.0}, {POWER: 650.0}])
def test_a_card_that_is_slowed_has_no_other_bottleneck_beside_it(name, work):
    kind, described = FOUND[name]
    verdict = diagnose(made(**{**WORK, **described, **work}), "GPU-0")
    assert (verdict.kind, verdict.also) == (kind, ())


@pytest.mark.parametrize(("tensor", "is_advised"), [(None, True), (0.02, True), (0.6, False)])
def test_narrow_types_are_advised_only_where_tensor_cores_rest(tensor, is_advised):
    told = {} if tensor is None else {**GPM, TENSOR: tensor}
    verdict = diagnose(made(**BUSY, **told), "GPU-0")
    assert verdict.kind is Kind.COMPUTE_BOUND
    assert any("bf16" in remedy for remedy in verdict.advice) is is_advised
