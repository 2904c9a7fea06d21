"""A plan and what it comes to, in a phrase and as the view of its memory."""

from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.logs.corrected import counting
from planner.plan.warnings import warnings_about
from planner.present import format as fmt
from planner.present.memory import MemoryView, memory_view
from planner.present.parallel import cards_phrase, device_rows, sharing_phrase
from planner.present.trace_request import request_phrase
from planner.present.workload import workload_phrase


def plan_phrase(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return `model · workload · 2 × RTX 4090, FSDP`, with every default filled in."""
    parts = (evaluation.plan.model.id, work_phrase(evaluation), hardware_phrase(evaluation, catalog))
    return " · ".join(part for part in parts if part)


def hardware_phrase(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return `8 × H100 SXM, FSDP`: the cards and how they share the work; empty where neither is said."""
    plan = evaluation.plan
    name = evaluation.gpu.name if evaluation.gpu else None
    cards = cards_phrase(plan.workload, plan.count, name, catalog.hardware)
    sharing = "" if evaluation.traced else sharing_phrase(evaluation.workload)
    if sharing and not cards:
        cards = fmt.plural(plan.count, "card")
    return ", ".join(part for part in (cards, sharing) if part)


def work_phrase(evaluation: Evaluation) -> str:
    """Return how the model is run: `inference, 1 × 4,096 tokens, bf16` or `traced training, AdamW, batch 8`."""
    if evaluation.traced is not None:
        return f"traced {request_phrase(evaluation.traced.request)}"
    corrected = ", corrected by a log" if counting(evaluation) else ""
    return f"{workload_phrase(evaluation.workload)}{corrected}"


def evaluation_view(evaluation: Evaluation, catalog: Catalog) -> MemoryView:
    """Return what to show of the memory of a whole plan; what is easily overlooked stands first in the notes."""
    smallest = tuple(catalog.hardware.gpu(gpu_id).name for gpu_id in evaluation.smallest_fits)
    name = evaluation.gpu.name if evaluation.gpu else None
    workload, hardware = evaluation.plan.workload, catalog.hardware
    card = cards_phrase(workload, 1, name, hardware) if workload.gpus else name
    view = memory_view(evaluation.memory, card, evaluation.plan.count, smallest)
    view = view._replace(devices=device_rows(evaluation.memory, hardware))
    warnings = (warning.sentence for warning in warnings_about(evaluation, catalog.software))
    return view._replace(notes=(*warnings, *view.notes)) if view.supported else view
