"""Ordered lists of settings for a plan: smaller batches, shorter sequences, more GPUs."""

from collections.abc import Iterator
from math import gcd
from typing import Final

from planner.hardware.mig import sliced_card_id
from planner.models.architecture import Architecture
from planner.plan.advice.change import ChangeSequence, PlanChange
from planner.plan.advice.inference_changes import smaller_images
from planner.plan.advice.software import engine_sequences
from planner.plan.advice.training_changes import alignment_sequences
from planner.plan.plan import Plan
from planner.plan.sharing import sharing_counts, sharing_schemes
from planner.workload.parallel import DEGREES
from planner.workload.workload import Inference, Training, Workload

_LENGTH_STEPS: Final = 16
_SHORTEST_PART: Final = 8
_MOST_CARDS: Final = 64
_LESS_WORK: Final = "this plan's own estimate with fewer tokens"
_DATA_PARALLEL: Final = "data parallelism: each GPU holds the whole model and processes a part of the batch"


def plan_sequences(
    plan: Plan, workload: Workload, architecture: Architecture, domain: int
) -> tuple[ChangeSequence, ...]:
    """Return the change sequences of `plan`; `workload` is its workload with defaults and sharing filled in.

    Matrices are split within `domain` GPUs.
    """
    own = (
        _training_sequences(workload)
        if isinstance(workload, Training)
        else _inference_sequences(workload, plan, architecture)
    )
    sequences = [_other_programs_changes(workload), *own]
    if plan.gpu is not None and sliced_card_id(plan.gpu) is not None:
        return tuple(sequence for sequence in sequences if sequence.values)  # a slice is used alone
    sequences.append(_data_parallel_changes(plan, workload))
    sharing = sharing_changes(plan, workload, architecture, domain)
    sequences.append(ChangeSequence("sharing", range(len(sharing)), lambda place: sharing[place]))
    if plan.gpu is not None and plan.workload.parallel.is_plain:
        sequences.append(_model_split_changes(plan, workload, architecture, domain))
    return tuple(sequence for sequence in sequences if sequence.values)


def _training_sequences(workload: Training) -> Iterator[ChangeSequence]:
    """Yield the changes to smaller micro-batches and to shorter sequences or smaller images."""
    item = "sequence" if workload.precomputed is None else "image"
    total = workload.micro_batch * workload.gradient_accumulation
    divisors = [size for size in range(workload.micro_batch - 1, 0, -1) if workload.micro_batch % size == 0]

    def change_to_micro_batch(size: int) -> PlanChange:
        times = total // size
        return PlanChange(
            name=f"micro-batch size {size:,} with {times:,} gradient accumulation steps",
            lever="batch",
            sentence="Split each step into smaller forward passes and accumulate their gradients.",
            source="averaging the gradients of micro-batches of equally many loss tokens gives that of the whole batch",
            settings={"micro_batch": size, "gradient_accumulation": times},
            cost="time",
            slower_by_about=None,
            costs="lower utilization with smaller passes",
            keeps=f"{total:,} {item}s per GPU and optimizer step",
        )

    yield ChangeSequence("batch", divisors, change_to_micro_batch)
    if workload.precomputed is not None:
        yield smaller_images(workload)
        return
    yield from alignment_sequences(workload)
    yield _shorter_input_changes(
        "sequence_length", workload.sequence_length or 1, "sequences", "longer sequences are truncated"
    )


def _inference_sequences(workload: Inference, plan: Plan, architecture: Architecture) -> Iterator[ChangeSequence]:
    """Yield the changes to smaller batches, images, engine settings and contexts."""
    item = "image" if architecture.kind == "diffusion" else "sequence"

    def change_to_batch(size: int) -> PlanChange:
        return PlanChange(
            name=f"{size:,} {item}{'' if size == 1 else 's'} at once",
            lever="batch",
            sentence=f"Process fewer {item}s at once and queue the others.",
            source=_LESS_WORK,
            settings={"batch": size},
            cost="less",
            costs=f"{workload.batch - size:,} fewer at once",
            kept=size / workload.batch,
            keeps="the outputs",
        )

    yield ChangeSequence("batch", range(workload.batch - 1, 0, -1), change_to_batch)
    if architecture.kind == "diffusion":
        yield smaller_images(workload)
        return
    yield from engine_sequences(workload, architecture)
    prompt = plan.workload.prompt_length if isinstance(plan.workload, Inference) else None
    context, read = workload.context_length or 1, workload.prompt_length or 0
    yield _shorter_input_changes(
        "context_length", context, "a context", "a shorter context", prompt, read if read < context else 0
    )


