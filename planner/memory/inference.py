"""The phases of inference: load, prefill of the prompt, decode up to the full context."""

from functools import lru_cache
from math import prod

from planner.memory.activations import AttentionKind, stack_positions
from planner.memory.kv_cache import kv_cache_term, state_term
from planner.memory.logits import output_width, predicts_every_token
from planner.memory.phases import Moment, Moments
from planner.memory.precision import Precision, inference_precision
from planner.memory.result import Term
from planner.memory.terms import checked, library, model, number_format, term
from planner.memory.terms import workload as chosen
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe
from planner.workload.workload import Inference

_SCRATCH_SOURCE = "transformers 5.23 modules: the tensors alive at once inside one layer, the widest block deciding"
_LOGITS_SOURCE = "transformers generation: the logits are copied to fp32 for sampling"


def inference_moments(architecture: Architecture, workload: Inference) -> Moments:
    """Return what is alive in each phase of `workload` (defaults filled in).

    **Formula**: prefill = weights + cache of the prompt + one layer's scratch, or the logits; decode = weights + cache
    of the whole context + logits. Buffers of different layers do not add up: each is freed before the next.
    """
    precision = inference_precision(workload)
    batch, context, prompt = workload.batch, workload.context_length or 0, workload.prompt_length or 0
    weights = weights_term(architecture, workload.weights or "bf16")
    state = state_term(architecture, batch)
    fixed = [item for item in (weights, state) if item is not None]
    own_prompt = 1 if architecture.kind == "encoder-decoder" else prompt
    prefilled = kv_cache_term(architecture, batch, own_prompt, prompt, workload.kv_cache, prefilling=True)
    cached = kv_cache_term(architecture, batch, context, prompt, workload.kv_cache)
    scratch = _scratch_term(architecture, batch, prompt, precision, workload.attention)
    whole = batch * own_prompt if predicts_every_token(architecture) else batch
    every = architecture.kind != "decoder" or workload.prompt_logits == "all"
    moments = [
        Moment("load", [weights], "the parameters are on the card"),
        Moment("prefill", _alive(fixed, prefilled, scratch), "one layer works on the whole prompt"),
        Moment(
            "prefill",
            _alive(fixed, prefilled, _logits_term(architecture, whole if every else batch, precision, every)),
            "the logits of the whole prompt" if every else "the prompt is read and the first token's logits are there",
        ),
    ]
    if cached is not None:
        step = _logits_term(architecture, batch, precision, every=False)
        copies = _copies_term(architecture, batch, context, precision.compute_bytes, workload.attention)
        grown = _alive(fixed, cached, copies, step)
        moments.append(Moment("decode", grown, "the cache has grown to the whole context"))
    return Moments(tuple(moments), dynamic=scratch.bytes)


def _alive(fixed: list[Term], *more: Term | None) -> list[Term]:
    return [*fixed, *(item for item in more if item is not None and item.bytes)]


@lru_cache(maxsize=1024)
def scratch_bytes(
    architecture: Architecture, batch: int, prompt: int, precision: Precision, attention: AttentionKind
) -> int:
    """Return the largest scratch that one layer needs for `batch` × `prompt` tokens.

    **Formula** per token: 4h (embeddings, the layer's input, the residual and its norm) beside the widest of:
    feed-forward 3i (gate, up and their product; 2i without a gate); rotation 4q; the norm of the queries with its fp32
    copies; eager scores a · s · (scores, fp32 softmax and its cast). Keys and values are in the cache already.
    """
    most = 0
    for stack in architecture.stacks:
        if stack.name in ("vision", "audio") and architecture.kind == "vision-language":
            continue
        is_decoder_of_pair = architecture.kind == "encoder-decoder" and stack is architecture.main
        tokens = 1 if is_decoder_of_pair else stack_positions(stack, prompt)
        for group in stack.groups:
            per_token = _layer_scratch(group.layer, stack.hidden, tokens, precision, attention)
            most = max(most, batch * tokens * per_token)
    return most


