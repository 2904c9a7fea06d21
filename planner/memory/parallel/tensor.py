"""One card's share of a network under tensor or expert parallelism.

The share is an `Architecture` itself, so that every formula for one card holds for it.
"""

from functools import lru_cache
from typing import Final

from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    Layer,
    Mixer,
    Mlp,
    Moe,
    Stack,
    StateMixer,
    StoredTensors,
    Tensor,
)
from planner.units import ceil_div

_OUTPUTS: Final = ("o_proj", "out_proj", "out_lin", "dense", "o")
_DOWN: Final = ("down_proj", "c_proj", "fc2", "fc_out", "lin2", "dense_4h_to_h", "wo", "w2")
_BY_ROWS: Final = frozenset((*_OUTPUTS, *_DOWN))
"""Projections divided along their input (row-parallel); all others are divided along their output (column-parallel)."""
_KEYS_AND_VALUES: Final = frozenset(("k_proj", "v_proj", "k_lin", "v_lin", "key", "value", "k", "v"))
_LATENTS: Final = ("q_a_proj", "kv_a_proj", "indexer.")
"""Projections into a latent that all heads read: every card holds these projections undivided."""


@lru_cache(maxsize=256)
def tensor_share(
    architecture: Architecture,
    cards: int,
    expert_cards: int = 1,
    vocabulary_multiple: int | None = 1,
    sequence: bool = False,
) -> Architecture:
    """Return one card's share of a network under tensor parallelism over `cards`, experts over `expert_cards`.

    The vocabulary rows of a card are rounded up to a multiple of `vocabulary_multiple`; if it is None, each card holds
    all of them. With `sequence` the cards share
    the tokens of norms, dropout and the residual stream as well.

    **Formula**: heads, feed-forward widths and the padded vocabulary ÷ t; keys and values ÷ min(t, their heads), since
    a head is not divided; routed experts ÷ e; norms, routers, latents and the biases of outputs are not divided.

    **Source**: Shoeybi et al. 2019, arXiv 1909.08053 §3 (matrices and vocabulary); Korthikanti et al. 2022,
    arXiv 2205.05198 §4.2 (sequence); vLLM `QKVParallelLinear` (repeated heads).

    **Assumes** that routers spread the tokens evenly over the cards that share the experts.
    """
    if cards == expert_cards == vocabulary_multiple == 1:
        return architecture
    stacks = tuple(
        _stack_share(stack, architecture, cards, expert_cards, vocabulary_multiple, sequence)
        for stack in architecture.stacks
    )
    vocabulary = architecture.vocabulary
    shared = architecture.evolve(
        stacks=stacks,
        head=tuple(
            _divide_vocabulary_rows(tensor, vocabulary, cards, vocabulary_multiple) for tensor in architecture.head
        ),
        vocabulary=None if vocabulary is None else _vocabulary_rows_per_card(vocabulary, cards, vocabulary_multiple),
        stored=(),
        tensor_cards=cards,
        draft=None if architecture.draft is None else _draft_share(architecture.draft, cards, vocabulary_multiple),
    )
    return shared.evolve(stored=_stored_share(architecture, shared))


def _draft_share(draft: Architecture, cards: int, vocabulary_multiple: int | None) -> Architecture:
    """Return one card's share of a draft, which is not divided if its heads cannot be.

    **Source**: vLLM 0.33 config/speculative.py `draft_tensor_parallel_size`: 1, or that of the model.
    """
    return tensor_share(draft, cards, cards, vocabulary_multiple) if draft_is_divided(draft, cards) else draft


def draft_is_divided(draft: Architecture, cards: int) -> bool:
    """Return whether `cards` tensor-parallel cards share a draft: whether they divide its heads evenly."""
    mixers = [group.layer.mixer for group in draft.main.groups]
    return all(mixer.heads % cards == 0 for mixer in mixers if isinstance(mixer, Attention | LatentAttention))


def _stack_share(
    stack: Stack,
    architecture: Architecture,
    cards: int,
    expert_cards: int,
    vocabulary_multiple: int | None,
    sequence: bool,
) -> Stack:
    """Return one card's share of `stack`."""
    groups = tuple(
        group.evolve(layer=_layer_share(group.layer, cards, expert_cards, sequence)) for group in stack.groups
    )
    before = tuple(
        _divide_vocabulary_rows(tensor, architecture.vocabulary, cards, vocabulary_multiple) for tensor in stack.before
    )
    return stack.evolve(groups=groups, before=before)


def _layer_share(layer: Layer, cards: int, expert_cards: int, sequence: bool) -> Layer:
    """Return one card's share of `layer`: heads, widths, experts and tensors."""
    return layer.evolve(
        mixer=_mixer_share(layer.mixer, cards),
        second_mixer=_mixer_share(layer.second_mixer, cards),
        cross_attention=_mixer_share(layer.cross_attention, cards),
        feed_forward=_feed_forward_share(layer.feed_forward, cards, expert_cards),
        stream_shards=cards if sequence else 1,
        tensors=tuple(_divided_tensor(tensor, layer, cards, expert_cards) for tensor in layer.tensors),
    )


