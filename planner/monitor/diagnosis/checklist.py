"""Optimization checklist for a training run, in the order of published guides, with the state of each item."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.card_window import read_window
from planner.monitor.diagnosis.time_series import ACTIVE_UTILIZATION, current_phase
from planner.monitor.diagnosis.verdict import Criterion, Evidence, ThresholdSource, Verdict, VerdictKind
from planner.monitor.readings.protocols import DiagnosisSource

ItemStatus = Literal["done", "to-do", "unknown"]

_TUNING_GUIDE: Final = ThresholdSource("PyTorch, Performance Tuning Guide")
_SINGLE_GPU_GUIDE: Final = ThresholdSource(
    "Hugging Face transformers, Methods and tools for efficient training on a single GPU"
)
_TRANSFERS: Final = sources.heuristic(
    "copies that use at most a tenth of the PCIe link's bandwidth do not limit a step"
)


class ChecklistItem(NamedTuple):
    """One optimization: done if all `conditions` hold, unknown if there are no conditions."""

    name: str
    title: str
    why: str
    how: tuple[str, ...]
    guide: ThresholdSource
    conditions: tuple[Criterion, ...] = ()


class ChecklistResult(NamedTuple):
    """Status of one checklist item, with the readings that support the status."""

    item: ChecklistItem
    standing: ItemStatus
    evidence: tuple[Evidence, ...] = ()


CHECKLIST: Final = (
    ChecklistItem(
        "profile",
        "Profile first",
        "A profile of a few steps shows where the time goes; without a profile, all items below are guesses.",
        (advice.PROFILE, "Skip the first steps: they compile and fill caches."),
        _TUNING_GUIDE,
    ),
    ChecklistItem(
        "data-loading",
        "Load data in the background",
        "While the GPU waits for data, nothing else helps; this is the most common bottleneck.",
        (advice.PREPROCESS_ONCE, advice.AUGMENT_ON_GPU, advice.WORKERS),
        _TUNING_GUIDE,
        (
            Criterion("starved_by_cpu", "share", "<=", 0.5, sources.CPU_BOTTLENECK),
            Criterion("use_fraction", "p5", ">=", 0.1, sources.LOW_USE),
        ),
    ),
    ChecklistItem(
        "batch-size",
        "Use a larger batch",
        "Larger batches keep more multiprocessors busy; unused memory is wasted.",
        (advice.LARGER_BATCH, "Use multiples of 8 for the tensor cores."),
        _SINGLE_GPU_GUIDE,
        (Criterion("memory_full_fraction", "p95", ">=", 0.7, sources.BATCH_SIZE),),
    ),
    ChecklistItem(
        "mixed-precision",
        "Compute in mixed precision",
        "Tensor cores compute bf16 and fp16 many times faster than fp32, and activations take half the memory.",
        (advice.PRECISION, "torch.set_float32_matmul_precision('high') allows TF32 for what stays in fp32."),
        _SINGLE_GPU_GUIDE,
        (Criterion("tensor_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),),
    ),
    ChecklistItem(
        "pinned-memory",
        "Pin memory and overlap copies",
        "Copies from pinned memory are faster and do not block the program.",
        (advice.PINNED_MEMORY,),
        _TUNING_GUIDE,
        (Criterion("pcie_of_link_fraction", "p95", "<=", 0.1, _TRANSFERS),),
    ),
    ChecklistItem(
        "small-kernels",
        "Launch fewer kernels",
        "Each launch costs microseconds on the host; small kernels leave multiprocessors idle.",
        (advice.COMPILE, advice.FUSED_OPTIMIZER, advice.NO_SYNCHRONIZATION),
        _TUNING_GUIDE,
        (Criterion("sm_active_fraction", "mean", ">=", 0.8, sources.DCGM),),
    ),
    ChecklistItem(
        "steady",
        "Keep the GPU busy all the time",
        "Evaluation, logging and checkpoints within the step make the GPU wait.",
        (advice.NO_SYNCHRONIZATION, "Write checkpoints in the background (torch.distributed.checkpoint.async_save)."),
        _TUNING_GUIDE,
        (Criterion("use_fraction", "p25", ">=", 0.7, sources.STEADY),),
    ),
)
"""Optimizations of a training run, the most worthwhile first."""

_ITEMS_BY_VERDICT: Final = {
    VerdictKind.INPUT_BOUND: ("data-loading",),
    VerdictKind.UNDER_FILLED: ("batch-size",),
    VerdictKind.TRANSFER_BOUND: ("pinned-memory",),
    VerdictKind.HOST_BOUND: ("small-kernels",),
    VerdictKind.SYNC_BOUND: ("small-kernels",),
    VerdictKind.FLUCTUATING: ("data-loading", "steady"),
}
_KINDS_OF_THE_MACHINE: Final = (VerdictKind.MEMORY_ERRORS, VerdictKind.THERMAL, VerdictKind.POWER_BRAKE)


def consistent_with_verdict(results: tuple[ChecklistResult, ...], verdict: Verdict) -> tuple[ChecklistResult, ...]:
    """Return checklist results in which the items that the GPU's verdict implies have the status to-do.

    For a GPU that is lost, broken or too hot, there are none: the run is not what holds it back.
    """
    if verdict.severity == "error" or verdict.kind in _KINDS_OF_THE_MACHINE:
        return ()
    item_names = _ITEMS_BY_VERDICT.get(verdict.kind, ())
    return tuple(result._replace(standing="to-do") if result.item.name in item_names else result for result in results)


def evaluate_checklist(source: DiagnosisSource, uuid: str, at: float | None = None) -> tuple[ChecklistResult, ...]:
    """Return the state of each checklist item for one GPU over the last minutes; none for an idle GPU.

    Raises:
        KeyError: If the inventory has no such GPU.
    """
    device = {device.uuid: device for device in source.inventory.devices}[uuid]
    end = source.end if at is None else at
    window = read_window(source, device, end or 0.0)
    use = window.quantity("use_fraction")
    if use is None or max(use.values) < ACTIVE_UTILIZATION:
        return ()
    working = window.since(current_phase(use).start)
    return tuple(_checklist_result(item, working.statistic) for item in CHECKLIST)


def _checklist_result(item: ChecklistItem, statistic: Callable[[str, str], float | None]) -> ChecklistResult:
    values = [(condition, statistic(condition.metric, condition.statistic)) for condition in item.conditions]
    known = [(condition, value) for condition, value in values if value is not None]
    evidence = tuple(Evidence(condition.metric, condition.statistic, value, condition) for condition, value in known)
    if any(not condition.holds(value) for condition, value in known):
        return ChecklistResult(item, "to-do", evidence)
    return ChecklistResult(item, "done" if known and len(known) == len(values) else "unknown", evidence)
