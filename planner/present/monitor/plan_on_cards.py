"""The plan beside the cards of a machine: a sentence, and what to draw of it on which cards."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.hardware.gpu import Gpu
from planner.memory.result import TermName
from planner.monitor.readings.inventory import Device
from planner.monitor.readings.latest import Latest
from planner.plan.evaluate import Evaluation
from planner.plan.measured import BesideMeasured, Expected, beside, expected_of, matching_gpus, measured_of
from planner.plan.plan import Plan
from planner.plan.solve import Solved
from planner.present import format as fmt
from planner.present.memory.solved import solved_words
from planner.present.names import in_sentence


def measured_sentence(found: BesideMeasured) -> str:
    """Return `Predicted 17.2 GiB, measured 17.9 GiB: +4 %, mostly the device context and the allocator.`.

    Where several processes compute on the card, it says which of them was measured.
    """
    expected = found.expected
    sizes = f"Predicted {fmt.size(expected.memory_bytes)}, measured {fmt.size(found.measured_bytes)}"
    return f"{sizes}{_where(found)}: {_difference(found.difference_fraction)}{_why(found)}."


def fill_sentence(plan: Plan, solved: tuple[Solved, Solved] | None) -> str:
    """Return by how much the batch can be raised: `The batch can go from 4 to 6, up to 8 tight.`; else why not."""
    if solved is None:
        return ""
    surely, barely = solved
    now = plan.workload.micro_batch if plan.workload.task == "training" else plan.workload.batch
    largest = surely.value if isinstance(surely.value, int) else 0
    most = barely.value if isinstance(barely.value, int) else 0
    if max(largest, most) <= now:
        return f"A larger batch than {fmt.integer(now)} does not fit."
    return f"The batch can go from {fmt.integer(now)} to {solved_words(surely, barely)}."


def _where(found: BesideMeasured) -> str:
    measured = found.measured
    if found.basis == "card":
        return " on the whole card"
    is_one_of_several = measured.pid is not None and measured.process_count > 1
    return f" in process {measured.pid}, the largest of {measured.process_count}" if is_one_of_several else ""


def _difference(fraction: float) -> str:
    if abs(fraction) < 0.005:
        return f"within 1{fmt.THIN}%"
    return f"{'+' if fraction > 0 else '−'}{fmt.percent(abs(fraction))}"


def _why(found: BesideMeasured) -> str:
    if found.reason == "before-peak":
        return "; less than the estimate's range, so the peak may be yet to come"
    if found.reason == "other-processes":
        return "; more than the estimate's range, part of which other processes hold"
    if found.reason == "engine-fills-card":
        return f"; {found.measured.engine} takes most of a card at its start, which this plan leaves out"
    likeliest = "" if found.likeliest is None else f", mostly {_term(found.likeliest)}"
    if found.reason == "more-than-expected":
        return "; more than the estimate's range, so what runs may not be what was planned"
    return likeliest if abs(found.difference_fraction) >= 0.005 else ""


def _term(name: TermName) -> str:
    """Return a term's name within a sentence; the overhead's range is that of the context and of the allocator."""
    if name == "framework_overhead":
        return "the device context and the allocator"
    return in_sentence(name)


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
