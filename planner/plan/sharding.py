"""Default sharding for plans that replicate the whole model on each card."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.layout import resolve_parallel
from planner.workload.software.registry import serving_support
from planner.workload.workload import Training, Workload

_POWERS: Final = (2, 4, 8, 16, 32, 64)
_ZERO: Final = "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-3 communicates 50 % more than plain replicas"
_TENSOR: Final = "Shoeybi et al. 2019, arXiv 1909.08053: each matrix is split, with all-reduces in every layer"
_LAYERS: Final = "Hugging Face Accelerate, device_map; llama.cpp --split-mode layer: cards work one after another"


@dataclass(frozen=True, slots=True)
class ShardingScheme:
    """A sharding with its possible card counts; `settings` returns the fields of `parallel` for a count."""

    title: str
    sentence: str
    counts: Sequence[int]
    settings: Callable[[int], Mapping[str, object]]
    costs: str
    source: str


def default_sharding(workload: Workload, architecture: Architecture) -> ShardingScheme:
    """Return the default sharding for `workload`, with the possible card counts.

    Training: ZeRO-3, as in DeepSpeed and FSDP. vLLM: tensor parallelism. Other inference: pipeline parallelism.
    """
    sharing = _default_scheme(workload, architecture)
    possible = [
        count for count in sharing.counts if _is_possible(workload, architecture, sharing.settings(count), count)
    ]
    return replace(sharing, counts=possible)


def _is_possible(workload: Workload, architecture: Architecture, settings: Mapping[str, object], count: int) -> bool:
    parallel = workload.parallel.evolve(**settings)
    try:
        resolve_parallel(workload.evolve(parallel=parallel), architecture, count)
    except SpecError:
        return False
    return True


def _default_scheme(workload: Workload, architecture: Architecture) -> ShardingScheme:
    if isinstance(workload, Training):
        return ShardingScheme(
            title="with ZeRO-3",
            sentence="Shard parameters, gradients and states across the cards and gather each layer when it runs.",
            counts=_POWERS,
            settings=lambda _cards: {"zero": 3, "data": None},
            costs="50 % more communication",
            source=_ZERO,
        )
    if serving_support(workload.profile).default_split == "matrices":
        return ShardingScheme(
            title="with tensor parallelism",
            sentence="Split every matrix across the cards.",
            counts=_POWERS,
            settings=lambda cards: {"tensor": cards, "data": None},
            costs="an all-reduce in every layer",
            source=_TENSOR,
        )
    return ShardingScheme(
        title="with the layers split across them",
        sentence="Split the layers across the cards.",
        counts=range(2, architecture.depth + 1),
        settings=lambda cards: {"pipeline": cards, "pipeline_layers": (), "interleave": 1, "data": None},
        costs="cards work one after another",
        source=_LAYERS,
    )
