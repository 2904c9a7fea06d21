"""Reader of vLLM's start-up messages, versions 0.2 to 0.30: weights, profiled peak, CUDA graphs, KV cache pool.

**Source**: vllm/worker/worker.py and model_runner.py (V0), vllm/v1/worker/gpu_worker.py, gpu_model_runner.py and
vllm/utils/mem_utils.py (V1). All sizes are divided by 2³⁰ and rounded to two decimals, the weights' to four in some
versions; those before 0.8 wrote GB for them.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.memory.logs.reading import (
    NUMBER,
    AmountPattern,
    LoggedAmount,
    LogLine,
    LogText,
    rounded_amount,
)
from planner.units import GIB

GRAPHS: Final = "CUDA graphs"
_DECIMALS: Final = 2
MARKS: Final = (
    "Model loading took",
    "Loading model weights took",
    "model weights take",
    "Total non KV cache memory",
    "non_torch_memory",
    "PyTorch activation peak memory",
    "total_gpu_memory",
    "the current vLLM instance can use",
    "available_kv_cache_memory",
    "Available KV cache memory",
    "Desired GPU memory utilization",
    "Graph capturing finished",
    "CUDA graph pool memory",
)


def _any_form_pattern(*regexes: str) -> re.Pattern[str]:
    """Return a pattern that matches any of `regexes`, in which `<N>` stands for a number."""
    return re.compile("|".join(form.replace("<N>", NUMBER) for form in regexes))


_AMOUNT_PATTERNS: Final = (
    AmountPattern(
        "model weights",
        _any_form_pattern(
            r"(?:Model loading|Loading model weights) took <N> Gi?B",
            r"model weights take\s{1,8}<N> ?GiB",
            r"weights memory: <N> ?GiB",
            r"<N> GiB for weights?\b",
        ),
        "memory used by loading the model's weights on this worker",
        "weights",
    ),
    AmountPattern(
        "peak activation",
        _any_form_pattern(
            r"PyTorch activation peak memory(?: takes)?\s{1,8}<N> ?GiB",
            r"torch peak memory increase: <N> ?GiB",
            r"<N> GiB for peak activation",
        ),
        "activation peak of a profiling run with the largest batch, logits and sampler included",
        "activations",
    ),
    AmountPattern(
        "outside PyTorch",
        _any_form_pattern(
            r"non_torch_memory(?: takes)?\s{1,8}<N> ?GiB",
            r"non-torch forward increase memory: <N> ?GiB",
            r"<N> GiB for non-torch memory",
        ),
        "memory used by libraries outside PyTorch's allocator since vLLM started",
        "framework_overhead",
    ),
    AmountPattern(
        GRAPHS,
        _any_form_pattern(
            r"Graph capturing finished in [^,]{1,20}, took <N> GiB",
            r"CUDA graph pool memory: <N> GiB \(actual\)",
            r"<N> GiB for CUDAGraph memory",
        ),
        "memory used by graph capture, after the cache was sized in versions before 0.21",
        "framework_overhead",
    ),
    AmountPattern(
        "cache pool",
        _any_form_pattern(
            r"reserved for KV Cache is <N> ?GiB",
            r"available_kv_cache_memory\s{1,8}<N> ?GiB",
            r"Available KV cache memory: <N> GiB",
        ),
        "memory left for keys and values within vLLM's share of the GPU",
        "kv_cache",
        None,
        "pool",
    ),
    AmountPattern(
        "weights and outside PyTorch",
        _any_form_pattern(r"<N> GiB for consumed memory", r"total consumed \(from mem_get_info\): <N> ?GiB"),
        "weights plus memory used by libraries outside PyTorch's allocator",
    ),
    AmountPattern(
        "usable memory",
        _any_form_pattern(r"total_gpu_memory\s{0,8}\(?<N> ?GiB", r"Free memory on device \([\d.]{1,12}/<N> GiB\)"),
        "memory of the GPU usable by a process",
        None,
        "capacity",
    ),
    AmountPattern(
        "vLLM's share",
        _any_form_pattern(
            r"gpu_memory_utilization \([\d.]{1,12}\) = <N> ?GiB",
            r"the current vLLM instance can use\s{1,8}<N> ?GiB",
            r"Desired GPU memory utilization is \([\d.]{1,12}, <N> GiB\)",
        ),
        "the share of the GPU that vLLM may fill",
    ),
)
_WORKER: Final = re.compile(r"Worker_?((?:(?:DP|PP|TP|DCP|CP|EP)\d{1,4}_?){1,6})")
_OTHER_WORKER: Final = re.compile(r"VllmWorker(?:Process)?(?: (rank=\d{1,4}))? pid=(\d{1,10})")
_COPY: Final = re.compile(r"(?:Worker_|EngineCore_)DP[1-9]")


def read_vllm(text: LogText) -> Iterator[LoggedAmount]:
    """Yield the amounts that each worker printed, except copies of data-parallel replicas."""
    values_by_key: dict[tuple[str, str], LoggedAmount] = {}
    for line in text.lines_with(*MARKS):
        if _COPY.search(line.text):
            continue
        device = _worker_name(line)
        for item in _AMOUNT_PATTERNS:
            for match in item.pattern.finditer(line.text):
                _keep_most_precise(values_by_key, item, match, line, device)
    yield from values_by_key.values()
    yield from _non_torch_amounts(values_by_key)


def _keep_most_precise(
    amounts_by_key: dict[tuple[str, str], LoggedAmount],
    pattern: AmountPattern,
    match: re.Match[str],
    line: LogLine,
    device: str,
) -> None:
    """Store the matched amount in `amounts_by_key` unless a more precise amount of that name is stored."""
    number = next(group for group in match.groups() if group is not None)
    amount = rounded_amount(number, GIB, _DECIMALS)
    known = amounts_by_key.get((pattern.name, device))
    if known is None or amount.high - amount.low <= known.high_bytes - known.low_bytes:
        amounts_by_key[pattern.name, device] = pattern.amount(amount, line, device)


def _non_torch_amounts(amounts_by_key: dict[tuple[str, str], LoggedAmount]) -> Iterator[LoggedAmount]:
    """Yield the memory outside PyTorch for versions that print it only together with the weights."""
    for (name, device), total in amounts_by_key.items():
        weights = amounts_by_key.get(("model weights", device))
        if name == "weights and outside PyTorch" and weights and ("outside PyTorch", device) not in amounts_by_key:
            yield total.evolve(
                name="outside PyTorch",
                bytes=total.bytes - weights.bytes,
                low_bytes=total.low_bytes - weights.high_bytes,
                high_bytes=total.high_bytes - weights.low_bytes,
                meaning="memory used by libraries outside PyTorch's allocator (weights are subtracted)",
                term="framework_overhead",
            )


def _worker_name(line: LogLine) -> str:
    """Return the name of the worker that printed a line; without parallelism the only worker is "0"."""
    worker = _WORKER.search(line.text)
    if worker:
        return re.sub(r"^DP0_?", "", worker[1]).rstrip("_") or "0"
    other = _OTHER_WORKER.search(line.text)
    return (other[1] or f"pid={other[2]}") if other else "0"


BLOCK_TOKENS: Final = 16
"""Tokens per block of the KV cache on CUDA cards (vLLM's default for `--block-size`)."""
_VERSION: Final = re.compile(r"(?:LLM engine \(v|vLLM API server version v?)(\d[\w.+]{1,40})")
_MODEL: Final = re.compile(r"(?:model=|Starting to load model )['\"]?([^\s'\",]{1,200}?)(?:\.\.\.|['\",\s])")
_LENGTH: Final = re.compile(r"max_(?:seq|model)_len[=:] ?(\d{1,10})")
_TOKENS: Final = re.compile(r"KV cache size: ([\d,]{1,16}) tokens")
_BLOCKS: Final = re.compile(r"# (?:GPU|CUDA|cuda) blocks: (\d{1,10})")
_CONCURRENCY: Final = re.compile(r"Maximum concurrency for ([\d,]{1,12}) tokens per request")
_MARKS: Final = (
    "LLM engine (v",
    "API server version",
    "Starting to load model",
    "max_seq_len=",
    "max_model_len",
    "KV cache size:",
    " blocks: ",
    "Maximum concurrency for",
)


class VllmFacts(NamedTuple):
    """Facts printed in vLLM's log; if one is printed repeatedly, the last value."""

    version: str | None = None
    model: str | None = None
    context_length: int | None = None
    cache_tokens: int | None = None


def read_vllm_facts(text: LogText) -> VllmFacts:
    """Return the version, model, context length and cache size that vLLM printed in `text`."""
    values_by_key: dict[str, str] = {}
    patterns = {
        "version": _VERSION,
        "model": _MODEL,
        "length": _LENGTH,
        "tokens": _TOKENS,
        "blocks": _BLOCKS,
        "concurrency": _CONCURRENCY,
    }
    for line in text.lines_with(*_MARKS):
        for name, pattern in patterns.items():
            match = pattern.search(line.text)
            if match:
                values_by_key[name] = match[1]
    tokens, blocks = _parsed_integer(values_by_key.get("tokens")), _parsed_integer(values_by_key.get("blocks"))
    return VllmFacts(
        version=values_by_key.get("version"),
        model=values_by_key.get("model"),
        context_length=_parsed_integer(values_by_key.get("concurrency"))
        or _parsed_integer(values_by_key.get("length")),
        cache_tokens=tokens or (blocks * BLOCK_TOKENS if blocks else None),
    )


def _parsed_integer(text: str | None) -> int | None:
    """Return the integer in `text` without thousands separators, None for missing text or zero."""
    digits = (text or "").replace(",", "")
    return int(digits) if digits and int(digits) else None
