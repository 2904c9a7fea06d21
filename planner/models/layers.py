"""Building blocks of architectures: tensors, norms, token mixers, feed-forward blocks, layers and stacks."""

from collections.abc import Iterator
from functools import cached_property
from typing import Literal

from pydantic import Field

from planner.base import Spec

Role = Literal["linear", "expert", "embedding", "head", "norm", "bias", "router", "conv", "other"]
Activation = Literal[
    "silu",
    "gelu",
    "gelu-tanh",
    "gelu-new",
    "gelu-fast",
    "gelu-bloom",
    "quick-gelu",
    "relu",
    "relu2",
    "clamped-swiglu",
]
Grouping = Literal["native", "broadcast", "copied"]
LossInput = Literal["fp32-copy", "logits", "biased-logits"]
Packing = Literal["apart", "split", "masked"]


class Tensor(Spec):
    """A parameter tensor, or several equal parameter tensors such as one per expert."""

    name: str = Field(description="name in the checkpoint without the layer's prefix, such as self_attn.q_proj.weight")
    shape: tuple[int, ...]
    role: Role
    copies: int = Field(default=1, ge=1, description="number of equal tensors per layer, such as experts")
    frozen: bool = Field(default=False, description="whether the code freezes it: Pegasus's sinusoidal positions")

    @property
    def size(self) -> int:
        """Return the number of elements in one copy of the tensor."""
        size = 1
        for extent in self.shape:
            size *= extent
        return size

    @property
    def parameters(self) -> int:
        """Return the number of elements in all copies of the tensor."""
        return self.size * self.copies


class Norm(Spec):
    """The kind of normalization in a layer, which all its norms share."""

    kind: Literal["rms", "layer"]
    bias: bool = False
    native: bool = Field(
        default=True,
        description="whether the norm is one fused kernel, not Hugging Face's step-by-step RMSNorm with an fp32 copy",
    )
    fp32_product: bool = Field(
        default=False, description="whether a step-by-step norm multiplies by the weight before casting back (Gemma)"
    )
    upcast: bool = Field(default=False, description="whether the fused kernel reads an fp32 copy of the input (OLMo)")
    keeps_input: bool = Field(
        default=False, description="whether a step-by-step norm scales the input itself, not its fp32 copy (T5)"
    )
    autocasts: bool = Field(
        default=False, description="whether the norm runs in autocast's format, not in the residual stream's (Nemotron)"
    )


class Attention(Spec):
    """Softmax attention with grouped key/value heads (MHA, GQA and MQA)."""

    kind: Literal["attention"] = "attention"
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    window: int | None = Field(
        default=None, ge=1, description="attention window in tokens, for sliding-window or chunked attention"
    )
    qk_norm: Literal["none", "head", "all", "bare"] = Field(
        default="none", description="norm of queries and keys: per head, over all heads together, or without weights"
    )
    fused_qkv: bool = Field(
        default=False, description="whether one projection's output is split into views for q, k and v"
    )
    rotary: bool = True
    fp32_rotation: bool = Field(
        default=False, description="whether queries and keys are rotated as fp32 copies (Qwen's vision towers)"
    )
    dropout: float = Field(
        default=0.0, ge=0, lt=1, description="dropout probability of the attention weights in training"
    )
    kv_shared: bool = Field(
        default=False,
        description="whether the layer reuses an earlier layer's keys and values, without a KV cache of its own",
    )
    sinks: bool = Field(default=False, description="whether each head has a learned sink logit (gpt-oss)")
    heads_first: bool = Field(
        default=False,
        description="whether queries, and flash attention's output, are laid out head by head, so that the output is "
        "copied, as with partial rotary embeddings and in Whisper",
    )
    joined: bool = Field(
        default=False,
        description="whether the outputs of several images are joined by a copy (Qwen's vision towers)",
    )
    grouping: Grouping = Field(
        default="native",
        description="how grouped keys and values reach the attention kernel: as groups, broadcast (Falcon, one group) "
        "or copied for each query head before caching (Falcon's new decoder)",
    )
    fp32_scores: bool = Field(
        default=False, description="whether eager attention computes scores from fp32 copies (GPT-J)"
    )
    returns_scores: bool = Field(
        default=False,
        description="whether eager attention returns probabilities, which then live during the next layer (BLOOM)",
    )
    boolean_mask: bool = Field(
        default=False,
        description="whether eager attention's mask is of booleans, and the masked scores replace the scores (MPT)",
    )
    always_masked: bool = Field(
        default=False, description="whether fused attention is handed a mask even without a window (Falcon)"
    )
    late_outputs: int = Field(
        default=0,
        ge=0,
        description="tensors as wide as the queries that eager attention holds beside projections and scores at its "
        "end: BLOOM's queries, merged heads, output and its sum with the stream; MPT's product and its copy",
    )
    position_bias: bool = Field(
        default=False, description="whether a learned bias for each head and distance is added to the scores (T5)"
    )
    gathered_rows: tuple[int, ...] = Field(
        default=(), description="rows of each table of relative positions from which scores are gathered (DeBERTa)"
    )
    softcap: bool = Field(default=False, description="whether scores pass through tanh in eager attention (Gemma 2)")
    fp32_softmax: bool = Field(
        default=True, description="whether eager attention computes the softmax in fp32 and casts back"
    )
    sdpa: bool = Field(
        default=True,
        description="whether Hugging Face's code can call fused attention; otherwise it falls back to eager",
    )

    @property
    def q_dim(self) -> int:
        """Return the total width of the queries over all heads."""
        return self.heads * self.head_dim

    @property
    def kv_dim(self) -> int:
        """Return the total width of the keys over all heads, which equals the width of the values."""
        return self.kv_heads * self.head_dim

    @property
    def cached_dim(self) -> int:
        """Return the width of the keys in the KV cache, which equals the width of the values."""
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
    indexer_dim: int = Field(default=0, ge=0, description="elements per token that a sparse-attention indexer caches")

    @property
    def latent_dim(self) -> int:
        """Return the number of elements that latent attention caches per token."""
        return self.kv_lora_rank + self.qk_rope_head_dim


