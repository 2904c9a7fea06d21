"""Whether a way to spread a workload goes with the network and the number of cards."""

from functools import lru_cache
from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe
from planner.workload.parallel import Parallel
from planner.workload.software.registry import DEFAULT, SOFTWARE, serving, trainer
from planner.workload.training import Training
from planner.workload.workload import Inference

_COUNT_HINT: Final = "Change one of them, or the number of cards."
_ONE_STACK: Final = ("decoder", "encoder", "vision-encoder", "vision-language")


def laid_out(workload: Training | Inference, architecture: Architecture, count: int) -> Parallel:
    """Return how `workload` is spread over `count` cards, with the number of replicas filled in.

    Raises:
        SpecError: If the cards are not as many as the ways to share them multiply to, or if the network or the
            software cannot be shared so.
    """
    if isinstance(workload, Training) and count > (trainer(workload.profile).most_cards or count):
        reason = f"{SOFTWARE[workload.profile].title} on several cards is not described"
        raise SpecError("profile", reason, f"Choose the profile {DEFAULT}.")
    parallel = _with_replicas(workload.parallel, count)
    if not parallel.is_plain:
        _check_network(parallel, architecture)
        _check_software(workload, parallel)
    return parallel


@lru_cache(maxsize=1024)
def _with_replicas(parallel: Parallel, count: int) -> Parallel:
    shards = parallel.model_shards
    if parallel.data is None and count % shards == 0:
        return parallel.evolve(data=count // shards)
    if parallel.data is not None and parallel.data * shards == count:
        return parallel
    if shards == 1:
        reason = f"{parallel.data:,} replicas need as many cards, not {count:,}"
        raise SpecError("parallel.data", reason, hint="Leave it out, or change the number of cards.")
    named = {"data": parallel.data, **{name: getattr(parallel, name) for name in ("tensor", "pipeline", "context")}}
    product = " × ".join(f"{name} {size:,}" for name, size in named.items() if size is not None and size > 1)
    if parallel.data is None:
        cards = "1 card is" if count == 1 else f"{count:,} cards are"
        raise SpecError("parallel", f"{cards} not a multiple of {product}", hint=_COUNT_HINT)
    needed = parallel.data * shards
    raise SpecError("parallel", f"{product} are {needed:,} cards, and there are {count:,}", hint=_COUNT_HINT)


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
        raise SpecError("parallel.expert", reason, hint=_COUNT_HINT)


def _check_stages(parallel: Parallel, architecture: Architecture) -> None:
    if architecture.kind not in _ONE_STACK:
        raise SpecError("parallel.pipeline", "a network with an encoder and a decoder is not cut into stages")
    layers = architecture.depth
    if parallel.pipeline * parallel.interleave > layers:
        stages = parallel.pipeline * parallel.interleave
        raise SpecError("parallel.pipeline", f"{layers:,} layers cannot fill {stages:,} stages")
    if parallel.interleave > 1 and layers % (parallel.pipeline * parallel.interleave):
        groups = parallel.pipeline * parallel.interleave
        raise SpecError("parallel.interleave", f"{layers:,} layers cannot be divided into {groups:,} even groups")
    if parallel.pipeline_layers and sum(parallel.pipeline_layers) != layers:
        named = sum(parallel.pipeline_layers)
        raise SpecError("parallel.pipeline_layers", f"the stages have {named:,} layers, and the network {layers:,}")


def _check_software(workload: Training | Inference, parallel: Parallel) -> None:
    if parallel.context > 1 and workload.attention == "eager":
        reason = "cards that share a sequence attend in a ring with flash attention, not eagerly"
        raise SpecError("parallel.context", reason, hint="Choose sdpa or flash.")
    if isinstance(workload, Training):
        _check_training(workload, parallel)
    else:
        _check_inference(workload, parallel)


def _check_training(workload: Training, parallel: Parallel) -> None:
    if parallel.offload == "optimizer" and parallel.zero == 0:
        raise SpecError("parallel.offload", "optimizer states are offloaded by ZeRO", hint="Set zero to 1, 2 or 3.")
    if parallel.offload in ("parameters", "nvme") and parallel.zero != 3:
        raise SpecError("parallel.offload", "parameters are offloaded by ZeRO-3 and FSDP", hint="Set zero to 3.")
    own, title = trainer(workload.profile), SOFTWARE[workload.profile].title
    if parallel.offload not in own.offloads and parallel.zero <= own.zero_limit:
        raise SpecError("parallel.offload", f"{title} offloads to RAM only", hint="Choose parameters.")
    if parallel.zero > own.zero_limit:
        raise SpecError("parallel.zero", f"{title} shares up to ZeRO {own.zero_limit}", hint="Set zero lower.")
    if parallel.pipeline > 1 and parallel.zero > own.zero_limit_in_pipeline:
        reason = f"{title}'s pipelines take ZeRO {own.zero_limit_in_pipeline} at most"
        raise SpecError("parallel.zero", reason, hint="Set zero lower, or share without stages.")


def _check_inference(workload: Inference, parallel: Parallel) -> None:
    if parallel.zero:
        raise SpecError("parallel.zero", "ZeRO shares what training keeps", hint="Share layers: pipeline or tensor.")
    if parallel.offload in ("optimizer", "nvme"):
        raise SpecError("parallel.offload", f"answering has no {parallel.offload} to offload", hint="Try parameters.")
    if parallel.offload not in serving(workload.profile).offloads:
        reason = f"{workload.profile} has a way of its own"
        raise SpecError("parallel.offload", reason, hint="llama.cpp takes gpu_layers.")
    if parallel.sequence:
        raise SpecError("parallel.sequence", "norms share their tokens in training only")
