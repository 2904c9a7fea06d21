"""The plan beside the cards of a machine: a sentence, and what to draw of it on which cards."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest
from planner.plan.evaluate import Evaluation
from planner.plan.measured import Expected, beside, expected_of, matching_gpus, measured_of
from planner.present import format as fmt
from planner.present.measured import measured_sentence


@dataclass(frozen=True, slots=True)
class BesidePlan:
    """What the plan says of the cards that it is for, by UUID; no cards where it is for others."""

    sentence: str = ""
    expected: Mapping[str, Expected] = field(default_factory=dict)


class Offer(NamedTuple):
    """A record of the catalog that cards of this machine can be, and how many of them there are."""

    gpu: Gpu
    cards: int


Matches = Mapping[str, tuple[Gpu, ...]]
"""What cards can be in the catalog, by UUID."""


def matches_of(hardware: HardwareCatalog, devices: tuple[Device, ...]) -> Matches:
    """Return what each card can be; to look a name up takes the better part of a millisecond."""
    return {device.uuid: matching_gpus(hardware, device) for device in devices}


def beside_plan(evaluation: Evaluation, matches: Matches, latest: Latest) -> BesidePlan:
    """Return how the plan stands beside what is measured now."""
    devices = [device for device in latest.inventory.devices if device.state == "running"]
    if not devices or evaluation.gpu is None:
        return BesidePlan()
    suited = [device for device in devices if evaluation.gpu in matches.get(device.uuid, ())]
    if not suited:
        return BesidePlan(f"The plan is for {evaluation.gpu.name}, which is none of the cards here.")
    used = suited[: max(1, evaluation.plan.count)]
    expected = expected_of(evaluation)
    return BesidePlan(_sentence(evaluation, _fullest(used, latest), latest), {device.uuid: expected for device in used})


def offers(matches: Matches) -> tuple[Offer, ...]:
    """Return what can be planned for on this machine: each kind of card once, and as many as there are."""
    gpus = {gpu.id: gpu for found in matches.values() for gpu in found}
    counts = Counter(gpu.id for found in matches.values() for gpu in found)
    several = (Offer(gpus[name], count) for name, count in counts.items() if count > 1)
    return (*(Offer(gpu, 1) for gpu in gpus.values()), *several)


def _fullest(devices: list[Device], latest: Latest) -> Device:
    return max(devices, key=lambda device: latest.reading(device.uuid, "memory_used_bytes").value or 0.0)


def _sentence(evaluation: Evaluation, device: Device, latest: Latest) -> str:
    processes = tuple(process for process in latest.processes if process.uuid == device.uuid)
    used = latest.reading(device.uuid, "memory_used_bytes").value
    if used is None or not any(process.kind != "graphics" for process in processes):
        predicted = fmt.size(evaluation.memory.total_bytes)
        return f"The plan predicts {predicted} on card {device.index}; nothing computes there yet."
    sentence = measured_sentence(beside(evaluation, measured_of(processes, used)))
    return f"Card {device.index}: {sentence[:1].lower()}{sentence[1:]}"
