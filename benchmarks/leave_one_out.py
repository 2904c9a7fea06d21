"""Cross-validation of constants that are estimated from several sources: each source is left out in turn.

What is left must predict the one that is missing: an error here is what a card, a version or a library of which nobody
has published a figure may be off by. Everything else in the estimator is counted or read in source, and has no source
that could be left out.
"""

from statistics import median
from typing import Final, NamedTuple

from planner.memory.overhead import MEASURED_CONTEXTS
from planner.units import MIB


class Constant(NamedTuple):
    """A quantity with its value in `unit` from each source; `share` says which part of a plan it affects."""

    name: str
    unit: str
    figures: dict[str, float]
    share: str


CONSTANTS: Final = (
    Constant(
        "GPU context",
        "MiB",
        {
            "Turing: T4 (fitcheck-llm README)": MEASURED_CONTEXTS["Turing"].bytes / MIB,
            "Ada: RTX 6000 (unslothai/unsloth-zoo#1053)": MEASURED_CONTEXTS["Ada Lovelace"].bytes / MIB,
            "Hopper: H100 (llm-d-planner logs)": MEASURED_CONTEXTS["Hopper"].bytes / MIB,
            "Blackwell: RTX PRO 6000 (ggml-org/llama.cpp#27953)": MEASURED_CONTEXTS["Blackwell"].bytes / MIB,
        },
        "1 to 3 % of a 24 GiB card",
    ),
    Constant(
        "GPU context of a version that loads every kernel",
        "MiB",
        {
            "Pascal: GTX 1080, CUDA 10.1 (pytorch/pytorch#55277)": 721,
            "Turing: RTX 2080 Ti, CUDA 10.1 (pytorch/pytorch#49877)": 877,
            "Volta: Titan V, PyTorch 1.3 (pytorch/pytorch#28394)": 1005,
            "Volta: V100, CUDA 11.2 (transformers, perf_train_gpu_one.md)": 1343,
            "Ampere: RTX 3090, CUDA 11.0 (pytorch/pytorch#49877)": 1486,
            "Ampere: RTX 3090, CUDA 11.1 (pytorch/pytorch#55277)": 1687,
        },
        "1,343 is the upper end on cards before Ada Lovelace",
    ),
    Constant(
        "allocator slack",
        "% beyond the allocated bytes",
        {
            "Megatron-LM theoretical_memory_usage.py": 5,
            "ROCm's Megatron": 7,
            "xtuner-001 and 002: 18.02 GiB allocated, 22.2 reserved": 23.2,
        },
        "5 assumed here, of what comes and goes",
    ),
    Constant(
        "CUDA graphs of vLLM",
        "GiB",
        {
            "gpt-oss-120b (llm-d-planner, 0.11)": 1.03,
            "Qwen3-0.6B (llm-d-planner, 0.11)": 0.10,
            "H100, lower end published": 0.5,
            "H100, upper end published": 1.8,
        },
        "assumed 0.5, from 0.1 to 1.8",
    ),
    Constant(
        "vLLM's memory beside PyTorch, one card",
        "GiB",
        {
            "gpt-oss-120b (llm-d-planner)": 0.13,
            "Qwen3-0.6B (llm-d-planner)": 0.13,
            "Qwen3-32B (llm-d-planner)": 0.14,
            "Mistral-Small-3.2 (llm-d-planner)": 0.14,
            "Llama-3.2-11B-Vision (vllm-project/vllm#12126)": 0.16,
        },
        "within the GPU context here",
    ),
)


def print_leave_one_out() -> None:
    """Print each source's value next to the median and the range of the other sources' values."""
    print("constants that are estimated from several sources: each value predicted by the median of the others\n")
    for constant in CONSTANTS:
        print(f"{constant.name} ({constant.unit}; {constant.share})")
        for source, figure in constant.figures.items():
            print(_line(source, figure, _others(constant, source)))
        print()


def _others(constant: Constant, left_out: str) -> list[float]:
    return [figure for source, figure in constant.figures.items() if source != left_out]


def _line(source: str, figure: float, others: list[float]) -> str:
    middle = median(others)
    within = "within" if min(others) <= figure <= max(others) else "beyond"
    error = f"{middle - figure:+.2f}, {middle / figure - 1:+.0%}"
    ends = f"{within} {min(others):g} to {max(others):g}"
    return f"  {source[:60]:60} {figure:8.2f}  without it {middle:8.2f} ({error}), {ends}"
