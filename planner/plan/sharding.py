"""How a plan whose cards each hold the whole network could share it: the usual way of what runs it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.layout import laid_out
from planner.workload.software.registry import serving
from planner.workload.workload import Training, Workload

_POWERS: Final = (2, 4, 8, 16, 32, 64)
_ZERO: Final = "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-3 sends half as much again as plain replicas do"
_TENSOR: Final = "Shoeybi et al. 2019, arXiv 1909.08053: each matrix is shared, and sums are exchanged in every layer"
_LAYERS: Final = "Hugging Face Accelerate, device_map; llama.cpp --split-mode layer: cards work one after the other"


@dataclass(frozen=True, slots=True)
class ShardingScheme:
    """A way to share the network between `counts` cards; `settings` are the fields of `parallel` for each."""

    title: str
    sentence: str
    counts: Sequence[int]
    settings: Callable[[int], Mapping[str, object]]
    costs: str
    source: str


def default_sharding(workload: Workload, architecture: Architecture) -> ShardingScheme:
    """Return how cards share a network in `workload`, with the numbers of cards that can.

    Training: ZeRO-3, as DeepSpeed and FSDP have it. vLLM: tensor parallelism. Other inference: layer after layer.
    """
    sharing = _default_scheme(workload, architecture)
    possible = [
        count for count in sharing.counts if _is_possible(workload, architecture, sharing.settings(count), count)
    ]
    return replace(sharing, counts=possible)


def _is_possible(workload: Workload, architecture: Architecture, settings: Mapping[str, object], count: int) -> bool:
    parallel = workload.parallel.evolve(**settings)
    try:
        laid_out(workload.evolve(parallel=parallel), architecture, count)
    except SpecError:
        return False
    return True


def _default_scheme(workload: Workload, architecture: Architecture) -> ShardingScheme:
    if isinstance(workload, Training):
        return ShardingScheme(
            title="with ZeRO-3",
            sentence="Let each card keep a part of parameters, gradients and states, and fetch the rest as it goes.",
            counts=_POWERS,
            settings=lambda _cards: {"zero": 3, "data": None},
            costs="half as much communication again",
            source=_ZERO,
        )
    if serving(workload.profile).usually_shares == "matrices":
        return ShardingScheme(
            title="that share each matrix",
            sentence="Let each card hold a part of every matrix.",
            counts=_POWERS,
            settings=lambda cards: {"tensor": cards, "data": None},
            costs="cards exchange sums in every layer",
            source=_TENSOR,
        )
    return ShardingScheme(
        title="that share the layers",
        sentence="Let each card hold and compute a part of the layers.",
        counts=range(2, architecture.depth + 1),
        settings=lambda cards: {"pipeline": cards, "pipeline_layers": (), "interleave": 1, "data": None},
        costs="cards work one after the other",
        source=_LAYERS,
    )
