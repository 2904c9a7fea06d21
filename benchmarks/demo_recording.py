"""Make the demo of the Monitor tab: `python benchmarks/demo_recording.py resources/demo/training.gpurec`.

A quarter of an hour of two invented cards that train, with one sample per second. Each run writes the same file.
"""

import argparse
import math
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from planner import ModelChoice, Plan, Training
from planner.monitor.readings.events import Timestamp
from planner.monitor.readings.faults import Fault, FaultKind
from planner.monitor.readings.inventory import Device, Inventory
from planner.monitor.readings.reading import Cause, Reading, missing
from planner.monitor.readings.sample import CardProcess, HostProcess, Sample, SamplingCost
from planner.monitor.recording.files import RecordingWriter
from planner.monitor.recording.records import RecordedMark, RecordedPlan, RecordingEnd, RecordingHeader
from planner.units import GIB

# A Monday morning; any would do.
BEGAN_WALL: Final = 1_767_600_000.0
BEGAN: Final = 1000.0
SLOW: Final = 4
PROCESSES: Final = 3
TOTAL: Final = 24 * GIB
LIMIT_WATTS: Final = 450.0
PIDS: Final = (4711, 4712)


class Act(NamedTuple):
    """A part of the story: how long it lasts, what is noted at its beginning, and how the cards fare.

    `use`, `power` and `cpu` are shares, `swing` is how far the use falls every few seconds, `memory` is GiB.
    """

    seconds: int
    note: str
    use: float
    power: float
    memory: float
    cpu: float
    swing: float = 0.0
    bits: int = 0
    celsius: float = 62.0
    trains: bool = True


STORY: Final = (
    Act(60, "nothing runs", 0.0, 0.06, 0.4, 0.04, celsius=36, bits=0x1, trains=False),
    Act(150, "training starts: the data loader cannot keep up", 0.42, 0.45, 12.3, 0.96, swing=0.25, celsius=58),
    Act(150, "eight loader workers instead of two", 0.97, 0.93, 12.3, 0.46, celsius=71),
    Act(120, "the room gets warm: the driver slows both GPUs", 0.97, 0.74, 12.3, 0.45, celsius=84, bits=0x20),
    Act(150, "twice the batch", 0.98, 0.97, 22.9, 0.47, celsius=74),
    Act(120, "evaluation in small batches", 0.6, 0.5, 12.3, 0.4, swing=0.6, celsius=63),
    Act(90, "the script waits at a breakpoint", 0.0, 0.12, 12.3, 0.05, celsius=48, bits=0x1),
    Act(60, "GPU 1 falls off the bus", 0.95, 0.9, 12.3, 0.4, celsius=70),
)
LOST_AFTER: Final = 30
# What the script trains until the batch is doubled; the memory of the story is a little less than this plan predicts.
PLAN: Final = Plan(
    model=ModelChoice(id="Qwen/Qwen2.5-0.5B"),
    workload=Training(method="lora", micro_batch=10, sequence_length=512, activation_checkpointing="full"),
    gpu="rtx-4090",
    count=2,
)


