"""Memory behavior of AutoAWQ with fused layers: quantized weights, and caches and tables of a chosen length.

**Source**: casper-hansen/AutoAWQ at v0.1.6; at d54bf0e for Mixtral.
"""

from collections.abc import Hashable
from typing import Final

from planner.dtypes import SCHEMES, Scheme
from planner.errors import SpecError
from planner.memory.inference.kv_cache import kv_cache_term, without_windows
from planner.memory.logits import bytes_with_fp32_copy, output_logits_term, output_width
from planner.memory.phases import PhaseSnapshots, Snapshot
from planner.memory.result import Term
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.software.base import ServingMemory
from planner.memory.software.transformers import ANY_VERSION, layers_by_device_map
from planner.memory.terms import library_symbol, measured_term, model_symbol, term, workload_symbol
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Attention, Layer, Mlp, Moe
from planner.workload.workload import Inference

_HALF, _FLOAT, _COMPLEX = 2, 4, 8
_SPLITS: Final = 8
"""Parts of a product's summed dimension whose results are added at the end (`split_k_iters`)."""
_FUSED_PARTS: Final = ("q_proj", "k_proj", "v_proj")
_FUSING_SOURCE: Final = (
    "awq/utils/fused_utils.py fuse_qkv (torch.cat), and awq/models/llama.py fuse_transformer, which replaces the "
    "layers after the loop; for experts fuse_linears, which makes a whole WQLinear_GEMM before it stacks them"
)
_TABLE_SOURCE: Final = (
    "awq/modules/fused/attn.py RoPE.precompute_freqs_cis in each layer, for twice the cache's length; "
    "ALiBi.build_alibi_bias in fp32"
)
_ATTENTION_SOURCE: Final = "awq/modules/fused/attn.py QuantAttentionFused.forward: F.softmax(scores.float(), dim=-1)"
_PRODUCT_SOURCE: Final = (
    "awq_cuda/quantization/gemm_cuda_gen.cu: one output for each of split_k_iters parts, then sum(0)"
)
_LOGITS_SOURCE: Final = "transformers 4.36 LlamaForCausalLM.forward: the logits of the whole prompt become fp32"


class AutoAwq(ServingMemory):
    """Generating with AutoAWQ's fused layers, whose cache holds `context_length` tokens and then rolls over."""

    split_note = "AutoAWQ lets accelerate fill one GPU after the other, as transformers does (device_map auto)."

    spread = ANY_VERSION

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of generation: load, prefill, decoding.

        **Formula**: weights + cache + tables of positions, beside what fusing holds twice, or in prefill the largest of
        the attention scores, one product's parts, and the logits of the whole prompt.
        """
        return _timeline(architecture, workload)

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of layers on each card with `device_map="auto"`."""
        return layers_by_device_map(
            architecture, workload.weights or "awq4-128", workload.parallel.pipeline, free_bytes
        )


SERVING: Final = AutoAwq()


def _timeline(architecture: Architecture, workload: Inference) -> PhaseSnapshots:
    scheme, batch = workload.weights or "awq4-128", workload.batch
    prompt, context = workload.prompt_length or 1, workload.context_length or 1
    layers = [group.layer for group in architecture.main.groups]
    if not all(isinstance(layer.mixer, Attention) and layer.feed_forward for layer in layers):
        raise SpecError("profile", "AutoAWQ fuses only layers of attention and a feed-forward block", "Choose hf.")
    weights = weights_term(architecture, scheme)
    cache = kv_cache_term(without_windows(architecture), batch, context, 0, workload.kv_cache)
    kept = [weights, *([cache] if cache else ()), _table_term(architecture, context)]
    attention = max(
        (_attention_term(architecture, layer, batch, prompt) for layer in layers), key=lambda one: one.bytes
    )
    product = max((_product_term(layer, batch * prompt) for layer in layers), key=lambda one: one.bytes)
    fusing = _fusing_term(architecture, SCHEMES[scheme])
    logits = output_logits_term(output_width(architecture), batch * prompt, bytes_with_fp32_copy(_HALF), _LOGITS_SOURCE)
    last = [Snapshot("prefill", [*kept, logits], "the head reads the whole prompt")]
    return PhaseSnapshots(
        (
            Snapshot(
                "load", [*kept, fusing], "the layers are fused, each with its cache, and the single ones replaced"
            ),
            Snapshot("prefill", [*kept, attention], "a layer normalizes the attention scores of the whole prompt"),
            Snapshot("prefill", [*kept, product], "a layer adds the parts of a product"),
            *(last if architecture.head or architecture.tied_head else ()),
            Snapshot("decode", kept, "the next tokens are written into the cache"),
        ),
        dynamic=max(attention.bytes, product.bytes),
        unsplit_bytes=unsplit_weight_bytes(architecture, scheme),
    )


