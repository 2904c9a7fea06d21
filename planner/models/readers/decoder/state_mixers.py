"""Token mixers with a fixed-size state: Mamba, Mamba-2 and gated delta nets.

The state of the convolution holds its last inputs, as many as the kernel is long, as the cache of transformers 5.23
does (`cache_utils.LinearAttentionLayer`).
"""

from typing import NamedTuple

from planner.models.architecture import StateMixer
from planner.models.readers.blocks import MixerBlock
from planner.models.readers.tensors import RMS, Tensors, conv, linear, norm_tensors, tensor


class Mamba2Sizes(NamedTuple):
    """The dimensions of a Mamba-2 mixer."""

    heads: int
    head_dim: int
    groups: int
    state: int
    kernel: int

    @property
    def inner(self) -> int:
        """Return the width of the expanded stream of a Mamba-2 mixer."""
        return self.heads * self.head_dim

    @property
    def mixed(self) -> int:
        """Return the width of the Mamba-2 convolution: the expanded stream plus B and C of each group."""
        return self.inner + 2 * self.groups * self.state


def mamba_block(
    hidden: int,
    *,
    inner: int,
    state: int,
    kernel: int,
    rank: int,
    bias: bool,
    conv_bias: bool,
    prefix: str = "mixer.",
    normed: bool = False,
) -> MixerBlock:
    """Return a Mamba mixer; if `normed`, the time step, B and C are normalized (Jamba).

    **Source**: Mamba (arXiv:2312.00752) §3.4 and `modeling_mamba.py` of transformers 5.23.
    """
    mixer = StateMixer(
        name="mamba",
        conv_state_elements=inner * kernel,
        conv_kernel=kernel,
        recurrent_state_elements=inner * state,
        inner_dim=inner,
    )
    widths = {"dt": rank, "b": state, "c": state} if normed else {}
    norms = (found for name, width in widths.items() for found in norm_tensors(f"{name}_layernorm", width, RMS))
    tensors: Tensors = (
        *tensor("A_log", inner, state),
        *tensor("D", inner),
        *conv("conv1d", inner, inner, kernel, groups=inner, bias=conv_bias),
        *linear("in_proj", 2 * inner, hidden, bias=bias),
        *linear("x_proj", rank + 2 * state, inner),
        *linear("dt_proj", inner, rank, bias=True),
        *linear("out_proj", hidden, inner, bias=bias),
        *norms,
    )
    return MixerBlock(mixer, _prefixed_tensors(prefix, tensors))


def mamba2_block(
    hidden: int,
    scan: Mamba2Sizes,
    *,
    prefix: str,
    bias: bool,
    conv_bias: bool,
    out_bias: bool | None = None,
    normed: bool = True,
) -> MixerBlock:
    """Return a Mamba-2 mixer, by default with a gated norm before its output.

    **Source**: Mamba-2 (arXiv:2405.21060) §7 and `modeling_mamba2.py` of transformers 5.23.
    """
    mixer = StateMixer(
        name="mamba2",
        conv_state_elements=scan.mixed * scan.kernel,
        conv_kernel=scan.kernel,
        recurrent_state_elements=scan.inner * scan.state,
        inner_dim=scan.inner,
    )
    tensors: Tensors = (
        *tensor("dt_bias", scan.heads),
        *tensor("A_log", scan.heads),
        *tensor("D", scan.heads),
        *conv("conv1d", scan.mixed, scan.mixed, scan.kernel, groups=scan.mixed, bias=conv_bias),
        *linear("in_proj", scan.inner + scan.mixed + scan.heads, hidden, bias=bias),
        *(norm_tensors("norm", scan.inner, RMS) if normed else ()),
        *linear("out_proj", hidden, scan.inner, bias=bias if out_bias is None else out_bias),
    )
    return MixerBlock(mixer, _prefixed_tensors(prefix, tensors))


class DeltaNetSizes(NamedTuple):
    """The dimensions of a gated delta net: queries and keys in `key_heads`, values in `value_heads`."""

    key_heads: int
    key_dim: int
    value_heads: int
    value_dim: int
    kernel: int

    @property
    def keys(self) -> int:
        """Return the total width of the delta net's keys."""
        return self.key_heads * self.key_dim

    @property
    def values(self) -> int:
        """Return the total width of the delta net's values."""
        return self.value_heads * self.value_dim

    @property
    def mixed(self) -> int:
        """Return the width of the delta net's convolution: queries, keys and values."""
        return 2 * self.keys + self.values

    @property
    def mixer(self) -> StateMixer:
        """Return the state mixer of the delta net, whose state is a key × value matrix per value head."""
        return StateMixer(
            name="gated-delta-net",
            conv_state_elements=self.mixed * self.kernel,
            conv_kernel=self.kernel,
            recurrent_state_elements=self.values * self.key_dim,
            inner_dim=self.values,
        )


def delta_block(hidden: int, delta: DeltaNetSizes, *, fused: bool) -> MixerBlock:
    """Return a gated delta net; `fused` checkpoints have one projection for q, k, v and z, and one for b and a.

    **Source**: Gated Delta Networks (arXiv:2412.06464) and `modeling_qwen3_next.py` of transformers 5.23.
    """
    inputs = (
        {"in_proj_qkvz": delta.mixed + delta.values, "in_proj_ba": 2 * delta.value_heads}
        if fused
        else {
            "in_proj_qkv": delta.mixed,
            "in_proj_z": delta.values,
            "in_proj_b": delta.value_heads,
            "in_proj_a": delta.value_heads,
        }
    )
    tensors: Tensors = (
        *tensor("dt_bias", delta.value_heads),
        *tensor("A_log", delta.value_heads),
        *conv("conv1d", delta.mixed, delta.mixed, delta.kernel, groups=delta.mixed, bias=False),
        *(found for name, width in inputs.items() for found in linear(name, width, hidden)),
        *norm_tensors("norm", delta.value_dim, RMS),
        *linear("out_proj", hidden, delta.values),
    )
    return MixerBlock(delta.mixer, _prefixed_tensors("linear_attn.", tensors))


def _prefixed_tensors(prefix: str, tensors: Tensors) -> Tensors:
    return tuple(found.evolve(name=f"{prefix}{found.name}") for found in tensors)
