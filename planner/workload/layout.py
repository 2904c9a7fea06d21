"""Validation of a workload's parallelism against the model and the number of cards."""

from functools import lru_cache
from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe
from planner.workload.parallel import Parallel
from planner.workload.rules import (
    COUNT_HINT,
    COUNT_RULES,
    GROUP_RULES,
    PARALLEL_INFERENCE_RULES,
    PARALLEL_RULES,
    PARALLEL_TRAINING_RULES,
    REPLICA_RULES,
)
from planner.workload.training import Training
from planner.workload.workload import Inference

_ONE_STACK: Final = ("decoder", "encoder", "vision-encoder", "vision-language")


def resolve_parallel(workload: Training | Inference, architecture: Architecture, count: int) -> Parallel:
    """Return the parallelism of `workload` on `count` cards, with the number of replicas filled in.

    Raises:
        SpecError: If the product of the degrees of parallelism is not the number of cards, or the model or the software
            does not support this split.
    """
    COUNT_RULES.check(workload, count=count)
    if isinstance(workload, Training):
        if workload.alignment.method != "none":  # others have no groups, and need no check for each micro-batch size
            GROUP_RULES.check(workload, count=count)
        REPLICA_RULES.check(workload, count=count)
    parallel = _with_replicas(workload.parallel, count)
    if not parallel.is_plain:
        _check_network(parallel, architecture)
        PARALLEL_RULES.check(workload, model=architecture)
        (PARALLEL_TRAINING_RULES if isinstance(workload, Training) else PARALLEL_INFERENCE_RULES).check(workload)
    return parallel


@lru_cache(maxsize=1024)
def _with_replicas(parallel: Parallel, count: int) -> Parallel:
    """Return `parallel` with the number of replicas on `count` cards filled in, if it is unset."""
    return parallel.evolve(data=count // parallel.model_shards) if parallel.data is None else parallel


@lru_cache(maxsize=1024)
def _check_network(parallel: Parallel, architecture: Architecture) -> None:
    """Reject degrees of parallelism that the model's layers do not allow."""
    if architecture.kind == "diffusion":
        raise SpecError(
            "parallel",
            "the networks in a diffusion pipeline cannot be split across cards",
            "Leave the degrees unset: each GPU then makes images of its own.",
        )
    layers = [group.layer for stack in architecture.stacks for group in stack.groups]
    if parallel.tensor > 1:
        for layer in layers:
            _check_tensor(layer, parallel.tensor)
    if parallel.expert > 1:
        _check_experts(parallel, [layer.feed_forward for layer in layers])
    if parallel.pipeline > 1:
        _check_stages(parallel, architecture)
    if parallel.context > 1 and architecture.fixed_length is not None:
        raise SpecError(
            "parallel.context", "inputs of a fixed length cannot be split across cards by context parallelism"
        )


def _check_tensor(layer: Layer, cards: int) -> None:
    """Reject a tensor parallelism over `cards` that does not divide the layer's heads or feed-forward width."""
    for mixer in (layer.mixer, layer.second_mixer, layer.cross_attention):
        if isinstance(mixer, Attention | LatentAttention) and mixer.heads % cards:
            raise SpecError(
                "parallel.tensor",
                f"{mixer.heads:,} attention heads are not divisible by {cards:,}",
                _divisors_hint(mixer.heads),
            )
        if isinstance(mixer, Attention) and mixer.kv_heads % cards and cards % mixer.kv_heads:
            reason = (
                f"{mixer.kv_heads:,} key-value heads can be neither divided nor repeated evenly for {cards:,} cards"
            )
            raise SpecError("parallel.tensor", reason, _divisors_hint(mixer.heads))
    block = layer.feed_forward
    widths = [block.intermediate] if isinstance(block, Mlp) else []
    if isinstance(block, Moe):
        widths = [block.intermediate, block.shared_intermediate]
    for width in widths:
        if width % cards:
            reason = f"a feed-forward width of {width:,} is not divisible by {cards:,}"
            raise SpecError("parallel.tensor", reason, "Take a degree that divides it, such as 2.")


def _divisors_hint(size: int) -> str:
    """Return a hint with the degrees above 1 that divide `size`."""
    return f"Possible values: {', '.join(str(cards) for cards in range(2, size + 1) if size % cards == 0)}."


def _check_experts(parallel: Parallel, blocks: list[Mlp | Moe | None]) -> None:
    """Reject an expert parallelism that does not divide the routed experts or the replicas."""
    routed = {block.experts for block in blocks if isinstance(block, Moe)}
    if not routed:
        raise SpecError("parallel.expert", "this model has no routed experts", "Set it to 1.")
    for experts in routed:
        if experts % parallel.expert:
            reason = f"{experts:,} experts are not divisible by {parallel.expert:,}"
            raise SpecError("parallel.expert", reason, _divisors_hint(experts))
    if (parallel.data or 1) % parallel.expert:
        reason = f"the number of replicas, {parallel.data:,}, is not divisible by {parallel.expert:,}"
        raise SpecError("parallel.expert", reason, hint=COUNT_HINT)


def _check_stages(parallel: Parallel, architecture: Architecture) -> None:
    """Reject pipeline stages that the model's layers cannot fill."""
    if architecture.kind not in _ONE_STACK:
        reason = "an encoder-decoder model cannot be split into pipeline stages"
        raise SpecError("parallel.pipeline", reason, "Set it to 1, or share the model by ZeRO.")
    layers = architecture.depth
    if parallel.pipeline * parallel.interleave > layers:
        stages = parallel.pipeline * parallel.interleave
        reason = f"{layers:,} layers cannot fill {stages:,} stages"
        raise SpecError("parallel.pipeline", reason, f"Take at most {layers:,} stages.")
    if parallel.pipeline_layers and sum(parallel.pipeline_layers) != layers:
        named = sum(parallel.pipeline_layers)
        raise SpecError(
            "parallel.pipeline_layers",
            f"the stages have {named:,} layers in total, but the model has {layers:,}",
            "Leave it unset to split the layers evenly.",
        )