class StateMixer(Spec):
    """A token mixer with a fixed-size state instead of a KV cache, such as Mamba or a gated delta net."""

    kind: Literal["state"] = "state"
    name: Literal["mamba", "mamba2", "gated-delta-net", "short-conv", "rg-lru", "linear-attention", "rwkv"]
    conv_state_elements: int = Field(ge=0, description="elements of the convolution state per layer and sequence")
    recurrent_state_elements: int = Field(
        ge=0, description="elements of the recurrent state per layer and sequence, kept in fp32 by most engines"
    )
    inner_dim: int = Field(ge=1, description="width of the mixer's expanded stream, which determines activation memory")
    conv_kernel: int = Field(
        default=0, ge=0, description="kernel size of the convolution if its state holds as many inputs, else 0"
    )

    @property
    def conv_inputs_kept(self) -> int:
        """Return the elements of the convolution state in engines that do not store the newest input.

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
    fused_gate_up: bool = Field(default=False, description="whether gate and up projection are fused into one")
    recast: bool = Field(
        default=False,
        description="whether the last projection's input is cast to the format of its weights, and under autocast back "
        "from it (T5)",
    )
    inner_norm: bool = Field(
        default=False, description="whether a step-by-step norm reads what the last projection reads (BitNet)"
    )
    dropout: float = Field(
        default=0.0, ge=0, lt=1, description="dropout probability of the feed-forward activations in training (T5)"
    )


class Moe(Spec):
    """Mixture of experts with `top_k` selected experts per token and an optional shared expert."""

    kind: Literal["moe"] = "moe"
    experts: int = Field(ge=1)
    top_k: int = Field(ge=1)
    intermediate: int = Field(ge=1, description="feed-forward width of one expert")
    gated: bool = True
    activation: Activation = "silu"
    shared_intermediate: int = Field(default=0, ge=0, description="feed-forward width of all shared experts together")
    fp32_router: bool = Field(
        default=False, description="whether the router reads an fp32 copy of its input (DeepSeek)"
    )
    shared_gate: bool = Field(default=False, description="whether a gate weights the shared expert's output (Qwen2)")
    every_expert: bool = Field(
        default=False, description="whether every expert computes every token, with weight 0 if not selected (Llama 4)"
    )

    @property
    def visits(self) -> int:
        """Return the number of experts that compute each token."""
        return self.experts if self.every_expert else self.top_k


class Layer(Spec):
    """One kind of layer: its tensors, and the properties that determine activations and KV cache."""

    mixer: Mixer | None = Field(default=None, discriminator="kind")
    second_mixer: Mixer | None = Field(
        default=None, discriminator="kind", description="token mixer parallel to the first, as in Falcon-H1 and Hymba"
    )
    cross_attention: Attention | None = None
    feed_forward: Mlp | Moe | None = Field(default=None, discriminator="kind")
    norm: Norm
    norm_count: int = Field(ge=0, description="number of norms over the hidden width, without query and key norms")
    parallel: bool = Field(
        default=False, description="whether attention and feed-forward block read the same normed input"
    )
    post_norms: bool = Field(
        default=False,
        description="whether norms follow the blocks, which read the residual stream directly (BERT, OLMo 2)",
    )
    hidden_dropout: float = Field(
        default=0.0, ge=0, lt=1, description="dropout probability of each block's output in training"
    )
    scaled: bool = Field(
        default=False, description="whether each block's output is multiplied by a learned vector (DINOv2, BEiT)"
    )
    named_streams: int = Field(
        default=0,
        ge=0,
        description="tensors of the stream's width, beyond its input, sum and norm, that the code still names while "
        "the feed-forward block runs: StableLM's first norm and attention output",
    )
    stream_shards: int = Field(
        default=1,
        ge=1,
        description="number of GPUs over which the tokens of norms, dropout and residual stream are sharded",
    )
    tensors: tuple[Tensor, ...]

    @property
    def parameters(self) -> int:
        """Return the number of parameters in one layer."""
        return sum(tensor.parameters for tensor in self.tensors)


class LayerGroup(Spec):
    """A number of identical layers with their positions in the stack."""

    layer: Layer
    count: int = Field(ge=1)
    places: tuple[int, ...] = Field(default=(), description="positions of the layers in the stack, from 0")


class ImageReading(Spec):
    """The reading of a prompt's images by a vision-language model, and what its code keeps of them meanwhile."""

    packing: Packing = Field(
        default="apart",
        description="how several images go through the tower: as sequences of their own, as one sequence that "
        "attention splits into images (Qwen-VL), or as one with a mask for each pair of patches (Pixtral)",
    )
    position_bytes: int = Field(
        default=0, ge=0, description="bytes per patch of fp32 tables of positions, which live while the tower runs"
    )
    skipped: int = Field(
        default=0, ge=0, description="tokens of an image that the prompt does not get, such as LLaVA's class token"
    )
    kept_outputs: int = Field(
        default=1, ge=0, description="outputs of the tower's layers that are kept while the prompt is read"
    )
    kept_features: int = Field(
        default=1, ge=0, description="tensors of an image's tokens, as wide as the language model, that are kept then"
    )
    prompt_masks: int = Field(
        default=0, ge=0, description="masks with a boolean for each pair of a prompt's tokens (Gemma 3: two)"
    )
    unread_layers: int = Field(
        default=0, ge=0, description="last layers of the tower whose output nobody reads (LLaVA: one)"
    )
    count: int = Field(default=0, ge=0, description="images in each sequence of a training step; 0 for text alone")
    patches: int = Field(default=0, ge=0, description="patches of each of these images, special tokens included")


