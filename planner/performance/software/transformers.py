"""Speed of Hugging Face Transformers in training and inference: eager, or compiled by PyTorch."""

from types import MappingProxyType
from typing import Final

from planner.models.architecture import Architecture
from planner.performance.inference.work import PassWork, work_of
from planner.performance.setting import TimeSetting
from planner.performance.software.engine import Engine, TrainingPace

_LAYER_SECONDS: Final = 610e-6
TRITON_LAUNCH_SECONDS: Final = 49e-6
"""Time in which Python launches a kernel of Triton: triton-lang/triton#3638 (April 2024)."""
PRODUCTS: Final = 7
"""Products of a gated layer: queries, keys, values and their result, and three of the feed-forward block."""
EAGER_KERNELS: Final = 46
"""Kernels of a gated layer: 16 of two norms, 10 of rotary embedding, 6 of attention with its copies, 2 of the cache, 7
products, activation, gate and two sums, and one copy (transformers 4.51 models/qwen2/modeling_qwen2.py)."""
_EAGER_QUANTISED: Final = MappingProxyType(
    {
        "fp8": 1_550e-6,
        "awq": _LAYER_SECONDS + PRODUCTS * TRITON_LAUNCH_SECONDS,
        "gptq8": 1_300e-6,
        "nf4": 1_160e-6,
        "int8": 1_160e-6,
        "mxfp4": 1_550e-6,
    }
)
"""Seconds per layer to launch kernels that unpack weights, in hosts of newer GPUs: Triton's for fp8 (1.45 to 1.8 ms),
GPTQModel's with 8 bits, bitsandbytes'. AutoAWQ multiplies in Triton unless its CUDA kernels are installed, which like
those of GPTQ with 4 bits are launched as plain layers are: they unpack within the product.

**Source**: QwenLM/Qwen3@7a2f61f, Transformers 4.51 on H20, where fp8 adds as much to long contexts, in which the GPU
is busy, as to short ones; Lightning-AI/litgpt@2685705 (1.6 ms with bitsandbytes on A100); casper-hansen/AutoAWQ README,
install.
"""
_BLOCKING_FORMATS: Final = ("fp8",)
"""Formats whose layers wait for the GPU after each product: transformers 4.51 integrations/finegrained_fp8.py
(`FP8Linear.forward` calls `synchronize`)."""
_OLDER_HOST_SLOWDOWN: Final = 0.84 / 0.61
"""Launch time in hosts of A100 relative to those of H20, with 16-bit weights."""


COMPILED: Final = Engine(
    name="compiled",
    layer_seconds=45e-6,
    source="meta-pytorch/gpt-fast@6ecad9b, Llama 2 7B at three formats on A100",
    multiplies_as_stored=True,
    reads_float4=False,
    sources=3,
    measured_decoding=("A100", "Ada"),
)
"""Engine of a network compiled by torch.compile."""


class _Transformers(Engine):
    def in_setting(self, setting: TimeSetting) -> Engine:
        """Return the engine of the compiled network if `setting` enables compilation."""
        return COMPILED if setting.compiled else self

    def work(self, architecture: Architecture, weights: str) -> PassWork:
        """Return the work of a pass, in which every expert computes every token if the model's code does so."""
        return work_of(architecture, weights, every_expert=True)

    def cache_moves(self, work: PassWork) -> float:
        """Return how many times a step reads or writes the KV cache, which is reallocated and repeated per query head.

        **Formula**: 1 + 2 + 4 · queries per key: `torch.cat` reads and writes all; `repeat_kv` writes them for each
        query, a contiguous copy reads and writes that, and the kernel reads it again.

        **Source**: transformers cache_utils.DynamicLayer and integrations/sdpa_attention.py; it is 14 to 30 on
        QwenLM/Qwen3@7a2f61f with 2 to 8 queries per key.
        """
        return 1 + (2 + 4 * work.queries_per_key)


ENGINE: Final = _Transformers(
    name="hf",
    layer_seconds=_LAYER_SECONDS,
    source="Transformers on QwenLM/Qwen3@7a2f61f's H20 hosts, and 0.84 ms on the A100 hosts of the Qwen2.5 benchmark",
    eager=True,
    eager_kernels=EAGER_KERNELS,
    quantised_layer_seconds=_EAGER_QUANTISED,
    older_host_slowdown=_OLDER_HOST_SLOWDOWN,
    unpacks_weights=True,
    blocking_formats=_BLOCKING_FORMATS,
    reads_float4=False,
    sources=2,
    measured_decoding=("Hopper SXM", "A100"),
    measured_prompts=("Hopper SXM",),
)
PACE: Final = TrainingPace()
