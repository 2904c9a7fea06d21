"""Whether a way to spread a workload goes with the network and the number of cards."""

from functools import lru_cache
from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe
from planner.workload.parallel import Parallel
from planner.workload.rules import (
    COUNT_HINT,
    OF_COUNT,
    OF_REPLICAS,
    OF_SHARED_INFERENCE,
    OF_SHARED_TRAINING,
    OF_SHARING,
)
from planner.workload.training import Training
from planner.workload.workload import Inference

_ONE_STACK: Final = ("decoder", "encoder", "vision-encoder", "vision-language")


def laid_out(workload: Training | Inference, architecture: Architecture, count: int) -> Parallel:
    """Return how `workload` is spread over `count` cards, with the number of replicas filled in.

    Raises:
        SpecError: If the cards are not as many as the ways to share them multiply to, or if the network or the
            software cannot be shared so.
    """
    OF_COUNT.refuse(workload, count=count)
    if isinstance(workload, Training):
        OF_REPLICAS.refuse(workload, count=count)
    parallel = _with_replicas(workload.parallel, count)
    if not parallel.is_plain:
        _check_network(parallel, architecture)
        OF_SHARING.refuse(workload, model=architecture)
        (OF_SHARED_TRAINING if isinstance(workload, Training) else OF_SHARED_INFERENCE).refuse(workload)
    return parallel


@lru_cache(maxsize=1024)
def _with_replicas(parallel: Parallel, count: int) -> Parallel:
    return parallel.evolve(data=count // parallel.model_shards) if parallel.data is None else parallel


@lru_cache(maxsize=1024)
def _check_network(parallel: Parallel, architecture: Architecture) -> None:
    if architecture.kind == "diffusion":
        raise SpecError("parallel", "the networks of a diffusion pipeline are not shared between cards")
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    if parallel.tensor > 1:
        for layer in layers:
            _check_tensor(layer, parallel.tensor)
    if parallel.expert > 1:
        _check_experts(parallel, [layer.feed_forward for layer in layers])
    if parallel.pipeline > 1:
        _check_stages(parallel, architecture)
    if parallel.context > 1 and architecture.fixed_length is not None:
        raise SpecError("parallel.context", "inputs of a fixed length are not shared between cards")


def _check_tensor(layer: Layer, cards: int) -> None:
    for mixer in (layer.mixer, layer.second_mixer, layer.cross_attention):
        if isinstance(mixer, Attention | LatentAttention) and mixer.heads % cards:
            raise SpecError(
                "parallel.tensor", f"{mixer.heads:,} heads cannot be divided by {cards:,}", _goes(mixer.heads)
            )
        if isinstance(mixer, Attention) and mixer.kv_heads % cards and cards % mixer.kv_heads:
            reason = f"{mixer.kv_heads:,} heads of keys and values can be neither divided by {cards:,} nor repeated"
            raise SpecError("parallel.tensor", reason)
    block = layer.feed_forward
    widths = [block.intermediate] if isinstance(block, Mlp) else []
    if isinstance(block, Moe):
        widths = [block.intermediate, block.shared_intermediate]
    for width in widths:
        if width % cards:
            raise SpecError("parallel.tensor", f"a feed-forward width of {width:,} cannot be divided by {cards:,}")


def _goes(size: int) -> str:
    return f"It goes with {', '.join(str(cards) for cards in range(2, size + 1) if size % cards == 0)}."


def _check_experts(parallel: Parallel, blocks: list[Mlp | Moe | None]) -> None:
    routed = {block.experts for block in blocks if isinstance(block, Moe)}
    if not routed:
        raise SpecError("parallel.expert", "this network has no experts to share")
    for experts in routed:
        if experts % parallel.expert:
            reason = f"{experts:,} experts cannot be divided by {parallel.expert:,}"
            raise SpecError("parallel.expert", reason, _goes(experts))
    if (parallel.data or 1) % parallel.expert:
        reason = f"experts are spread over replicas, and {parallel.data:,} cannot be divided by {parallel.expert:,}"
        raise SpecError("parallel.expert", reason, hint=COUNT_HINT)


def _check_stages(parallel: Parallel, architecture: Architecture) -> None:
    if architecture.kind not in _ONE_STACK:
        raise SpecError("parallel.pipeline", "a network with an encoder and a decoder is not cut into stages")
    layers = architecture.depth
    if parallel.pipeline * parallel.interleave > layers:
        stages = parallel.pipeline * parallel.interleave
        raise SpecError("parallel.pipeline", f"{layers:,} layers cannot fill {stages:,} stages")
    if parallel.pipeline_layers and sum(parallel.pipeline_layers) != layers:
        named = sum(parallel.pipeline_layers)
        raise SpecError("parallel.pipeline_layers", f"the stages have {named:,} layers, and the network {layers:,}")
