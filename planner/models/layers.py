"""Building blocks of architectures: tensors, norms, token mixers, feed-forward blocks, layers and stacks."""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from pydantic import Field

from planner.base import Spec

Role = Literal["linear", "expert", "embedding", "head", "norm", "bias", "router", "conv", "other"]
Activation = Literal[
    "silu", "gelu", "gelu-tanh", "gelu-new", "gelu-bloom", "quick-gelu", "relu", "relu2", "clamped-swiglu"
]
Grouping = Literal["native", "broadcast", "copied"]
LossInput = Literal["fp32-copy", "logits", "biased-logits"]


class Tensor(Spec):
    """A parameter tensor, or several copies of the same shape."""

    name: str = Field(description="as in the checkpoint, without the layer's prefix: self_attn.q_proj.weight")
    shape: tuple[int, ...]
    role: Role
    copies: int = Field(default=1, ge=1, description="number of such tensors per layer (experts)")

    @property
    def size(self) -> int:
        """Return the number of elements of one copy."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def parameters(self) -> int:
        """Return the number of elements of all copies."""
        return self.size * self.copies


class Norm(Spec):
    """The kind of normalization in a layer; all norms of the layer are of this kind."""

    kind: Literal["rms", "layer"]
    bias: bool = False
    native: bool = Field(
        default=True,
        description="one fused kernel; false for the step-by-step RMSNorm of Hugging Face, with its fp32 copy",
    )
    fp32_product: bool = Field(
        default=False, description="step-by-step norms that multiply by the weight before casting back (Gemma)"
    )
    upcast: bool = Field(default=False, description="the fused kernel reads an fp32 copy of the input (OLMo)")
    keeps_input: bool = Field(
        default=False, description="step-by-step norms that scale the input itself, not its fp32 copy (T5)"
    )


class Attention(Spec):
    """Softmax attention with grouped key/value heads (MHA, GQA and MQA)."""

    kind: Literal["attention"] = "attention"
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    window: int | None = Field(
        default=None, ge=1, description="tokens that a sliding-window or chunked layer attends to"
    )
    qk_norm: Literal["none", "head", "all", "bare"] = Field(
        default="none", description="norm of queries and keys: per head, over all heads together, or without weights"
    )
    fused_qkv: bool = Field(default=False, description="one projection whose output is split into q, k, v views")
    rotary: bool = True
    dropout: float = Field(default=0.0, ge=0, lt=1, description="of the attention probabilities, in training")
    kv_shared: bool = Field(default=False, description="reuses an earlier layer's keys and values: no cache of its own")
    sinks: bool = Field(default=False, description="learned per-head sink logits (gpt-oss)")
    heads_first: bool = Field(
        default=False,
        description="queries are laid out head by head in memory, and flash attention's output with them, which is "
        "then copied: where a share of each head is rotated and concatenated, and in Whisper",
    )
    grouping: Grouping = Field(
        default="native",
        description="how grouped keys and values reach the kernel: as groups, broadcast (Falcon with one) or copied "
        "for each query head before they are cached (Falcon's new decoder)",
    )
    fp32_scores: bool = Field(default=False, description="eager scores are computed from fp32 copies (GPT-J)")
    returns_scores: bool = Field(
        default=False, description="eager probabilities are returned and stay alive during the next layer (BLOOM)"
    )
    position_bias: bool = Field(default=False, description="a learned number for each head and distance is added (T5)")
    softcap: bool = Field(default=False, description="scores pass through tanh (Gemma 2), in the eager implementation")
    fp32_softmax: bool = Field(
        default=True, description="whether the eager implementation takes the softmax in fp32 and casts back"
    )
    sdpa: bool = Field(
        default=True, description="whether Hugging Face's code can call the fused kernel; false falls back to eager"
    )

    @property
    def q_dim(self) -> int:
        """Return the total width of the queries."""
        return self.heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        """Return the total width of the keys, which equals the width of the values."""
        return self.kv_heads * self.head_dim

    @property
    def cached_dim(self) -> int:
        """Return the width of the cached keys, which equals the width of the cached values."""
        return self.q_dim if self.grouping == "copied" else self.kv_dim


class LatentAttention(Spec):
    """Multi-head latent attention (MLA): keys and values are expanded from one small cached latent."""

    kind: Literal["latent"] = "latent"
    heads: int = Field(ge=1)
    q_lora_rank: int | None = Field(default=None, ge=1)
    kv_lora_rank: int = Field(ge=1)
    qk_nope_head_dim: int = Field(ge=1)
    qk_rope_head_dim: int = Field(ge=1)
    v_head_dim: int = Field(ge=1)
    indexer_dim: int = Field(default=0, ge=0, description="cached elements of a sparse-attention indexer per token")

    @property
    def latent_dim(self) -> int:
        """Return the number of cached elements per token."""
        return self.kv_lora_rank + self.qk_rope_head_dim


class StateMixer(Spec):
    """A token mixer with a fixed-size state instead of a KV cache, such as Mamba or a gated delta net."""

    kind: Literal["state"] = "state"
    name: Literal["mamba", "mamba2", "gated-delta-net", "short-conv", "rg-lru", "linear-attention", "rwkv"]
    conv_state_elements: int = Field(ge=0, description="per layer and sequence")
    recurrent_state_elements: int = Field(ge=0, description="per layer and sequence, kept in fp32 by most engines")
    inner_dim: int = Field(ge=1, description="width of the expanded stream, which decides the activations")
    conv_kernel: int = Field(
        default=0, ge=0, description="kernel size, if the convolution's state holds that many inputs"
    )

    @property
    def conv_inputs_kept(self) -> int:
        """Return the number of convolution-state elements in engines that do not store the newest input.

        **Source**: vLLM 0.33 model_executor/layers/mamba/mamba_utils.py (kernel − 1); llama.cpp 0.5.0 llama-hparams.cpp
        n_embd_r (d_conv − 1, and n_shortconv_l_cache − 1). transformers keeps as many inputs as the kernel is long.
        """
        newest = self.conv_state_elements // self.conv_kernel if self.conv_kernel else 0
        return self.conv_state_elements - newest


Mixer = Attention | LatentAttention | StateMixer


class Mlp(Spec):
    """A dense feed-forward block."""

    kind: Literal["mlp"] = "mlp"
    intermediate: int = Field(ge=1)
    gated: bool
    activation: Activation = "silu"
    fused_gate_up: bool = Field(default=False, description="one projection for gate and up")
    dropout: float = Field(default=0.0, ge=0, lt=1, description="of the activated inner width (T5), in training")


class Moe(Spec):
    """Mixture of experts with `top_k` selected experts per token and an optional shared expert."""

    kind: Literal["moe"] = "moe"
    experts: int = Field(ge=1)
    top_k: int = Field(ge=1)
    intermediate: int = Field(ge=1, description="width of one expert")
    gated: bool = True
    activation: Activation = "silu"
    shared_intermediate: int = Field(default=0, ge=0, description="width of all shared experts together")
    fp32_router: bool = Field(default=False, description="the router reads an fp32 copy of its input (DeepSeek)")
    shared_gate: bool = Field(default=False, description="the shared expert's output is weighted, too (Qwen2)")
    every_expert: bool = Field(
        default=False, description="each expert computes every token, weighted to nothing where not chosen (Llama 4)"
    )

    @property
    def visits(self) -> int:
        """Return the number of experts that compute each token."""
        return self.experts if self.every_expert else self.top_k


class Layer(Spec):
    """One kind of layer: its tensors, and the properties that determine activations and KV cache."""

    mixer: Mixer | None = Field(default=None, discriminator="kind")
    second_mixer: Mixer | None = Field(
        default=None, discriminator="kind", description="parallel to the first, as in Falcon-H1 and Hymba"
    )
    cross_attention: Attention | None = None
    feed_forward: Mlp | Moe | None = Field(default=None, discriminator="kind")
    norm: Norm
    norm_count: int = Field(
        ge=0, description="number of norms over the hidden width, without those of queries and keys"
    )
    parallel: bool = Field(default=False, description="attention and feed-forward read the same normed input")
    post_norms: bool = Field(
        default=False, description="norms follow the blocks, which read the residual stream directly (BERT, OLMo 2)"
    )
    hidden_dropout: float = Field(default=0.0, ge=0, lt=1, description="of each block's output, in training")
    scaled: bool = Field(
        default=False, description="each block's output is multiplied by a learned vector (DINOv2, BEiT)"
    )
    stream_shards: int = Field(
        default=1, ge=1, description="cards that shard the tokens of norms, dropout and residual stream"
    )
    tensors: tuple[Tensor, ...]

    @cached_property
    def parameters(self) -> int:
        """Return the number of parameters of one layer."""
        return sum(tensor.parameters for tensor in self.tensors)


class LayerGroup(Spec):
    """A number of identical layers with their positions in the stack."""

    layer: Layer
    count: int = Field(ge=1)
    places: tuple[int, ...] = Field(default=(), description="their positions in the stack, from 0")


class Stack(Spec):
    """A sequence of layers with the tensors before and after it."""

    name: Literal["decoder", "encoder", "vision", "audio"]
    hidden: int = Field(ge=1)
    groups: tuple[LayerGroup, ...]
    before: tuple[Tensor, ...] = Field(default=(), description="embeddings, patch convolution, their norms")
    after: tuple[Tensor, ...] = Field(default=(), description="final norm, pooler, projector")
    positions: int | None = Field(default=None, ge=1, description="fixed length of its input, where it has one")
    merge: int | None = Field(
        default=None, ge=1, description="patches of a vision tower that are merged into one token of the language model"
    )
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    first_place: int = Field(
        default=0, ge=0, description="number of layers before it, if it is a part of a larger stack"
    )
    whole_depth: int | None = Field(default=None, ge=1, description="number of layers of that larger stack")

    @cached_property
    def layer_count(self) -> int:
        """Return the number of layers."""
        return sum(group.count for group in self.groups)

    @cached_property
    def parameters(self) -> int:
        """Return the number of parameters of the stack."""
        own = sum(tensor.parameters for tensor in (*self.before, *self.after))
        return own + sum(group.layer.parameters * group.count for group in self.groups)

    @cached_property
    def patch_side(self) -> int | None:
        """Return the side of a vision tower's patches in pixels, or None without a patch convolution."""
        cuts = (tensor.shape[-1] for tensor in self.before if tensor.role == "conv" and len(tensor.shape) > 3)
        return next(cuts, None)

    def tensors_with_counts(self) -> Iterator[tuple[Tensor, int]]:
        """Yield each distinct tensor of the stack with its number of occurrences."""
        yield from ((tensor, tensor.copies) for tensor in (*self.before, *self.after))
        for group in self.groups:
            yield from ((tensor, tensor.copies * group.count) for tensor in group.layer.tensors)


class StoredTensors(Spec):
    """Total size of the checkpoint tensors that have one format and belong to one part of the network."""

    format: str = Field(min_length=1, description="name in the file: BF16, F8_E4M3, Q4_K")
    place: Literal["embedding", "layers", "output", "other"]
    elements: int = Field(ge=0, description="number in the file; packed formats count words")
    bytes: int = Field(ge=0)
