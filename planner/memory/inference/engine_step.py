"""Activations of the largest step of an engine that computes the tokens of several requests at once, and sampling."""

from functools import lru_cache
from typing import Final

from planner.memory.logits import output_width
from planner.memory.result import Term
from planner.memory.terms import library_symbol, model_symbol, term, workload_symbol
from planner.models.architecture import Architecture, Attention, LatentAttention, Layer, Mlp, Moe, StateMixer

STEP_SOURCE: Final = "vLLM 0.33 model_executor: tensors alive at once in a layer, in its widest block"
_FORWARD_SHARE: Final = 0.25
"""Assumed relative deviation of compiled layers' memory from the sum of their tensors."""


def engine_step_term(architecture: Architecture, tokens: int, element_bytes: int, setting: str) -> Term:
    """Return the activation memory of a step with `tokens` tokens, a number that the engine's `setting` limits.

    **Formula**: T · w · max over layers of 2h + q + 2kv + q (attention) and 2h + 3i (feed-forward; 2i without a gate;
    experts k · (max(2i, h) + i) + h beside the shared one's).

    **Assumes** tensors of the computing format and no compilation that keeps less.
    """
    per_token = _widest_layer_elements(architecture)
    count = tokens * per_token * element_bytes
    return term(
        "activations",
        count,
        "T × a × w",
        (
            library_symbol("T", tokens, f"tokens in the largest step ({setting})"),
            model_symbol("a", per_token, "live numbers per token in the widest layer"),
            library_symbol("w", element_bytes, "bytes per element"),
        ),
        STEP_SOURCE,
        certainty="assumed",
        low_bytes=int(count * (1 - _FORWARD_SHARE)),
        high_bytes=int(count * (1 + _FORWARD_SHARE)),
    )


def engine_sampler_terms(architecture: Architecture, rows: int, source: str) -> list[Term]:
    """Return the memory of sampling from `rows` rows of logits in fp32 with probabilities; none without logits."""
    width = output_width(architecture)
    if not width:
        return []
    symbols = (
        workload_symbol("n", rows, "rows of logits: running requests, times the tokens that are checked of each"),
        model_symbol("V", width, "output width: logits per token"),
    )
    return [term("logits", rows * width * 8, "n × V × 8", symbols, source, certainty="measured")]


@lru_cache(maxsize=256)
def _widest_layer_elements(architecture: Architecture) -> int:
    """Return the elements per token alive at once in the layer that needs most."""
    return max(_layer_elements(group.layer, architecture.hidden) for group in architecture.main.groups)


def _layer_elements(layer: Layer, hidden: int) -> int:
    """Return the elements per token alive at once in one layer, two hidden widths included."""
    mixed = max(_mixer_elements(mixer) for mixer in (layer.mixer, layer.second_mixer))
    return 2 * hidden + max(mixed, _feed_forward_elements(layer.feed_forward, hidden))


def _mixer_elements(mixer: object) -> int:
    """Return the elements per token alive at once in a mixer such as attention."""
    if isinstance(mixer, Attention):
        return 2 * mixer.q_dim + 2 * mixer.kv_dim
    if isinstance(mixer, LatentAttention):
        query_key = mixer.heads * (mixer.qk_nope_head_dim + mixer.qk_rope_head_dim)
        expanded = mixer.heads * (mixer.qk_nope_head_dim + mixer.v_head_dim)
        return 2 * query_key + expanded + mixer.heads * mixer.v_head_dim + mixer.latent_dim
    return 4 * mixer.inner_dim if isinstance(mixer, StateMixer) else 0


def _feed_forward_elements(block: Mlp | Moe | None, hidden: int) -> int:
    """Return the elements per token alive at once in a feed-forward block."""
    if isinstance(block, Moe):
        wide = (2 if block.gated else 1) * block.intermediate
        routed = block.top_k * (max(wide, hidden) + max(block.intermediate, 0)) + hidden + block.experts
        return routed + (3 if block.gated else 2) * block.shared_intermediate
    return (3 if block.gated else 2) * block.intermediate if block else 0