def main() -> None:
    """Write the demo into the file that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    file = parser.parse_args().file
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("wb") as stream:
        write(RecordingWriter(stream))
    print(f"{file}: {file.stat().st_size:,} bytes")


def write(writer: RecordingWriter) -> None:
    """Write all acts of the story in order."""
    chance, second = Random(11), 0
    writer.put(RecordingHeader(1, "demo of invented readings", BEGAN_WALL), moment(0))
    writer.put(Inventory("580.65.06", "13.580.65.06", "13.0", tuple(map(device, range(2)))), moment(0))
    writer.put(RecordedPlan(PLAN.model_dump(mode="json")), moment(0))
    for act in STORY:
        writer.put(RecordedMark(*moment(second), act.note), moment(second))
        for within in range(act.seconds):
            if act is STORY[-1] and within == LOST_AFTER:
                writer.put(lost_inventory(second), moment(second))
            cards = (0,) if act is STORY[-1] and within >= LOST_AFTER else (0, 1)
            writer.put(sample(act, cards, second, chance), moment(second))
            second += 1
        writer.flush()
    writer.put(RecordingEnd(moment(second).wall_seconds), moment(second))
    writer.end()


def moment(second: int) -> Timestamp:
    """Return a second of the story by both clocks."""
    return Timestamp(BEGAN + second, BEGAN_WALL + second)


def uuid(number: int) -> str:
    """Return the UUID of a card, which shows that the card is invented."""
    return f"GPU-de300000-0000-0000-0000-00000000000{number}"


def device(number: int) -> Device:
    """Return the description of a card."""
    facts = {
        "memory_total_bytes": TOTAL,
        "power_default_watts": LIMIT_WATTS,
        "sm_clock_most_mhz": 2520,
        "slowdown_celsius": 90,
        "shutdown_celsius": 95,
        "target_celsius": 83,
        "pcie_generation_most": 4,
        "pcie_width_most": 16,
        "compute_capability": 8.9,
    }
    known = {name: Reading(float(value)) for name, value in facts.items()}
    return Device(uuid(number), "NVIDIA GeForce RTX 4090", number, f"00000000:0{number + 1}:00.0", facts=known)


def lost_inventory(second: int) -> Inventory:
    """Return the inventory after the second card was lost."""
    gone = device(1)
    lost = Device(gone.uuid, gone.name, gone.index, gone.pci_bus_id, state="lost", facts=gone.facts)
    fault = Fault(FaultKind.LOST, moment(second).wall_seconds, gone.uuid)
    return Inventory("580.65.06", "13.580.65.06", "13.0", (device(0), lost), (fault,))


def sample(act: Act, cards: tuple[int, ...], second: int, chance: Random) -> Sample:
    """Return the sample at a second of the story."""
    at = moment(second)
    return Sample(
        at.monotonic_seconds,
        at.wall_seconds,
        {uuid(number): dict(readings(act, number, second, chance)) for number in cards},
        {name: Reading(value) for name, value in host(act, chance).items()},
        tuple(round(min(1.0, max(0.0, act.cpu + chance.gauss(0, 0.04))), 3) for _ in range(8)),
        processes(act, cards, second) if second % PROCESSES == 0 else None,
        cost=SamplingCost(0.0021, 46, 0.0012, 180, 0.003, 20 << 20),
    )


def readings(act: Act, number: int, second: int, chance: Random) -> Iterator[tuple[str, Reading]]:
    """Yield the readings of a card, with small random changes and with swings during uneven work."""
    swing = act.swing * (0.5 - 0.5 * math.cos(second * math.tau / 9))
    use = min(1.0, max(0.0, act.use - swing + chance.gauss(0, 0.015))) if act.use else 0.0
    power = LIMIT_WATTS * max(0.05, act.power - swing * 0.6 + chance.gauss(0, 0.01)) * (1 - 0.01 * number)
    used = int((act.memory + 0.15 * number) * GIB)
    fast = {
        "utilization_fraction": round(use, 2),
        "memory_controller_fraction": round(use * 0.55, 2),
        "memory_used_bytes": used,
        "memory_free_bytes": TOTAL - used,
        "power_watts": round(power, 1),
        "temperature_celsius": round(act.celsius + number + chance.gauss(0, 0.5)),
        "sm_clock_mhz": 210 if not act.use else 1980 if act.bits & 0x20 else 2520 - 15 * chance.randrange(3),
        "memory_clock_mhz": 405 if not act.use else 10501,
        "clock_reasons": act.bits,
        "encoder_fraction": 0,
        "decoder_fraction": 0,
    }
    slow = {
        "fan_fraction": round(min(1.0, (act.celsius - 25) / 60), 2),
        "power_limit_watts": LIMIT_WATTS,
        "performance_state": 2 if act.use else 8,
        "pcie_transmit_bytes_per_s": round(2e8 * use),
        "pcie_receive_bytes_per_s": round(9e8 * use),
        "pcie_generation": 4 if act.use else 1,
        "pcie_width": 16,
    }
    yield from ((name, Reading(float(value))) for name, value in fast.items())
    if second % SLOW == 0:
        yield from ((name, Reading(float(value))) for name, value in slow.items())
        yield "sm_active_fraction", missing(Cause.NOT_SUPPORTED)


def host(act: Act, chance: Random) -> dict[str, float]:
    """Return the readings of the host machine."""
    return {
        "cpu_fraction": round(min(1.0, max(0.0, act.cpu + chance.gauss(0, 0.02))), 3),
        "io_wait_fraction": round(abs(chance.gauss(0, 0.004)), 3),
        "memory_used_bytes": float(int((9 + 22 * act.trains) * GIB)),
        "memory_available_bytes": float(int((55 - 22 * act.trains) * GIB)),
        "disk_read_bytes_per_s": round(2.4e8 * act.use),
        "disk_write_bytes_per_s": round(1.5e6 * chance.random()),
        "network_receive_bytes_per_s": round(8e4 * chance.random()),
        "network_transmit_bytes_per_s": round(5e4 * chance.random()),
    }


def processes(act: Act, cards: tuple[int, ...], second: int) -> tuple[CardProcess, ...]:
    """Return the processes on the cards."""
    if not act.trains:
        return ()
    return tuple(process(act, number, second) for number in cards)


def process(act: Act, number: int, second: int) -> CardProcess:
    """Return the training process of a card."""
    command = f"python train.py --local-rank={number} --batch-size 10"
    started = moment(STORY[0].seconds).wall_seconds
    cpu = min(1.0, act.cpu + 0.02 * (second % 3))
    owner = HostProcess("python", "ada", command, started, cpu, 9 * GIB, is_own=True)
    return CardProcess(
        PIDS[number],
        uuid(number),
        "compute",
        Reading(float(int((act.memory - 0.4) * GIB))),
        Reading(round(act.use, 2)),
        Reading(round(act.use * 0.55, 2)),
        owner,
    )


if __name__ == "__main__":
    main()
