"""Changes of how a model is run."""

from collections.abc import Mapping
from typing import Final

from planner.plan.advice.change import Change, quantised

_HALF: Final = "half of fp32's bits; checkpoints are trained and published in 16 bits"
_LLM_INT8: Final = "Dettmers et al. 2022, arXiv 2208.07339; Hugging Face blog, bitsandbytes: BLOOM 15 to 23 % slower"
_NF4: Final = "Dettmers et al. 2023, arXiv 2305.14314: NF4 loses little against 16 bits"
_AWQ: Final = "Lin et al. 2024, arXiv 2306.00978: 4-bit weights lose little against 16 bits"
_GGUF: Final = "llama.cpp tools/quantize/README.md: about 4.9 bits a weight"
_FP8_CACHE: Final = "vLLM, Quantized KV Cache: fp8 lets about twice as many tokens in, and is no faster by itself"
_Q8_CACHE: Final = "ikawrakow/ik_llama.cpp#173: q8_0 is nearly lossless"
_Q4_CACHE: Final = "lmstudio-ai/lmstudio-bug-tracker#1740: people report worse answers with q4_0"
_LAST_LOGITS: Final = "Hugging Face transformers, logits_to_keep: generating reads the logits of the last token only"
_GRAPHS: Final = "vLLM, enforce_eager: no CUDA graphs, which save the launches of small kernels"

_TEXT: Final[Mapping[str, tuple[object, ...]]] = {"task": ("inference",), "diffusion.guidance": (None,)}
"""Pipelines that make images have their guidance filled in, and ways of their own."""
_SIXTEEN: Final = ("bf16", "fp16")
_PLAIN: Final = ("fp32", *_SIXTEEN)

INFERENCE_CHANGES: Final[tuple[Change, ...]] = (
    *(
        Change(
            name=f"weights in {half}",
            lever="weights",
            sentence="Keep each weight in 16 bits.",
            source=_HALF,
            settings={"weights": half, "compute": half},
            applies={"task": ("inference",), "weights": ("fp32",)},
            risk="small",
            native_bf16=half == "bf16",
        )
        for half in _SIXTEEN
    ),
    Change(
        name="weights in INT8",
        lever="weights",
        sentence="Keep the weights of the projections in 8 bits; outliers are computed in 16.",
        source=_LLM_INT8,
        settings={"weights": "int8"},
        applies={**_TEXT, "weights": _PLAIN},
        cost="time",
        slower_by_about=1.2,
        costs="more for small models",
        risk="small",
        needs="bitsandbytes",
    ),
    quantised(
        name="weights in NF4",
        sentence="Keep the weights of the projections in 4 bits, with a scale for each 64.",
        source=_NF4,
        settings={"weights": "nf4"},
        applies={**_TEXT, "weights": (*_PLAIN, "int8")},
        needs="bitsandbytes",
    ),
    quantised(
        name="weights in AWQ 4-bit",
        sentence="Run a copy of the model whose projections were quantised to 4 bits with sample texts.",
        source=_AWQ,
        settings={"weights": "awq4-128"},
        applies={**_TEXT, "weights": (*_PLAIN, "int8")},
        needs="a checkpoint that was quantised so",
    ),
    quantised(
        name="Q4_K_M in llama.cpp",
        sentence="Run a GGUF file whose matrices have about 4.9 bits a weight.",
        source=_GGUF,
        settings={"weights": "Q4_K_M", "profile": "llama.cpp"},
        applies={**_TEXT, "weights": (*_PLAIN, "int8"), "profile": ("hf",)},
        needs="llama.cpp and a GGUF file",
    ),
    Change(
        name="Q4_K_M",
        lever="weights",
        sentence="Run a file whose matrices have about 4.9 bits a weight.",
        source=_GGUF,
        settings={"weights": "Q4_K_M"},
        applies={"profile": ("llama.cpp",), "weights": ("F32", "F16", "BF16", "Q8_0", "Q6_K")},
        risk="small",
        needs="such a GGUF file",
    ),
    Change(
        name="KV cache in fp8",
        lever="cache",
        sentence="Keep cached keys and values in 8 bits.",
        source=_FP8_CACHE,
        settings={"kv_cache": "fp8"},
        applies={**_TEXT, "kv_cache": _PLAIN, "profile": ("hf",)},
        risk="small",
        needs="an engine with an fp8 cache, such as vLLM",
    ),
    Change(
        name="fp8 KV cache",
        lever="cache",
        sentence="Keep cached keys and values in 8 bits.",
        source=_FP8_CACHE,
        settings={"kv_cache": "fp8"},
        applies={"kv_cache": _PLAIN, "profile": ("vllm",)},
        risk="small",
    ),
    Change(
        name="KV cache in q8_0",
        lever="cache",
        sentence="Keep cached keys and values in blocks of 8 bits.",
        source=_Q8_CACHE,
        settings={"kv_cache": "q8_0"},
        applies={"kv_cache": _PLAIN, "profile": ("llama.cpp",)},
        risk="small",
        needs="flash attention switched on",
    ),
    Change(
        name="KV cache in q4_0",
        lever="cache",
        sentence="Keep cached keys and values in blocks of 4 bits.",
        source=_Q4_CACHE,
        settings={"kv_cache": "q4_0"},
        applies={"kv_cache": (*_PLAIN, "q8_0"), "profile": ("llama.cpp",)},
        risk="real",
        needs="flash attention switched on",
    ),
    Change(
        name="logits of the last token only",
        lever="logits",
        sentence="Compute the logits of the prompt's last token, from which the answer is generated.",
        source=_LAST_LOGITS,
        settings={"prompt_logits": "last"},
        applies={**_TEXT, "prompt_logits": ("all",)},
        keeps="the answers, not the scores of the prompt",
    ),
    Change(
        name="no CUDA graphs",
        lever="graphs",
        sentence="Launch each kernel by itself instead of recorded graphs.",
        source=_GRAPHS,
        settings={"engine": {"enforce_eager": True}},
        applies={"profile": ("vllm",), "engine.enforce_eager": (None, False)},
        cost="time",
        slower_by_about=None,
        costs="slower for few sequences at once",
        keeps="the answers",
    ),
)
