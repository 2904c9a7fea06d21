"""Ladders of a plan: smaller batches, shorter sequences, more cards."""

from collections.abc import Iterator
from math import gcd
from typing import Final

from planner.models.architecture import Architecture
from planner.plan.advice.change import Ladder, PlanChange
from planner.plan.advice.pipeline_changes import smaller_images
from planner.plan.advice.software.lookup import engine_ladders
from planner.plan.plan import Plan
from planner.plan.sharding import default_sharding
from planner.workload.workload import Inference, Training, Workload

_LENGTH_STEPS: Final = 16
_SHORTEST_PART: Final = 8
_MOST_CARDS: Final = 64
_LESS_WORK: Final = "less work is done than requested"
_DATA_PARALLEL: Final = "data parallelism: each card holds the whole model and processes a part of the batch"


def plan_ladders(plan: Plan, workload: Workload, architecture: Architecture) -> tuple[Ladder, ...]:
    """Return the ladders of `plan`; `workload` is the plan's with its defaults filled in."""
    own = _training(workload) if isinstance(workload, Training) else _inference(workload, plan, architecture)
    found = [_without_other_programs(workload), *own, _more_cards(plan, workload)]
    if plan.gpu is not None and plan.count == 1 and workload.parallel.is_plain:
        found.append(_shared_network(workload, architecture))
    return tuple(ladder for ladder in found if ladder.values)


def _training(workload: Training) -> Iterator[Ladder]:
    total = workload.micro_batch * workload.gradient_accumulation
    divisors = [size for size in range(workload.micro_batch - 1, 0, -1) if workload.micro_batch % size == 0]

    def smaller(size: int) -> PlanChange:
        times = total // size
        return PlanChange(
            name=f"micro-batch size {size:,} with {times:,} gradient accumulation steps",
            lever="batch",
            sentence="Split each step into smaller forward passes and accumulate their gradients.",
            source="the gradient of a mean is the mean of gradients",
            settings={"micro_batch": size, "gradient_accumulation": times},
            cost="time",
            slower_by_about=None,
            costs="lower utilization with smaller passes",
            keeps=f"{total:,} sequences per card and optimizer step",
        )

    yield Ladder("batch", divisors, smaller)
    yield _shorter("sequence_length", workload.sequence_length or 1, "sequences", "longer sequences are truncated")


def _inference(workload: Inference, plan: Plan, architecture: Architecture) -> Iterator[Ladder]:
    what = "image" if architecture.kind == "diffusion" else "sequence"

    def fewer(size: int) -> PlanChange:
        return PlanChange(
            name=f"{size:,} {what}{'' if size == 1 else 's'} at once",
            lever="batch",
            sentence=f"Process fewer {what}s at once and queue the others.",
            source=_LESS_WORK,
            settings={"batch": size},
            cost="less",
            costs=f"{workload.batch - size:,} fewer at once",
            kept=size / workload.batch,
            keeps="the outputs",
        )

    yield Ladder("batch", range(workload.batch - 1, 0, -1), fewer)
    if architecture.kind == "diffusion":
        yield smaller_images(workload)
        return
    yield from engine_ladders(workload, architecture)
    prompt = plan.workload.prompt_length if isinstance(plan.workload, Inference) else None
    yield _shorter("context_length", workload.context_length or 1, "a context", "a shorter context", prompt)


def _shorter(field: str, length: int, what: str, loss: str, prompt: int | None = None) -> Ladder:
    grain = 1 << max(0, (length // _LENGTH_STEPS).bit_length() - 1)

    def shorter(tokens: int) -> PlanChange:
        cut = {"prompt_length": tokens} if prompt is not None and prompt > tokens else {}
        return PlanChange(
            name=f"{what} of {tokens:,} tokens",
            lever="length",
            sentence=f"Process at most {tokens:,} tokens instead of {length:,}.",
            source=_LESS_WORK,
            settings={field: tokens, **cut},
            cost="less",
            costs=loss,
            kept=tokens / length,
            risk="real",
        )

    return Ladder("length", range((length - 1) // grain * grain, length // _SHORTEST_PART - 1, -grain), shorter)


def _without_other_programs(workload: Workload) -> Ladder:
    def closed(_held: int) -> PlanChange:
        return PlanChange(
            name="close other programs",
            lever="processes",
            sentence="Close the other programs that use the card.",
            source="the memory entered for other programs",
            settings={"other_processes_bytes": 0},
            needs="exclusive use of the card",
        )

    held = workload.other_processes_bytes
    return Ladder("processes", (held,) if held else (), closed)


def _more_cards(plan: Plan, workload: Workload) -> Ladder:
    """Return the plan on more cards that divide its batch, so that the global batch size stays the same."""
    field = "micro_batch" if isinstance(workload, Training) else "batch"
    size: int = getattr(workload, field)

    def shared(times: int) -> PlanChange:
        return PlanChange(
            name=f"{plan.count * times:,} cards, {size // times:,} on each",
            lever="cards",
            sentence=f"Split the batch of each card across {times:,} cards.",
            source=_DATA_PARALLEL,
            settings={field: size // times, "parallel": {"data": None}},
            hardware={"count": plan.count * times},
            cost="hardware",
            costs=f"{times:,} × the cards",
            keeps="the global batch size",
        )

    most = min(size, _MOST_CARDS) if plan.gpu else 0
    return Ladder("cards", [times for times in range(2, most + 1) if size % times == 0], shared)


def _shared_network(workload: Workload, architecture: Architecture) -> Ladder:
    """Return the plan on several cards that split the model, instead of one."""
    sharing = default_sharding(workload, architecture)

    def shared(count: int) -> PlanChange:
        batch = _split_batch(workload, count) if isinstance(workload, Training) else {}
        grows = isinstance(workload, Training) and not batch
        return PlanChange(
            name=f"{count:,} cards {sharing.title}",
            lever="cards",
            sentence=sharing.sentence,
            source=sharing.source,
            settings={"parallel": sharing.settings(count), **batch},
            hardware={"count": count},
            cost="hardware",
            slower_by_about=None,
            costs=f"{count:,} × the cards; {sharing.costs}",
            keeps=f"the batch of each card; the global batch size grows {count:,}-fold"
            if grows
            else "the global batch size",
        )

    return Ladder("cards", sharing.counts, shared)


def _split_batch(workload: Training, cards: int) -> dict[str, object]:
    """Return fewer or smaller passes per card that keep the global batch size; empty if that is impossible."""
    passes = gcd(workload.gradient_accumulation, cards)
    left = cards // passes
    if workload.micro_batch % left:
        return {}
    return {
        "gradient_accumulation": workload.gradient_accumulation // passes,
        "micro_batch": workload.micro_batch // left,
    }