def _fusing_term(architecture: Architecture, scheme: Scheme) -> Term:
    """Return what is held twice while layers are fused.

    **Formula**: the projections of queries, keys and values of all layers, of which the fused copy exists beside the
    single ones; with experts the gates of a layer twice more: the single ones, and zeros that the stack replaces.
    """
    single = sum(
        scheme.tensor_bytes(tensor.shape) * count
        for tensor, count in architecture.main.tensors_with_counts()
        if any(part in tensor.name for part in _FUSED_PARTS) and len(tensor.shape) > 1
    )
    stacked = max(_gate_bytes(group.layer, scheme) for group in architecture.main.groups)
    return term(
        "temporaries",
        single + 2 * stacked,
        "Q + 2 × G",
        (
            model_symbol("Q", single, "bytes of the projections of queries, keys and values"),
            model_symbol("G", stacked, "bytes of the gates of one layer's experts"),
        ),
        _FUSING_SOURCE,
    )


def _gate_bytes(layer: Layer, scheme: Scheme) -> int:
    experts = [tensor for tensor in layer.tensors if tensor.role == "expert" and len(tensor.shape) > 1]
    gates = [tensor for tensor in experts if tensor.shape[-1] == experts[0].shape[-1]]
    return sum(scheme.tensor_bytes(tensor.shape) * tensor.copies for tensor in gates)


def _table_term(architecture: Architecture, context: int) -> Term:
    """Return the tables of positions of all layers: complex numbers for twice the cache's length, or ALiBi's row."""
    total = 0
    for group in architecture.main.groups:
        mixer = group.layer.mixer
        assert isinstance(mixer, Attention)
        each = mixer.head_dim * _COMPLEX if mixer.rotary else mixer.heads * _FLOAT
        total += group.count * context * each
    symbols = (
        workload_symbol("n", context, "tokens of the cache"),
        model_symbol("p", total // context, "bytes of positions per token, all layers together"),
    )
    return term("buffers", total, "n × p", symbols, _TABLE_SOURCE)


def _attention_term(architecture: Architecture, layer: Layer, batch: int, tokens: int) -> Term:
    """Return what is alive while the scores are normalized: scores in fp16, in fp32, and their softmax.

    **Formula**: b · a · s² · (2 + 4 + 4) + mask 2 · s² + b · s · 2 · (2 h for the residual and its norm, the fused
    projection, queries and keys turned by their positions, and each head's keys and values).
    """
    mixer = layer.mixer
    assert isinstance(mixer, Attention)
    repeated = 2 * mixer.q_dim if mixer.kv_heads != mixer.heads else 0
    width = 2 * architecture.hidden + 2 * mixer.q_dim + 4 * mixer.kv_dim + repeated
    scores = batch * mixer.heads * tokens**2 * (_HALF + _FLOAT + _FLOAT) + _HALF * tokens**2
    return measured_term(
        "activations",
        scores + batch * tokens * width * _HALF,
        "B × a × s² × 10 + 2 × s² + B × s × e × 2",
        (
            workload_symbol("B", batch, "sequences"),
            model_symbol("a", mixer.heads, "attention heads"),
            workload_symbol("s", tokens, "tokens of the prompt"),
            model_symbol("e", width, "elements per token beside the scores"),
        ),
        _ATTENTION_SOURCE,
    )


def _product_term(layer: Layer, tokens: int) -> Term:
    """Return the parts of the layer's widest product and their sum.

    **Formula**: T · o · (8 + 1) · 2, where o is the intermediate width, or 2 · k widths of the k experts of a token.
    """
    block = layer.feed_forward
    assert isinstance(block, Mlp | Moe)
    width = 2 * block.top_k * block.intermediate if isinstance(block, Moe) else block.intermediate
    return measured_term(
        "activations",
        tokens * width * (_SPLITS + 1) * _HALF,
        "T × o × (k + 1) × 2",
        (
            workload_symbol("T", tokens, "tokens of all prompts"),
            model_symbol("o", width, "outputs of the widest product per token"),
            library_symbol("k", _SPLITS, "parts of the summed dimension"),
        ),
        _PRODUCT_SOURCE,
    )
