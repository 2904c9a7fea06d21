"""Decoders without attention: Mamba, Mamba-2, Falcon Mamba and RWKV."""

import math
from collections.abc import Mapping
from typing import Final

from planner.models.architecture import Architecture, Layer, Mlp, StateMixer
from planner.models.readers.blocks import MixerBlock
from planner.models.readers.decoder.state_mixers import Scan, mamba2_block, mamba_block
from planner.models.readers.fields import MAX_LAYERS, Fields
from planner.models.readers.parts import LAYER, RMS, Tensors, decoder, embedding, linear, norm_tensors
from planner.models.readers.registry import Reader
from planner.models.readers.towers import repeated, tensor

_KERNEL: Final = 4
_EXPAND: Final = 2


def read_mamba(fields: Fields) -> Architecture:
    """Read Mamba, and Falcon Mamba, whose further norms have no weights."""
    hidden = fields.integer("hidden_size", "d_model")
    block = mamba_block(
        hidden,
        inner=fields.integer("expand", default=_EXPAND) * hidden,
        state=fields.integer("state_size"),
        kernel=fields.integer("conv_kernel", default=_KERNEL),
        rank=fields.automatic_integer("time_step_rank", default=math.ceil(hidden / 16)),
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    return _pure(fields, hidden, block, tied=True)


def read_mamba2(fields: Fields) -> Architecture:
    """Read Mamba-2."""
    hidden = fields.integer("hidden_size")
    scan = Scan(
        heads=fields.integer("num_heads", high=MAX_LAYERS),
        head_dim=fields.integer("head_dim"),
        groups=fields.integer("n_groups"),
        state=fields.integer("state_size"),
        kernel=fields.integer("conv_kernel", default=_KERNEL),
    )
    block = mamba2_block(
        hidden,
        scan,
        prefix="mixer.",
        bias=fields.flag("use_bias", default=False),
        conv_bias=fields.flag("use_conv_bias", default=True),
    )
    return _pure(fields, hidden, block, tied=False)


def read_rwkv(fields: Fields) -> Architecture:
    """Read RWKV-4.

    Its state is the last input of both blocks, and a numerator, a denominator and a maximum in fp32
    (`modeling_rwkv.py` of transformers 5.23).
    """
    hidden = fields.integer("hidden_size")
    width = fields.integer("attention_hidden_size", default=hidden)
    inner = fields.integer("intermediate_size", default=4 * hidden)
    mixer = StateMixer(name="rwkv", conv_state_elements=2 * hidden, recurrent_state_elements=3 * width, inner_dim=width)
    layer = Layer(
        mixer=mixer,
        feed_forward=Mlp(intermediate=inner, gated=False, activation="relu2"),
        norm=LAYER,
        norm_count=2,
        tensors=_rwkv_tensors(hidden, width, inner),
    )
    vocabulary = fields.integer("vocab_size")
    return decoder(
        fields,
        hidden=hidden,
        vocabulary=vocabulary,
        groups=repeated(layer, _layers(fields)),
        before=(*embedding("embeddings", vocabulary, hidden), *norm_tensors("blocks.0.pre_ln", hidden, LAYER)),
        after=norm_tensors("ln_out", hidden, LAYER),
        head=linear("head", vocabulary, hidden, role="head"),
        tied=fields.flag("tie_word_embeddings", default=False),
        max_context=fields.optional_integer("context_length"),
    )


def _rwkv_tensors(hidden: int, width: int, inner: int) -> Tensors:
    mixed = (*(f"attention.time_mix_{name}" for name in ("key", "value", "receptance")),)
    mixed = (*mixed, *(f"feed_forward.time_mix_{name}" for name in ("key", "receptance")))
    return (
        *norm_tensors("ln1", hidden, LAYER),
        *norm_tensors("ln2", hidden, LAYER),
        *tensor("attention.time_decay", width),
        *tensor("attention.time_first", width),
        *(found for name in mixed for found in tensor(name, 1, 1, hidden)),
        *(found for name in ("key", "value", "receptance") for found in linear(f"attention.{name}", width, hidden)),
        *linear("attention.output", hidden, width),
        *linear("feed_forward.key", inner, hidden),
        *linear("feed_forward.receptance", hidden, hidden),
        *linear("feed_forward.value", hidden, inner),
    )


def _pure(fields: Fields, hidden: int, block: MixerBlock, *, tied: bool) -> Architecture:
    """Return a decoder whose layers are a norm and a mixer; its context has no bound."""
    vocabulary = fields.integer("vocab_size")
    layer = Layer(
        mixer=block.mixer, norm=RMS, norm_count=1, tensors=(*norm_tensors("norm", hidden, RMS), *block.tensors)
    )
    return decoder(
        fields,
        hidden=hidden,
        vocabulary=vocabulary,
        groups=repeated(layer, _layers(fields)),
        before=embedding("backbone.embeddings", vocabulary, hidden),
        after=norm_tensors("backbone.norm_f", hidden, RMS),
        tied=fields.flag("tie_word_embeddings", default=tied),
        max_context=None,
    )


def _layers(fields: Fields) -> int:
    return fields.integer("num_hidden_layers", "n_layer", high=MAX_LAYERS)


READERS: Final[Mapping[str, Reader]] = {
    "falcon_mamba": read_mamba,
    "mamba": read_mamba,
    "mamba2": read_mamba2,
    "rwkv": read_rwkv,
}
