"""The plan compared with the monitored cards: a sentence, and the predictions to plot for each card."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

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
from planner.units import GIB

_HELD_BYTES: Final = GIB
"""Memory in use beyond which some process must compute on the card; a desktop holds less."""


def measured_sentence(check: PredictionCheck) -> str:
    """Return a check as a sentence: `Predicted 17.2 GiB, measured 17.9 GiB (+4 %), probably because of activations.`.

    If several processes compute on the card, the sentence names the measured process.
    """
    expected = check.expected
    sizes = f"Predicted {fmt.size(expected.memory_bytes)}, measured {fmt.size(check.measured_bytes)}"
    difference = _difference_text(check.difference_fraction)
    return f"{sizes}{_measured_place_phrase(check)} ({difference}){_reason_phrase(check)}."


def largest_batch_sentence(plan: Plan, solved: tuple[SolveResult, SolveResult] | None) -> str:
    """Return how far the batch size can grow, as a sentence: `The batch size can go from 4 to 6, up to 8 tight.`."""
    if solved is None:
        return ""
    fits_surely, fits_barely = solved
    now = plan.workload.micro_batch if plan.workload.task == "training" else plan.workload.batch
    largest = fits_surely.value if isinstance(fits_surely.value, int) else 0
    most = fits_barely.value if isinstance(fits_barely.value, int) else 0
    if max(largest, most) <= now:
        return f"A batch size above {fmt.integer(now)} does not fit."
    return f"The batch size can go from {fmt.integer(now)} to {solved_text(fits_surely, fits_barely)}."


def _measured_place_phrase(check: PredictionCheck) -> str:
    """Return where the memory was measured: on the whole card, or in which of several processes."""
    measured = check.measured
    if check.basis == "card":
        return " on the whole GPU"
    is_one_of_several = measured.pid is not None and measured.process_count > 1
    return f" in process {measured.pid}, the largest of {measured.process_count}" if is_one_of_several else ""


def _difference_text(fraction: float) -> str:
    if abs(fraction) < 0.005:
        return f"within 1{fmt.THIN}%"
    return f"{'+' if fraction > 0 else '−'}{fmt.percent(abs(fraction))}"


def _reason_phrase(check: PredictionCheck) -> str:
    """Return the likeliest reason for a difference between prediction and measurement, as the end of a sentence."""
    if check.reason == "before-peak":
        return "; below the estimate's range, so the peak may not have been reached yet"
    if check.reason == "other-processes":
        return "; above the estimate's range, in part because of other processes"
    if check.reason == "engine-fills-card":
        return f"; {check.measured.engine} reserves most of the GPU when it starts, which this plan does not include"
    likeliest = "" if check.likeliest is None else f", probably because of {_term_phrase(check.likeliest)}"
    if check.reason == "more-than-expected":
        return "; above the estimate's range, so the running job may not be the planned one"
    return likeliest if abs(check.difference_fraction) >= 0.005 else ""


def _term_phrase(name: TermName) -> str:
    """Return a memory term's name for use within a sentence; the framework overhead is named by its uncertain parts."""
    if name == "framework_overhead":
        return "the GPU context and the allocator"
    if name == "communication":
        return "communication buffers"
    return term_in_sentence(name)


@dataclass(frozen=True, slots=True)
class PlanOnCards:
    """The plan on the monitored cards: a sentence, and predictions by UUID, none if the plan is for other cards."""

    sentence: str = ""
    expected: Mapping[str, CardPrediction] = field(default_factory=dict)


class PlannableCards(NamedTuple):
    """A card of the catalog that is monitored, and the number of such cards to plan for."""

    gpu: Gpu
    cards: int


CardMatches = Mapping[str, tuple[Gpu, ...]]
"""Cards of the catalog that match a device by name and memory, by device UUID."""


def match_cards(hardware: HardwareCatalog, devices: tuple[Device, ...]) -> CardMatches:
    """Return the catalog's cards that match each device; callers keep the result, since a match takes a millisecond."""
    return {device.uuid: matching_gpus(hardware, device) for device in devices}


def compare_plan_with_cards(evaluation: Evaluation, matches: CardMatches, latest: Latest) -> PlanOnCards:
    """Compare the plan's predictions with the latest readings of the monitored cards."""
    devices = [device for device in latest.inventory.devices if device.state == "running"]
    if not devices or evaluation.gpu is None:
        return PlanOnCards()
    suited = [device for device in devices if evaluation.gpu in matches.get(device.uuid, ())]
    if not suited:
        return PlanOnCards(f"The plan is for {evaluation.gpu.name}, which is not among these GPUs.")
    used = suited[: max(1, evaluation.plan.count)]
    expected = predict_card(evaluation)
    return PlanOnCards(
        _plan_sentence(evaluation, _device_with_most_memory_used(used, latest), latest),
        {device.uuid: expected for device in used},
    )


def plannable_cards(matches: CardMatches) -> tuple[PlannableCards, ...]:
    """Return the options to plan for the monitored cards: one card of each kind, and all cards of each kind."""
    gpus = {gpu.id: gpu for matching in matches.values() for gpu in matching}
    counts = Counter(gpu.id for matching in matches.values() for gpu in matching)
    several = (PlannableCards(gpus[name], count) for name, count in counts.items() if count > 1)
    return (*(PlannableCards(gpu, 1) for gpu in gpus.values()), *several)


def _device_with_most_memory_used(devices: list[Device], latest: Latest) -> Device:
    return max(devices, key=lambda device: latest.reading(device.uuid, "memory_used_bytes").value or 0.0)


def _plan_sentence(evaluation: Evaluation, device: Device, latest: Latest) -> str:
    processes = tuple(process for process in latest.processes if process.uuid == device.uuid)
    used = latest.reading(device.uuid, "memory_used_bytes").value
    if used is None or not any(process.kind != "graphics" for process in processes):
        predicted = f"The plan predicts {fmt.size(evaluation.memory.total_bytes)} on GPU {device.index}"
        if not processes and used is not None and used > _HELD_BYTES:
            return f"{predicted}; {fmt.size(round(used))} are in use by processes that cannot be seen here."
        return f"{predicted}; no process computes there yet."
    sentence = measured_sentence(check_prediction(evaluation, measure_card(processes, used)))
    return f"GPU {device.index}: {sentence[:1].lower()}{sentence[1:]}"