class Stack(Spec):
    """A sequence of layers with the tensors before and after the layers."""

    name: Literal["decoder", "encoder", "vision", "audio"]
    hidden: int = Field(ge=1)
    groups: tuple[LayerGroup, ...]
    before: tuple[Tensor, ...] = Field(
        default=(), description="tensors before the layers: embeddings, patch convolution, norms"
    )
    after: tuple[Tensor, ...] = Field(default=(), description="tensors after the layers: final norm, pooler, projector")
    positions: int | None = Field(default=None, ge=1, description="input length in tokens, if fixed")
    merge: int | None = Field(
        default=None,
        ge=1,
        description="number of vision-tower patches that are merged into one token of the language model",
    )
    images: ImageReading = Field(
        default=ImageReading(), description="how a vision tower before a language model reads images"
    )
    embedding_dropout: float = Field(default=0.0, ge=0, lt=1)
    first_place: int = Field(default=0, ge=0, description="number of layers before this part of a larger stack")
    whole_depth: int | None = Field(
        default=None, ge=1, description="number of layers in the larger stack of which this stack is a part"
    )

    @property
    def layer_count(self) -> int:
        """Return the number of layers in the stack."""
        return sum(group.count for group in self.groups)

    @cached_property
    def parameters(self) -> int:
        """Return the number of parameters in the stack."""
        own = sum(tensor.parameters for tensor in (*self.before, *self.after))
        return own + sum(group.layer.parameters * group.count for group in self.groups)

    @property
    def patch_side(self) -> int | None:
        """Return the side of a vision tower's patches in pixels, or None without a patch convolution."""
        cuts = (tensor.shape[-1] for tensor in self.before if tensor.role == "conv" and len(tensor.shape) > 3)
        return next(cuts, None)

    def token_count(self, tokens: int) -> int:
        """Return the tokens per sequence in the stack: its fixed number of positions, or `tokens`."""
        return self.positions or tokens

    def tensors_with_counts(self) -> Iterator[tuple[Tensor, int]]:
        """Yield each distinct tensor of the stack with the number of times that it occurs."""
        yield from ((tensor, tensor.copies) for tensor in (*self.before, *self.after))
        for group in self.groups:
            yield from ((tensor, tensor.copies * group.count) for tensor in group.layer.tensors)


class StoredLayer(Spec):
    """Stored size in bytes of one layer of the main stack, and of its routed experts' tensors."""

    bytes: int = Field(ge=0)
    expert_bytes: int = Field(default=0, ge=0)


class StoredTensors(Spec):
    """Total size of the checkpoint tensors in one format and one part of the network."""

    format: str = Field(min_length=1, description="name of the format in the file: BF16, F8_E4M3, Q4_K")
    place: Literal["embedding", "layers", "output", "other"]
    elements: int = Field(ge=0, description="number of elements in the file; in packed formats, of packed words")
    bytes: int = Field(ge=0)
