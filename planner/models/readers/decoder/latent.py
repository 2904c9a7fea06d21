"""Decoders with multi-head latent attention: DeepSeek V2 and V3 and their relatives.

**Source**: DeepSeek-V2 (arXiv:2405.04434) §2.1 and the modelling code of transformers 5.23. Layers that only predict
further tokens (`num_nextn_predict_layers`) are in the checkpoints but not in these networks, and are not counted.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from planner.models.architecture import Architecture, LatentAttention
from planner.models.readers.blocks import MixerBlock, MlpStyle
from planner.models.readers.decoder.experts import ExpertStyle, after_dense_layers, counted_shared, forward_blocks
from planner.models.readers.decoder.family import Frame, assemble
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, Tensors, latent_tensors, linear, norm_tensors
from planner.models.readers.registry import Reader
from planner.models.readers.sizes import Sizes, read_sizes

_INDEXER_KINDS: Final = {"F": True, "S": False, "full": True, "shared": False}


@dataclass(frozen=True)
class LatentFamily:
    """How a family with latent attention differs from DeepSeek V3."""

    dense_layers: int = 3
    shared: int = 1
    indexer: bool = False

    def read(self, fields: Fields) -> Architecture:
        """Return the architecture that a configuration of this family describes."""
        # A head's width is that of its two parts; the configuration's head_dim means other things.
        sizes = read_sizes(fields, head_dim=_head_dim(fields))
        experts = ExpertStyle(
            fp32_router=True,
            experts=("n_routed_experts", "num_experts", "num_local_experts"),
            sparse=after_dense_layers(self.dense_layers),
            shared=counted_shared("n_shared_experts", self.shared),
        )
        forwards = forward_blocks(fields, sizes, experts, MlpStyle())
        _note_unbuilt_layers(fields)
        return assemble(fields, sizes, Frame(), self._mixers(fields, sizes), forwards)

    def _mixers(self, fields: Fields, sizes: Sizes) -> tuple[MixerBlock, ...]:
        plain = _latent(fields, sizes, indexer_dim=0)
        if not self.indexer:
            return (plain,) * sizes.layers
        indexed = _indexed(fields, sizes)
        return tuple(indexed if own else plain for own in _indexer_layers(fields, sizes.layers))


def _head_dim(fields: Fields) -> int:
    return fields.integer("qk_nope_head_dim") + fields.integer("qk_rope_head_dim")


def _latent(fields: Fields, sizes: Sizes, *, indexer_dim: int) -> MixerBlock:
    mixer = LatentAttention(
        heads=sizes.heads,
        q_lora_rank=fields.optional_integer("q_lora_rank"),
        kv_lora_rank=fields.integer("kv_lora_rank"),
        qk_nope_head_dim=fields.integer("qk_nope_head_dim"),
        qk_rope_head_dim=fields.integer("qk_rope_head_dim"),
        v_head_dim=fields.integer("v_head_dim"),
        indexer_dim=indexer_dim,
    )
    bias = fields.flag("attention_bias", default=False)
    return MixerBlock(mixer, latent_tensors(mixer, sizes.hidden, bias=bias))


def _indexed(fields: Fields, sizes: Sizes) -> MixerBlock:
    width = fields.integer("index_head_dim", default=128)
    mixer, tensors = _latent(fields, sizes, indexer_dim=width)
    return MixerBlock(mixer, tensors + _indexer_tensors(fields, sizes, width))


def _indexer_tensors(fields: Fields, sizes: Sizes, width: int) -> Tensors:
    """Return the tensors that choose which tokens a layer attends to (DeepSeek-V3.2, arXiv:2512.02556 §2.1)."""
    heads = fields.integer("index_n_heads", high=MAX_LAYERS)
    return (
        *linear("self_attn.indexer.wq_b", heads * width, fields.integer("q_lora_rank")),
        *linear("self_attn.indexer.wk", width, sizes.hidden),
        *norm_tensors("self_attn.indexer.k_norm", width, LAYER),
        *linear("self_attn.indexer.weights_proj", heads, sizes.hidden),
    )


def _indexer_layers(fields: Fields, layers: int) -> tuple[bool, ...]:
    stated = fields.texts("indexer_types")
    if stated is None:
        return _scheduled_indexers(fields, layers)
    if len(stated) != layers or not set(stated) <= set(_INDEXER_KINDS):
        fields.fail("indexer_types", f"must say full or shared for each of the {layers} layers")
    return tuple(_INDEXER_KINDS[kind] for kind in stated)


def _scheduled_indexers(fields: Fields, layers: int) -> tuple[bool, ...]:
    pattern = fields.text("index_topk_pattern", default="")
    if pattern:
        if len(pattern) != layers or not set(pattern) <= {"F", "S"}:
            fields.fail("index_topk_pattern", f"must hold F or S for each of the {layers} layers")
        return tuple(_INDEXER_KINDS[letter] for letter in pattern)
    every = fields.integer("index_topk_freq", default=1)
    offset = fields.integer("index_skip_topk_offset", default=2, low=0)
    return tuple(max(place - offset + 1, 0) % every == 0 for place in range(layers))


def _note_unbuilt_layers(fields: Fields) -> None:
    extra = fields.integer("num_nextn_predict_layers", default=0, low=0, high=MAX_LAYERS)
    if extra:
        layers = "1 layer that predicts" if extra == 1 else f"{extra:,} layers that predict"
        stored = "is" if extra == 1 else "are"
        fields.note(f"{layers} further tokens {stored} stored in the checkpoint and not counted")


READERS: Final[Mapping[str, Reader]] = {
    "deepseek_v2": LatentFamily(dense_layers=0, shared=2).read,
    "deepseek_v3": LatentFamily().read,
    "deepseek_v32": LatentFamily(indexer=True).read,
    "glm4_moe_lite": LatentFamily(dense_layers=1).read,
    "glm_moe_dsa": LatentFamily(indexer=True).read,
}
