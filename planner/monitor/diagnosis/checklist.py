"""What to optimise next, in the order of the well-known guides, with what says whether it is done."""

from collections.abc import Callable
from typing import Final, Literal, NamedTuple

from planner.monitor.diagnosis import advice, sources
from planner.monitor.diagnosis.stretch import ACTIVE, phase_of
from planner.monitor.diagnosis.verdict import Condition, Evidence, Kind, Source, Verdict
from planner.monitor.diagnosis.window import look
from planner.monitor.readings.protocols import Past

Standing = Literal["done", "to-do", "unknown"]

_TUNING: Final = Source("PyTorch, Performance Tuning Guide")
_SINGLE: Final = Source("Hugging Face transformers, Methods and tools for efficient training on a single GPU")
_TRANSFERS: Final = sources.heuristic("where copies take a tenth of the link or less, they hold nothing back")


class Item(NamedTuple):
    """One thing to do; it is done where all `conditions` hold, and cannot be told where there are none."""

    name: str
    title: str
    why: str
    how: tuple[str, ...]
    guide: Source
    conditions: tuple[Condition, ...] = ()


class Checked(NamedTuple):
    """How an item stands, with what was seen."""

    item: Item
    standing: Standing
    evidence: tuple[Evidence, ...] = ()


CHECKLIST: Final = (
    Item(
        "profile",
        "Profile first",
        "A profile of some steps shows what the time is spent on; everything below is a guess without it.",
        (advice.PROFILE, "Leave out the first steps: they compile and fill caches."),
        _TUNING,
    ),
    Item(
        "data-loading",
        "Load data beside the work",
        "A card that waits for data gains nothing from anything else; it is the commonest reason of all.",
        (advice.WORKERS, advice.PREPARED, advice.ON_CARD),
        _TUNING,
        (
            Condition("starved_by_cpu", "share", "<=", 0.5, sources.CPU_BOTTLENECK),
            Condition("use_fraction", "p5", ">=", 0.1, sources.LOW_USE),
        ),
    ),
    Item(
        "batch-size",
        "Fill the card with the batch",
        "Larger batches keep more multiprocessors at work; memory that is left over is of no use.",
        (advice.LARGER_BATCH, "Multiples of 8 suit the tensor cores."),
        _SINGLE,
        (Condition("memory_full_fraction", "p95", ">=", 0.7, sources.BATCH_SIZE),),
    ),
    Item(
        "mixed-precision",
        "Compute in mixed precision",
        "Tensor cores compute bf16 and fp16 many times faster than fp32, and activations take half the memory.",
        (advice.PRECISION, "torch.set_float32_matmul_precision('high') allows TF32 for what stays in fp32."),
        _SINGLE,
        (Condition("tensor_active_fraction", "mean", ">=", 0.5, sources.KEMPNER),),
    ),
    Item(
        "pinned-memory",
        "Pin memory and copy beside the work",
        "Copies from pinned memory are faster and do not stop the program.",
        (advice.PINNED,),
        _TUNING,
        (Condition("pcie_of_link_fraction", "p95", "<=", 0.1, _TRANSFERS),),
    ),
    Item(
        "small-kernels",
        "Start fewer kernels",
        "Each start costs some microseconds on the host; small kernels leave multiprocessors without work.",
        (advice.COMPILE, advice.FUSED_OPTIMIZER, advice.NO_SYNC),
        _TUNING,
        (Condition("sm_active_fraction", "mean", ">=", 0.8, sources.DCGM),),
    ),
    Item(
        "steady",
        "Work all the time",
        "Evaluation, logging and checkpoints in the step make the card wait.",
        (advice.NO_SYNC, "Write checkpoints in the background (torch.distributed.checkpoint.async_save)."),
        _TUNING,
        (Condition("use_fraction", "p25", ">=", 0.7, sources.STEADY),),
    ),
)
"""What there is to do to a training, in the order in which it is worth while."""

_NAMED_BY: Final = {
    Kind.INPUT_BOUND: ("data-loading",),
    Kind.UNDER_FILLED: ("batch-size",),
    Kind.TRANSFER_BOUND: ("pinned-memory",),
    Kind.HOST_BOUND: ("small-kernels",),
    Kind.SYNC_BOUND: ("small-kernels",),
    Kind.FLUCTUATING: ("data-loading", "steady"),
}


def agreeing(checked: tuple[Checked, ...], verdict: Verdict) -> tuple[Checked, ...]:
    """Return the list beside a verdict on the same card: what that names is to do, whatever else was seen."""
    named = _NAMED_BY.get(verdict.kind, ())
    return tuple(one._replace(standing="to-do") if one.item.name in named else one for one in checked)


def check(past: Past, uuid: str, at: float | None = None) -> tuple[Checked, ...]:
    """Return how the items stand for one card by its last minutes; nothing can be told of a card that does not work.

    Raises:
        KeyError: If the inventory has no such card.
    """
    device = next((device for device in past.inventory.devices if device.uuid == uuid), None)
    if device is None:
        raise KeyError(uuid)
    end = past.end if at is None else at
    window = look(past, device, end or 0.0)
    use = window.quantity("use_fraction")
    if use is None or max(use.values) < ACTIVE:
        return tuple(Checked(item, "unknown") for item in CHECKLIST)
    working = window.since(phase_of(use).start)
    return tuple(_checked(item, working.statistic) for item in CHECKLIST)


def _checked(item: Item, statistic: Callable[[str, str], float | None]) -> Checked:
    seen = [(condition, statistic(condition.metric, condition.statistic)) for condition in item.conditions]
    known = [(condition, value) for condition, value in seen if value is not None]
    evidence = tuple(Evidence(one.metric, one.statistic, value, one) for one, value in known)
    if any(not condition.holds(value) for condition, value in known):
        return Checked(item, "to-do", evidence)
    return Checked(item, "done" if known and len(known) == len(seen) else "unknown", evidence)
