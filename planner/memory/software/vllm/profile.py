"""Memory that vLLM reserves at start-up besides weights and KV cache: profiling step, sampler, CUDA graphs.

Before it sizes the cache, vLLM runs one step with its maximum number of tokens, then samples for its maximum number of
sequences. The larger of the two stays free for later steps.

**Source**: vLLM v1/worker/gpu/model_runner.py profile_run and _dummy_sampler_run, v1/worker/gpu/sample/.
"""

from typing import Final, NamedTuple

from planner.memory.inference.engine_step import STEP_SOURCE
from planner.memory.logits import output_width
from planner.memory.result import Term, TermPart
from planner.memory.software.vllm.setup import VllmSetup
from planner.memory.terms import library_symbol, model_symbol, term
from planner.models.architecture import Architecture
from planner.units import GIB, ceil_div
from planner.workload.software.vllm import VllmVersion

_FLOAT: Final = 4
_INT32_BITS: Final = 32
_MOST_COPIED: Final = GIB


class _SamplerBytes(NamedTuple):
    """Bytes per logit that a vLLM version's sampler needs besides the logits and their fp32 copy; and the source."""

    bytes: int
    source: str


_SAMPLERS: Final[dict[VllmVersion, _SamplerBytes]] = {
    "0.33": _SamplerBytes(
        8,
        "vLLM 0.33 _dummy_sampler_run with warm-up parameters: logits, fp32 copy, and FlashInfer's masked logits and "
        "probabilities",
    ),
    "0.19": _SamplerBytes(
        8, "vLLM 0.19 _dummy_sampler_run: logits, fp32 copy, probabilities and exponential noise of forward_native"
    ),
    "0.11": _SamplerBytes(
        32,
        "vLLM 0.11 apply_top_k_top_p sorts: values 4 and indices 8; segmented_sort_pairs of ATen's Sort.cu: indices "
        "8, and cub's second buffers 12",
    ),
}
_TABLES_SOURCE: Final = (
    "vLLM 0.33 v1/worker/gpu/sample/penalties.py: counts (int32) and a mask of one bit for each token of the vocabulary"
)
_GRAPHS_SOURCE: Final = (
    "0.1 to 1.03 GiB in vLLM 0.11's logs (llm-d-planner), 0.5 to 1.8 GiB published for an H100; vLLM's own estimate "
    "has been off by three times (vllm-project/vllm#45178, #53013)"
)
_GRAPHS: Final = (GIB // 2, GIB // 10, 18 * GIB // 10)
"""Assumed bytes of CUDA graphs (expected, minimum, maximum), within the range of published values."""


def hidden_term(architecture: Architecture, setup: VllmSetup) -> Term:
    """Return the memory that a step keeps until sampling: its hidden states, and the rows to sample from."""
    rows = setup.tokens + 2 * setup.sequences
    return term(
        "activations",
        rows * architecture.hidden * setup.element,
        "(T + 2 × n) × h × w",
        (
            library_symbol("T", setup.tokens, "tokens in the largest step (max_num_batched_tokens)"),
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("h", architecture.hidden, "width of the residual stream"),
            library_symbol("w", setup.element, "bytes per element"),
        ),
        STEP_SOURCE,
        certainty="measured",
    )


def sampler_term(architecture: Architecture, setup: VllmSetup) -> Term | None:
    """Return the memory of logits and sampler for the maximum number of sequences, None without a vocabulary.

    **Formula**: n · V · k, where k is w for the logits, 4 for their fp32 copy unless w is 4, and the bytes of the
    version's sampler: 8, or 32 if it sorts.
    """
    width = output_width(architecture)
    if not width:
        return None
    sampler = _SAMPLERS[setup.version]
    per_logit = setup.element + (_FLOAT if setup.element < _FLOAT else 0) + sampler.bytes
    return term(
        "logits",
        setup.sequences * width * per_logit,
        "n × V × k",
        (
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("k", per_logit, f"bytes per logit that the sampler of vLLM {setup.version} holds"),
        ),
        sampler.source,
        certainty="measured",
    )


def verification_term(architecture: Architecture, setup: VllmSetup, rows: int) -> Term | None:
    """Return the memory of logits that check drafted tokens, None if nothing is drafted or there is no vocabulary.

    The profile of the start samples one row a sequence, so that this comes on top of what it leaves.

    **Formula**: r · V · w, and their fp32 copy in parts of at most 1 GiB.

    **Source**: vLLM 0.33 v1/worker/gpu/spec_decode/rejection_sampler.py, MAX_CHUNK_BYTES.
    """
    width = output_width(architecture)
    if rows <= setup.sequences or not width:
        return None
    copied = min(rows * width * _FLOAT, _MOST_COPIED)
    return term(
        "logits",
        rows * width * setup.element + copied,
        "r × V × w + C",
        (
            library_symbol("r", rows, "rows of logits: the drafted tokens of each sequence, and one more"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("w", setup.element, "bytes per element"),
            library_symbol("C", copied, "bytes of the copy in fp32, at most 1 GiB at a time"),
        ),
        "vLLM 0.33 v1/worker/gpu/spec_decode/rejection_sampler.py, MAX_CHUNK_BYTES",
        certainty="measured",
    )


def buffers_term(architecture: Architecture, setup: VllmSetup) -> Term | None:
    """Return the memory of the sampler's penalty tables (0.33) and CUDA graphs, None if there are neither."""
    width = output_width(architecture)
    tables = setup.sequences * _FLOAT * (width + ceil_div(width, _INT32_BITS)) if setup.version == "0.33" else 0
    expected, least, most = _GRAPHS if setup.graphs else (0, 0, 0)
    if not tables + expected:
        return None
    return term(
        "buffers",
        tables + expected,
        "n × 4 × (V + V / 32) + G" if tables else "G",
        (
            library_symbol("n", setup.sequences, "sequences in the largest step (max_num_seqs)"),
            model_symbol("V", width, "output width: logits per token"),
            library_symbol("G", expected, "bytes of CUDA graphs"),
        ),
        f"{_TABLES_SOURCE}; {_GRAPHS_SOURCE}",
        certainty="assumed" if expected else "exact",
        low_bytes=tables + least,
        high_bytes=tables + most,
        parts=(
            TermPart(name="penalty tables", bytes=tables, formula="n × 4 × (V + V / 32)", source=_TABLES_SOURCE),
            TermPart(name="CUDA graphs", bytes=expected, formula="G", source=_GRAPHS_SOURCE),
        ),
    )
