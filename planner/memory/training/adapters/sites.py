"""Where the projections of a layer stand, and what becomes of them: frozen, trained or adapted."""

from functools import lru_cache
from typing import Literal, NamedTuple

from planner.models.architecture import LatentAttention, Layer, Mlp, Moe, Tensor

Status = Literal["frozen", "trained", "adapted"]


class Uses(NamedTuple):
    """How many projections read one tensor, by what becomes of them."""

    trained: int = 0
    adapted: int = 0
    frozen: int = 0

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.trained + self.adapted + self.frozen


class LayerTuning(NamedTuple):
    """What is trained in a layer: the status of each of its tensors, in their order.

    `reached` says whether the derivative goes on to what is before the layer, so that its first operations keep
    something even where they are frozen.

    **Source** for checkpoints: transformers `PreTrainedModel.enable_input_require_grads`.
    """

    statuses: tuple[Status, ...]
    reached: bool = True


class Sites(NamedTuple):
    """The projections of a layer by where they stand: what reads the normed stream, and what writes back to it.

    `inner` are those in between, which read what another one put out: of latents, of the indexer.
    """

    mixer_in: tuple[int, ...]
    mixer_out: tuple[int, ...]
    inner: tuple[int, ...]
    cross: tuple[int, ...]
    forward_in: tuple[int, ...]
    forward_out: tuple[int, ...]
    shared_gate: tuple[int, ...]
    router: tuple[int, ...]
    experts: tuple[int, ...]


@lru_cache(maxsize=1024)
def sites_of(layer: Layer, hidden: int) -> Sites:
    """Return the places of `layer.tensors` at which each kind of projection stands.

    **Assumes** what readers do: the mixer's projections come before the feed-forward block's, and each block's last
    is the one that writes to the stream.
    """
    every = [i for i, tensor in enumerate(layer.tensors) if tensor.role == "linear" and len(tensor.shape) == 2]
    indexing = [i for i in every if "indexer" in layer.tensors[i].name]
    linear = [i for i in every if i not in indexing]
    block = layer.feed_forward
    gate = [i for i, tensor in enumerate(layer.tensors) if _weighs_shared_expert(tensor)]
    linear = [i for i in linear if i not in gate]
    split = len(linear) - _forward_count(block)
    mixer, forward = linear[:split], linear[split:]
    cross = mixer[-4:] if layer.cross_attention is not None else []
    mixer = mixer[: len(mixer) - len(cross)]
    latent = isinstance(layer.mixer, LatentAttention)
    inside = [i for i in mixer[:-1] if not latent or layer.tensors[i].shape[1] == hidden]
    return Sites(
        mixer_in=tuple(inside),
        mixer_out=tuple(mixer[-1:]),
        inner=(*(i for i in mixer[:-1] if i not in inside), *indexing),
        cross=tuple(cross),
        forward_in=tuple(forward[:-1]),
        forward_out=tuple(forward[-1:]),
        shared_gate=tuple(gate),
        router=tuple(i for i, tensor in enumerate(layer.tensors) if tensor.role == "router" and i not in gate),
        experts=tuple(i for i, tensor in enumerate(layer.tensors) if tensor.role == "expert"),
    )


def is_linear(tensor: Tensor) -> bool:
    """Return whether `tensor` is the matrix of a linear layer inside the network, to which adapters can be added.

    Routers hold a plain parameter, but what weighs a shared expert is a linear layer with one output.

    **Source**: transformers 5.23, `TopKRouter` classes and `Qwen2MoeSparseMoeBlock.shared_expert_gate`.
    """
    return len(tensor.shape) == 2 and (tensor.role == "linear" or _weighs_shared_expert(tensor))


def _weighs_shared_expert(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2 and tensor.shape[0] == 1 and tensor.role in ("linear", "router")


def _forward_count(block: Mlp | Moe | None) -> int:
    if isinstance(block, Mlp):
        return 3 if block.gated and not block.fused_gate_up else 2
    return 3 if isinstance(block, Moe) and block.shared_intermediate else 0


def uses(tuning: LayerTuning, places: tuple[int, ...]) -> Uses:
    """Return how many of the projections at `places` are trained, adapted and frozen."""
    found = [tuning.statuses[place] for place in places]
    return Uses(found.count("trained"), found.count("adapted"), found.count("frozen"))
