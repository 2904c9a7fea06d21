"""The plan compared with the cards of this machine: a sentence, and the expected values to plot for each card."""

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
from planner.plan.measured import (
    CardPrediction,
    PredictionCheck,
    check_prediction,
    matching_gpus,
    measure_card,
    predict_card,
)
from planner.plan.plan import Plan
from planner.plan.solve import SolveResult
from planner.present import format as fmt
from planner.present.memory.solved import solved_text
from planner.present.names import term_in_sentence


def measured_sentence(found: PredictionCheck) -> str:
    """Return `Predicted 17.2 GiB, measured 17.9 GiB: +4 %, mostly the device context and the allocator.`.

    If several processes compute on the card, it names the measured one.
    """
    expected = found.expected
    sizes = f"Predicted {fmt.size(expected.memory_bytes)}, measured {fmt.size(found.measured_bytes)}"
    return (
        f"{sizes}{_measured_place_phrase(found)}: {_difference_text(found.difference_fraction)}{_reason_phrase(found)}."
    )


def fill_sentence(plan: Plan, solved: tuple[SolveResult, SolveResult] | None) -> str:
    """Return how far the batch can be raised: `The batch can go from 4 to 6, up to 8 tight.`; or that it cannot."""
    if solved is None:
        return ""
    surely, barely = solved
    now = plan.workload.micro_batch if plan.workload.task == "training" else plan.workload.batch
    largest = surely.value if isinstance(surely.value, int) else 0
    most = barely.value if isinstance(barely.value, int) else 0
    if max(largest, most) <= now:
        return f"A larger batch than {fmt.integer(now)} does not fit."
    return f"The batch can go from {fmt.integer(now)} to {solved_text(surely, barely)}."


def _measured_place_phrase(found: PredictionCheck) -> str:
    measured = found.measured
    if found.basis == "card":
        return " on the whole card"
    is_one_of_several = measured.pid is not None and measured.process_count > 1
    return f" in process {measured.pid}, the largest of {measured.process_count}" if is_one_of_several else ""


def _difference_text(fraction: float) -> str:
    if abs(fraction) < 0.005:
        return f"within 1{fmt.THIN}%"
    return f"{'+' if fraction > 0 else '−'}{fmt.percent(abs(fraction))}"


def _reason_phrase(found: PredictionCheck) -> str:
    if found.reason == "before-peak":
        return "; below the estimate's range, so the peak may not have been reached yet"
    if found.reason == "other-processes":
        return "; above the estimate's range, in part because of other processes"
    if found.reason == "engine-fills-card":
        return f"; {found.measured.engine} reserves most of the card when it starts, which this plan does not include"
    likeliest = "" if found.likeliest is None else f", mostly {_term_phrase(found.likeliest)}"
    if found.reason == "more-than-expected":
        return "; above the estimate's range, so the running job may not be the planned one"
    return likeliest if abs(found.difference_fraction) >= 0.005 else ""


def _term_phrase(name: TermName) -> str:
    """Return a term's name within a sentence; the overhead is named by its uncertain parts."""
    if name == "framework_overhead":
        return "the device context and the allocator"
    return term_in_sentence(name)


@dataclass(frozen=True, slots=True)
class PlanOnCards:
    """A sentence on the plan and its expected values by card UUID; empty if the plan is for other cards."""

    sentence: str = ""
    expected: Mapping[str, CardPrediction] = field(default_factory=dict)


class PlannableCards(NamedTuple):
    """A card of the catalog that this machine has, and how many of it."""

    gpu: Gpu
    cards: int


CardMatches = Mapping[str, tuple[Gpu, ...]]
"""The matching cards of the catalog, by device UUID."""


def match_cards(hardware: HardwareCatalog, devices: tuple[Device, ...]) -> CardMatches:
    """Match each device with the catalog; callers keep the result, since each name takes almost a millisecond."""
    return {device.uuid: matching_gpus(hardware, device) for device in devices}


def compare_plan_with_cards(evaluation: Evaluation, matches: CardMatches, latest: Latest) -> PlanOnCards:
    """Compare the plan with the current measurements."""
    devices = [device for device in latest.inventory.devices if device.state == "running"]
    if not devices or evaluation.gpu is None:
        return PlanOnCards()
    suited = [device for device in devices if evaluation.gpu in matches.get(device.uuid, ())]
    if not suited:
        return PlanOnCards(f"The plan is for {evaluation.gpu.name}, which is not in this machine.")
    used = suited[: max(1, evaluation.plan.count)]
    expected = predict_card(evaluation)
    return PlanOnCards(
        _sentence(evaluation, _fullest(used, latest), latest), {device.uuid: expected for device in used}
    )


def plannable_cards(matches: CardMatches) -> tuple[PlannableCards, ...]:
    """Return the cards of this machine to plan for: one of each kind, and all of each kind."""
    gpus = {gpu.id: gpu for found in matches.values() for gpu in found}
    counts = Counter(gpu.id for found in matches.values() for gpu in found)
    several = (PlannableCards(gpus[name], count) for name, count in counts.items() if count > 1)
    return (*(PlannableCards(gpu, 1) for gpu in gpus.values()), *several)


def _fullest(devices: list[Device], latest: Latest) -> Device:
    return max(devices, key=lambda device: latest.reading(device.uuid, "memory_used_bytes").value or 0.0)


def _sentence(evaluation: Evaluation, device: Device, latest: Latest) -> str:
    processes = tuple(process for process in latest.processes if process.uuid == device.uuid)
    used = latest.reading(device.uuid, "memory_used_bytes").value
    if used is None or not any(process.kind != "graphics" for process in processes):
        predicted = fmt.size(evaluation.memory.total_bytes)
        return f"The plan predicts {predicted} on card {device.index}; no process computes there yet."
    sentence = measured_sentence(check_prediction(evaluation, measure_card(processes, used)))
    return f"Card {device.index}: {sentence[:1].lower()}{sentence[1:]}"
