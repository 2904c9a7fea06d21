"""Parallelism of a workload as a phrase, and its cards as table rows."""

from typing import Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.memory.result import DeviceShare, MemoryResult
from planner.memory.software import sharding_strategy_of
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.memory.verdict import VERDICT_TITLES, scarcity_phrase
from planner.workload.choices import Offload
from planner.workload.software.registry import DEFAULT, SOFTWARE
from planner.workload.workload import Training, Workload

OFFLOAD_TITLES: Final[dict[Offload, str]] = {
    "none": "nothing offloaded",
    "optimizer": "optimizer in RAM",
    "parameters": "parameters and optimizer in RAM",
    "nvme": "parameters and optimizer on NVMe",
}
_SHARED: Final = {
    "tensor": "tensor parallel {}",
    "pipeline": "{} pipeline stages",
    "context": "context parallel {}",
    "expert": "expert parallel {}",
}


class DeviceRow(NamedTuple):
    """A group of cards with the same share of the plan; `scarcity` is set on the group that decides the verdict."""

    card: str
    layers: str
    needs: str
    usable: str
    free: str
    verdict: str
    scarcity: str
    share: DeviceShare

    @property
    def used_fraction(self) -> float | None:
        """Return the used fraction of a card's usable memory, or None if that is not known."""
        return self.share.total_bytes / self.share.capacity_bytes if self.share.capacity_bytes else None


def parallelism_phrase(workload: Workload) -> str:
    """Return the parallelism as a phrase, `FSDP, tensor 4, 2 pipeline stages`; empty if each card is a replica."""
    return ", ".join(_parallelism_parts(workload))


def parallelism_summary(workload: Workload, count: int) -> str:
    """Return the parallelism on `count` cards: `FSDP on 8 GPUs`, `DDP on 2 GPUs`, or `independent replicas`."""
    cards = fmt.plural(count, "GPU")
    if phrase := parallelism_phrase(workload):
        return f"{phrase} on {cards}"
    if count == 1:
        return cards
    return f"DDP on {cards}" if isinstance(workload, Training) else "independent replicas"


def chosen_sharing_phrase(workload: Workload) -> str:
    """Return how cards share a model: `FSDP over 4 GPUs`, `tensor parallelism over 2 GPUs, 4 replicas`, `replicas`.

    `workload` has its defaults filled in.
    """
    parallel, parts = workload.parallel, []
    if parallel.tensor > 1:
        parts.append(f"tensor parallelism over {fmt.plural(parallel.tensor, 'GPU')}")
    if parallel.pipeline > 1:
        stages = fmt.integer(parallel.pipeline)
        parts.append(f"{stages} pipeline stages" if parts else f"a layer split over {stages} GPUs")
    if isinstance(workload, Training) and parallel.zero and parallel.state_shards > 1:
        parts.append(f"{_zero_stage_title(workload)} over {fmt.plural(parallel.state_shards, 'GPU')}")
    elif parts and (parallel.data or 1) > 1:
        parts.append(f"{fmt.integer(parallel.data or 1)} replicas")
    return ", ".join(parts) or "replicas"


def batch_note(workload: Workload) -> str:
    """Return how many requests several replicas answer: `50 per replica, 100 in all`; empty for one replica.

    `workload` has its defaults filled in.
    """
    replicas = workload.parallel.data or 1
    if isinstance(workload, Training) or replicas == 1:
        return ""
    return f"{fmt.integer(workload.batch)} per replica, {fmt.integer(replicas * workload.batch)} in all"


def chosen_sharing_sentences(evaluation: Evaluation) -> str:
    """Return the sharing that was chosen and why, and the verdict as replicas; empty if the plan sets its own.

    Without a GPU nothing is chosen yet, and the sentence states that. Of pipelines, which no program shares, nothing
    is said.
    """
    if evaluation.architecture is not None and evaluation.architecture.kind == "diffusion":
        return ""
    chosen, workload, plan = evaluation.sharing, evaluation.workload, evaluation.plan
    software = SOFTWARE[workload.profile or DEFAULT].brief_title
    if evaluation.architecture is not None and not evaluation.cards and plan.workload.parallel.is_open_for(plan.count):
        return (
            f"Shown is one of {fmt.integer(plan.count)} replicas; where one GPU is too small for it, the model is "
            f"assumed to be shared over the {fmt.integer(plan.count)} GPUs."
        )
    if chosen is None or chosen.as_replicas.verdict is None:
        return ""
    if not chosen.scheme:
        if chosen.as_replicas.verdict == "fits":
            return "Each GPU holds the whole model, because one is enough."
        return f"The GPUs are replicas: {software} cannot share this model so that it fits better."
    replicas, verdict = chosen.as_replicas, chosen.as_replicas.verdict
    fits = "fits only tightly and needs" if verdict == "tight" else "needs"
    needs = f"{fits} {fmt.size(replicas.total_bytes)}, and a GPU has {fmt.size(replicas.capacity_bytes)}"
    phrase = chosen_sharing_phrase(workload)
    return f"Assumed: {phrase}, because a full copy {needs}. Check that {software} is configured for it."


def cards_phrase(workload: Workload, count: int, name: str | None, hardware: HardwareCatalog) -> str:
    """Return the plan's cards: `8 × H100 SXM`, or `1 × RTX 4090 + 2 × RTX 3090`; empty without a card."""
    if workload.gpus:
        return " + ".join(fmt.count_of(kind.count, hardware.gpu(kind.id).name) for kind in workload.gpus)
    return "" if name is None else fmt.count_of(count, name)


def device_rows(memory: MemoryResult, hardware: HardwareCatalog) -> tuple[DeviceRow, ...]:
    """Return a row for each group of cards with the same share of the plan; none if there is only one group."""
    if len(memory.per_gpu) < 2:
        return ()
    return tuple(
        _device_row(share, hardware, scarcity_phrase(memory) if place == memory.fullest else "")
        for place, share in enumerate(memory.per_gpu)
    )


def _device_row(share: DeviceShare, hardware: HardwareCatalog, scarcity: str) -> DeviceRow:
    name = hardware.gpu(share.gpu).name if share.gpu else "GPU"
    return DeviceRow(
        card=fmt.count_of(share.count, name),
        layers="all" if share.layers is None else fmt.integer(share.layers),
        needs=fmt.gib(share.total_bytes),
        usable=fmt.UNKNOWN if share.capacity_bytes is None else fmt.gib(share.capacity_bytes),
        free=fmt.UNKNOWN if share.free_bytes is None else fmt.gib(share.free_bytes),
        verdict="" if share.verdict is None else VERDICT_TITLES[share.verdict],
        scarcity=scarcity,
        share=share,
    )


def _parallelism_parts(workload: Workload) -> list[str]:
    """Return the forms of parallelism of a workload, one phrase each."""
    parallel = workload.parallel
    found = [shared.format(size) for name, shared in _SHARED.items() if (size := getattr(parallel, name)) > 1]
    if parallel.sequence and parallel.tensor > 1:
        found.append("sequence parallel")
    if isinstance(workload, Training) and parallel.zero:
        found.insert(0, _zero_stage_title(workload))
    if parallel.offload != "none":
        found.append(OFFLOAD_TITLES[parallel.offload])
    return found


def _zero_stage_title(workload: Training) -> str:
    return sharding_strategy_of(workload).stage_name(workload.parallel.zero)
