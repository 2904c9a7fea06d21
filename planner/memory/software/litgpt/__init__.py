"""Memory behavior of generating with LitGPT 0.3 to 0.4 (2024) on one card, sequentially and tensor-parallel.

**Source**: Lightning-AI/litgpt at 51d5328, litgpt/model.py `GPT.set_kv_cache` (the cache holds the whole length from
the start), `CausalSelfAttention.build_kv_cache` and `build_mask_cache`; litgpt/generate/base.py `generate`.
"""

from collections.abc import Hashable, Iterator
from functools import lru_cache
from typing import Final

from planner.dtypes import SCHEMES
from planner.errors import SpecError
from planner.memory.inference.kv_cache import kv_cache_term, with_changed_attention
from planner.memory.inference.scratch import scratch_term
from planner.memory.logits import bytes_with_fp32_copy, output_logits_term, output_width
from planner.memory.parallel.layer_splitting import without_empty_stages
from planner.memory.phases import DeferredTerm, PhaseSnapshots, Snapshot
from planner.memory.precision import inference_precision
from planner.memory.result import Term
from planner.memory.segments import unsplit_weight_bytes
from planner.memory.software.base import ServingMemory
from planner.memory.software.litgpt.parameters import (
    dequantized_term,
    has_plain_blocks,
    head_size_elements,
    largest_matrix_elements,
    litgpt_weights,
)
from planner.memory.software.transformers import ANY_VERSION
from planner.memory.terms import term, workload_symbol
from planner.models.architecture import Architecture
from planner.units import ceil_div
from planner.workload.workload import Inference

_MASK_SOURCE: Final = (
    "litgpt/model.py build_mask_cache: one boolean for each pair of tokens, a row for each of the prompt"
)
_LOGITS_SOURCE: Final = (
    "litgpt/generate/base.py next_token: the head reads the whole prompt; lightning/fabric "
    "HalfPrecision.convert_output makes fp32 of it"
)


def generation_timeline(architecture: Architecture, workload: Inference) -> PhaseSnapshots:
    """Return the memory in each phase of generating one sequence with `workload` (defaults filled in).

    **Formula**: weights + cache of the whole context for every query head + mask, beside one layer's scratch, or the
    logits of the whole prompt; a 4-bit matrix that reads several tokens is unpacked.

    Raises:
        SpecError: If the network is no decoder of attention and plain or gated blocks.
    """
    if not has_plain_blocks(architecture):
        raise SpecError(
            "profile",
            "LitGPT estimates support only decoders with attention and dense feed-forward blocks",
            "Choose the profile hf.",
        )
    precision = inference_precision(workload)
    scheme, prompt = workload.weights or "bf16", workload.prompt_length or 1
    context = workload.context_length or prompt
    weights = litgpt_weights(architecture, scheme, precision.parameter_bytes)
    cache = kv_cache_term(_with_keys_of_each_head(architecture), 1, context, 0, workload.kv_cache)
    kept = [weights, *([cache] if cache else ()), _mask_term(context, 1)]
    scratch = scratch_term(architecture, 1, prompt, precision, "sdpa")
    reading: list[Term | DeferredTerm] = [scratch, _mask_term(context, prompt)]
    width, per_logit = output_width(architecture), bytes_with_fp32_copy(precision.compute_bytes)
    writing: list[Term | DeferredTerm] = [output_logits_term(width, prompt, per_logit, _LOGITS_SOURCE)] if width else []
    if SCHEMES[scheme].family != "plain" and prompt > 1:
        reading.append(dequantized_term(largest_matrix_elements(architecture), precision.compute_bytes))
        if writing:
            writing.append(dequantized_term(head_size_elements(architecture), precision.compute_bytes))
    return PhaseSnapshots(
        (
            Snapshot("load", [weights], "the parameters are on the GPU"),
            Snapshot("prefill", [*kept, *reading], "layers read the whole prompt at once"),
            Snapshot("prefill", [*kept, *writing], "the output head computes the logits of the whole prompt"),
            Snapshot("decode", kept, "the next tokens are written into the cache, which is as long as the context"),
        ),
        dynamic=scratch.bytes,
        unsplit_bytes=unsplit_weight_bytes(architecture, scheme),
    )


@lru_cache(maxsize=256)
def _with_keys_of_each_head(architecture: Architecture) -> Architecture:
    """Return `architecture` with keys and values of each query head, unless all share one, and without windows."""
    return with_changed_attention(
        architecture, lambda mixer: mixer.evolve(kv_heads=1 if mixer.kv_heads == 1 else mixer.heads, window=None)
    )


def _mask_term(context: int, rows: int) -> Term:
    """Return the memory of the mask: a table for all pairs of tokens, and the `rows` that a step takes from it."""
    tokens = workload_symbol("n", context, "tokens of the context")
    if rows == 1:
        return term("buffers", context * context, "n × n", (tokens,), _MASK_SOURCE)
    prompt = workload_symbol("s", rows, "tokens of the prompt")
    return term("buffers", context * rows, "n × s", (tokens, prompt), _MASK_SOURCE)


class LitGptGeneration(ServingMemory):
    """Generating with LitGPT, one sequence at a time.

    **Source**: Lightning-AI/litgpt litgpt/generate/sequentially.py `partition` (only the blocks leave the first card)
    and tp.py `tensor_parallel` (attention and feed-forward blocks are divided, embedding and head are not).
    """

    split_note = "LitGPT gives each GPU the same number of blocks, and embedding and head to the first."
    spread = ANY_VERSION
    head_on_first_stage = True
    divides_vocabulary = False

    def timeline(self, architecture: Architecture, workload: Inference, card_class: Hashable = None) -> PhaseSnapshots:
        """Return the memory in each phase of generation: load, prefill, decoding."""
        return generation_timeline(architecture, workload)

    def notes(self, workload: Inference) -> Iterator[str]:
        """Yield a note if sequences wait."""
        if workload.batch > 1:
            yield f"LitGPT generates one sequence at a time: {workload.batch - 1:,} of {workload.batch:,} wait."

    def split_layers(
        self, architecture: Architecture, workload: Inference, free_bytes: tuple[int, ...] = ()
    ) -> tuple[int, ...]:
        """Return the number of blocks on each card: the same on all, fewer on the last."""
        depth, cards = architecture.depth, workload.parallel.pipeline
        each = ceil_div(depth, cards)
        return without_empty_stages([max(min(each, depth - each * place), 0) for place in range(cards)])


SERVING: Final = LitGptGeneration()