def _layer_scratch(layer: Layer, hidden: int, tokens: int, precision: Precision, attention: AttentionKind) -> int:
    size = precision.compute_bytes
    block = layer.feed_forward
    inner = 0
    if isinstance(block, Mlp):
        inner = block.intermediate * (3 if block.gated else 2)
    elif isinstance(block, Moe):
        inner = block.top_k * (block.intermediate * (3 if block.gated else 2) + hidden) + 3 * block.shared_intermediate
    return 4 * hidden * size + max(inner * size, _attention_scratch(layer, tokens, size, attention))


def _attention_scratch(layer: Layer, tokens: int, size: int, attention: AttentionKind) -> int:
    mixer = layer.mixer
    if isinstance(mixer, LatentAttention):
        query_key = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
        width = size * (2 * query_key + 2 * mixer.heads * mixer.v_head_dim)
        return width + (_score_scratch(mixer.heads, tokens, size) if attention == "eager" else 0)
    if not isinstance(mixer, Attention):
        return 0 if mixer is None else 4 * mixer.inner_dim * size
    rotation = size * (4 if mixer.rotary else 2) * mixer.q_dim
    normed = (size + 8) * mixer.q_dim if mixer.qk_norm != "none" and not layer.norm.native else 0
    if attention != "eager":
        return max(rotation, normed)
    repeated = 2 * size * mixer.q_dim if mixer.kv_heads < mixer.heads else 0
    scores = _score_scratch(mixer.heads, tokens, size, fp32_softmax=mixer.fp32_softmax)
    return max(rotation, normed, size * mixer.q_dim + repeated + scores)


def _score_scratch(heads: int, tokens: int, size: int, *, fp32_softmax: bool = True) -> int:
    """Count the scores, their softmax, and its cast where the softmax is in fp32."""
    cast = size if fp32_softmax and size < 4 else 0
    return heads * tokens * (size + (4 if fp32_softmax else size) + cast)


def _copies_term(architecture: Architecture, batch: int, context: int, size: int, attention: AttentionKind) -> Term:
    """Return one layer's keys, copied as they grow, and its heads that eager attention repeats; the largest decides."""
    kept, width = max((_copied(group.layer, context, attention) for group in architecture.main.groups), key=prod)
    return checked(
        "temporaries",
        batch * kept * width * size,
        "B × n × k × w",
        (
            chosen("B", batch, "sequences"),
            chosen("n", kept, "tokens that the layer keeps"),
            model("k", width, "elements per token of the keys, copied to make room for the next token"),
            number_format("w", size, "bytes per element"),
        ),
        "transformers 5.23 cache_utils.DynamicLayer.update: torch.cat makes a new tensor for each token",
    )


def _copied(layer: Layer, context: int, attention: AttentionKind) -> tuple[int, int]:
    """Return the tokens and the elements per token that `layer` copies in a step of decoding."""
    mixer = layer.mixer
    if not isinstance(mixer, Attention):
        return 0, 0
    repeated = 2 * mixer.q_dim if attention == "eager" and mixer.kv_heads < mixer.heads else 0
    return min(context, mixer.window or context), mixer.kv_dim + repeated


def _scratch_term(
    architecture: Architecture, batch: int, prompt: int, precision: Precision, attention: AttentionKind
) -> Term:
    needed = scratch_bytes(architecture, batch, prompt, precision, attention)
    return checked(
        "activations",
        needed,
        "B × s × a",
        (
            chosen("B", batch, "sequences"),
            chosen("s", prompt, "tokens of the prompt"),
            model("a", round(needed / max(batch * prompt, 1)), "bytes alive per token inside the widest layer"),
        ),
        _SCRATCH_SOURCE,
    )


def _logits_term(architecture: Architecture, outputs: int, precision: Precision, every: bool) -> Term:
    width = output_width(architecture)
    per_logit = precision.compute_bytes + (4 if precision.compute_bytes < 4 else 0)
    return term(
        "logits",
        outputs * width * per_logit,
        "T × V × k",
        (
            chosen("T", outputs, "tokens with an output"),
            model("V", width, "width of the output"),
            library("k", per_logit, "bytes per logit: as computed, and the fp32 copy"),
        ),
        _LOGITS_SOURCE,
    )