def _mixer_share(mixer: Mixer | None, cards: int) -> Mixer | None:
    """Return one card's share of `mixer`: its heads or widths divided by `cards`; None without a mixer."""
    if isinstance(mixer, Attention):
        return mixer.evolve(heads=mixer.heads // cards, kv_heads=max(mixer.kv_heads // cards, 1))
    if isinstance(mixer, LatentAttention):
        return mixer.evolve(heads=mixer.heads // cards)
    if isinstance(mixer, StateMixer):
        return mixer.evolve(
            conv_state_elements=ceil_div(mixer.conv_state_elements, cards),
            recurrent_state_elements=ceil_div(mixer.recurrent_state_elements, cards),
            inner_dim=ceil_div(mixer.inner_dim, cards),
        )
    return None


def _feed_forward_share(block: Mlp | Moe | None, cards: int, expert_cards: int) -> Mlp | Moe | None:
    """Return one card's share of a feed-forward block: its width or its experts; None without a block."""
    if isinstance(block, Mlp):
        return block.evolve(intermediate=block.intermediate // cards)
    if isinstance(block, Moe):
        return block.evolve(
            intermediate=block.intermediate // cards,
            shared_intermediate=block.shared_intermediate // cards,
            experts=block.experts // expert_cards,
            top_k=min(block.top_k, block.experts // expert_cards) if block.every_expert else block.top_k,
            every_expert=block.every_expert and expert_cards == 1,
        )
    return None


def _divided_tensor(tensor: Tensor, layer: Layer, cards: int, expert_cards: int) -> Tensor:
    """Return one card's share of `tensor`, divided by heads, widths or experts where the parallelism divides it."""
    if tensor.role == "expert" and isinstance(layer.feed_forward, Moe):
        return _divided_expert(tensor, layer.feed_forward, cards, expert_cards)
    if tensor.role not in ("linear", "bias", "conv", "other") or any(part in tensor.name for part in _LATENTS):
        return tensor
    if cards == 1 or (tensor.role == "other" and not _has_value_per_head(tensor, layer)):
        return tensor
    name = _projection_name(tensor.name)
    if name in _BY_ROWS:
        return tensor if len(tensor.shape) < 2 else _divide_dimension(tensor, 1, cards)
    mixer = layer.cross_attention if _is_cross_attention(tensor.name) and layer.cross_attention else layer.mixer
    if isinstance(mixer, Attention) and tensor.shape[0] == mixer.q_dim + 2 * mixer.kv_dim and mixer.fused_qkv:
        own = mixer.q_dim // cards + 2 * mixer.head_dim * max(mixer.kv_heads // cards, 1)
        return tensor.evolve(shape=(own, *tensor.shape[1:]))
    shares = min(cards, mixer.kv_heads) if isinstance(mixer, Attention) and name in _KEYS_AND_VALUES else cards
    return _divide_dimension(tensor, 0, shares)


def _divided_expert(tensor: Tensor, block: Moe, cards: int, expert_cards: int) -> Tensor:
    """Return an expert tensor with copies divided over `expert_cards`, then the inner width over `cards`."""
    tensor = tensor.evolve(copies=tensor.copies // expert_cards)
    inner = (block.intermediate, 2 * block.intermediate)
    wide = next((place for place, size in enumerate(tensor.shape) if size in inner), None)
    return tensor if wide is None else _divide_dimension(tensor, wide, cards)


def _has_value_per_head(tensor: Tensor, layer: Layer) -> bool:
    """Return whether `tensor`, which is no projection, has one number per head or spans the inner width."""
    mixer = layer.mixer
    if isinstance(mixer, Attention):
        return tensor.shape[0] == mixer.heads
    return isinstance(mixer, StateMixer)


def _is_cross_attention(name: str) -> bool:
    """Return whether a tensor name belongs to cross-attention."""
    return "cross" in name or "encoder_attn" in name or "EncDec" in name


def _projection_name(name: str) -> str:
    """Return the projection in a tensor's name: `q_proj` for `self_attn.q_proj.weight`."""
    parts = [part for part in name.split(".") if part not in ("weight", "bias")]
    return ".".join(parts[-2:]) if parts[-2:] == ["intermediate", "dense"] else parts[-1]


def _divide_dimension(tensor: Tensor, place: int, cards: int) -> Tensor:
    """Return `tensor` with dimension `place` divided by `cards`, rounded up."""
    shape = list(tensor.shape)
    shape[place] = ceil_div(shape[place], cards)
    return tensor.evolve(shape=tuple(shape))


def _divide_vocabulary_rows(
    tensor: Tensor, vocabulary: int | None, cards: int, vocabulary_multiple: int | None
) -> Tensor:
    """Return `tensor` with vocabulary rows divided over `cards`; position tables stay undivided."""
    if vocabulary is None or tensor.shape[0] != vocabulary:
        return tensor
    return tensor.evolve(shape=(_vocabulary_rows_per_card(vocabulary, cards, vocabulary_multiple), *tensor.shape[1:]))


def _vocabulary_rows_per_card(vocabulary: int, cards: int, vocabulary_multiple: int | None) -> int:
    """Return the vocabulary rows of one card, rounded up to `vocabulary_multiple`; all if that is None."""
    if vocabulary_multiple is None:
        return vocabulary
    return ceil_div(vocabulary, vocabulary_multiple * cards) * vocabulary_multiple


def _stored_share(whole: Architecture, share: Architecture) -> tuple[StoredTensors, ...]:
    """Return the part of a checkpoint's tensors that a card loads, in proportion to its parameters."""
    before, after = parameters_by_place(whole), parameters_by_place(share)
    return tuple(
        part.evolve(bytes=ceil_div(part.bytes * after[part.place], before[part.place]))
        for part in whole.stored
        if before[part.place]
    )


def parameters_by_place(architecture: Architecture) -> dict[str, int]:
    """Return the number of parameters by place: embedding, layers, output, other."""
    layers = sum(group.layer.parameters * group.count for stack in architecture.stacks for group in stack.groups)
    output = sum(tensor.parameters for tensor in architecture.head)
    edges = [tensor for stack in architecture.stacks for tensor in (*stack.before, *stack.after)]
    tables = sum(tensor.parameters for tensor in edges if tensor.role == "embedding")
    other = sum(tensor.parameters for tensor in edges if tensor.role != "embedding")
    return {"embedding": tables, "layers": layers, "output": output, "other": other}