def _shorter_input_changes(
    field: str, length: int, item: str, loss: str, prompt: int | None = None, least: int = 0
) -> ChangeSequence:
    """Return the changes to shorter inputs; `item` and `loss` name what gets shorter and what is lost.

    A context of its own stays at `least` as long as its prompt; one that the `prompt` fills is shortened with it.
    """
    shortest = max(least, length // _SHORTEST_PART)
    grain = 1 << max(0, (length // _LENGTH_STEPS).bit_length() - 1)

    def change_to_length(tokens: int) -> PlanChange:
        cut = {"prompt_length": tokens} if prompt is not None and prompt > tokens else {}
        return PlanChange(
            name=f"{item} of {tokens:,} tokens",
            lever="length",
            sentence=f"Process at most {tokens:,} tokens instead of {length:,}.",
            source=_LESS_WORK,
            settings={field: tokens, **cut},
            cost="less",
            costs=loss,
            kept=tokens / length,
            risk="real",
        )

    return ChangeSequence("length", range((length - 1) // grain * grain, shortest - 1, -grain), change_to_length)


def _other_programs_changes(workload: Workload) -> ChangeSequence:
    def change_to_free_card(_other_bytes: int) -> PlanChange:
        return PlanChange(
            name="close other programs",
            lever="processes",
            sentence="Close the other programs that use the GPU.",
            source="the memory entered for other programs",
            settings={"other_processes_bytes": 0},
            needs="exclusive use of the GPU",
        )

    other_bytes = workload.other_processes_bytes
    return ChangeSequence("processes", (other_bytes,) if other_bytes else (), change_to_free_card)


def _data_parallel_changes(plan: Plan, workload: Workload) -> ChangeSequence:
    """Return the changes to more GPUs that divide each GPU's batch, so that the global batch size stays the same."""
    field = "micro_batch" if isinstance(workload, Training) else "batch"
    size: int = getattr(workload, field)
    settled = {name: getattr(workload.parallel, name) for name in DEGREES} if plan.workload.parallel.is_open else {}

    def change_to_more_cards(times: int) -> PlanChange:
        return PlanChange(
            name=f"{plan.count * times:,} GPUs, {size // times:,} on each",
            lever="cards",
            sentence=f"Split the batch of each GPU across {times:,} GPUs.",
            source=_DATA_PARALLEL,
            settings={field: size // times, "parallel": {**settled, "sharing": "manual", "data": None}},
            hardware={"count": plan.count * times},
            cost="hardware",
            costs=f"{times:,} × the GPUs",
            keeps="the global batch size",
        )

    most = min(size, _MOST_CARDS) if plan.gpu else 0
    return ChangeSequence("cards", [times for times in range(2, most + 1) if size % times == 0], change_to_more_cards)


def sharing_changes(plan: Plan, workload: Workload, architecture: Architecture, domain: int) -> tuple[PlanChange, ...]:
    """Return the changes that split the model between the plan's GPUs, in groups from the smallest to the largest.

    `workload` is the plan's workload with defaults and sharing filled in; matrices are split within `domain` GPUs.
    """
    found = []
    for scheme in sharing_schemes(workload, architecture, plan.count, domain) if plan.count > 1 else ():
        cards = workload.parallel.evolve(**scheme.settings).model_shards
        if cards <= workload.parallel.model_shards:
            continue
        between = f"{cards:,} of the GPUs" if cards < plan.count else f"the {cards:,} GPUs"
        change = PlanChange(
            name=f"{scheme.name} over {between}",
            lever="sharing",
            sentence=scheme.sentence,
            source=scheme.source,
            settings={"parallel": scheme.settings},
            cost="time",
            slower_by_about=None,
            costs=scheme.costs,
            keeps="the mathematical result" if isinstance(workload, Training) else "the outputs",
        )
        found.append(change)
    return tuple(found)


def _model_split_changes(plan: Plan, workload: Workload, architecture: Architecture, domain: int) -> ChangeSequence:
    """Return the changes from GPUs that each hold the model, or that are too few, to more GPUs that share it."""

    def change_to_sharing_cards(count: int) -> PlanChange:
        scheme, times = sharing_schemes(workload, architecture, count, domain)[-1], count // plan.count
        batch = _divided_batch_settings(workload, times) if isinstance(workload, Training) else {}
        grows = isinstance(workload, Training) and not batch
        return PlanChange(
            name=f"{count:,} GPUs {scheme.title}",
            lever="cards",
            sentence=scheme.sentence,
            source=scheme.source,
            settings={"parallel": scheme.settings, **batch},
            hardware={"count": count},
            cost="hardware",
            slower_by_about=None,
            costs=f"{times:,} × the GPUs; {scheme.costs}".removesuffix("; "),
            keeps=f"the batch of each GPU; the global batch size grows {times:,}-fold"
            if grows
            else "the global batch size",
        )

    counts = sharing_counts(workload, architecture)
    more = [count for count in counts if count > plan.count and count % plan.count == 0]
    return ChangeSequence("cards", more, change_to_sharing_cards)


def _divided_batch_settings(workload: Training, cards: int) -> dict[str, object]:
    """Return settings with fewer or smaller passes per GPU for the same global batch size; empty if impossible."""
    passes = gcd(workload.gradient_accumulation, cards)
    left = cards // passes
    if workload.micro_batch % left:
        return {}
    return {
        "gradient_accumulation": workload.gradient_accumulation // passes,
        "micro_batch": workload.micro_batch // left,
    }
