"""Inference capabilities and settings of TensorRT-LLM with its PyTorch backend."""

from typing import Annotated, Final

from pydantic import Field

from planner.workload.presentation import Presentation
from planner.workload.software.software import EngineSettings, ServingSupport, Software


class TensorRtLlmSettings(EngineSettings):
    """Settings of TensorRT-LLM, by its own names; unset fields have the defaults of `trtllm-serve`."""

    max_batch_size: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Requests per step",
            description="TensorRT-LLM: maximum number of requests in a step",
        ),
        Presentation(default="2,048", explanation="Recurrent states are allocated for this many requests."),
    ] = None
    max_num_tokens: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000_000,
            title="Packed tokens",
            description="TensorRT-LLM: maximum number of tokens in one step",
        ),
        Presentation(default="8,192", explanation="The activations of a step grow with the number of tokens."),
    ] = None
    free_gpu_memory_fraction: Annotated[
        float | None,
        Field(
            gt=0,
            le=1,
            title="Fraction of free memory",
            description="TensorRT-LLM: fraction for the KV cache of what weights and a step leave free",
        ),
        Presentation(
            default="0.9",
            explanation="The rest stays free, such as for other programs and larger kernels.",
            stops=(0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95),
        ),
    ] = None
    tokens_per_block: Annotated[
        int | None,
        Field(ge=1, le=4096, title="Tokens per block", description="TensorRT-LLM: tokens per block of the KV cache"),
        Presentation(default="32", explanation="Larger blocks leave more unused space at the end of each sequence."),
    ] = None
    cuda_graph_max_batch_size: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Largest batch in a graph",
            description="TensorRT-LLM: largest batch for which CUDA graphs of decoding are captured",
        ),
        Presentation(default="128", explanation="Larger batches are launched kernel by kernel, which takes longer."),
    ] = None


TENSORRT_LLM: Final = Software(
    name="tensorrt-llm",
    module="tensorrt_llm",
    title="TensorRT-LLM",
    version="TensorRT-LLM 1.2",
    started_as=("trtllm-serve", "trtllm", "tensorrt_llm"),
    serving=ServingSupport(
        settings=TensorRtLlmSettings,
        cache_formats=("bf16", "fp16", "fp8"),
        weight_formats=("bf16", "fp16", "fp8", "fp8-block128", "nvfp4", "awq4-128", "mxfp4"),
        networks=("decoder", "vision-language"),
        ignored_fields=("prompt_length", "prompt_logits", "attention"),
        default_split="matrices",
        graphs="working",
        working_memory="TensorRT-LLM profiles a step of max_num_tokens, whatever the plan's batch is.",
        outside_memory="The figure includes memory of other processes on the GPU.",
        narrows_fp32=True,
        memory_fraction="free_gpu_memory_fraction",
        sequence_limit="max_batch_size",
        drafts=("model", "mtp", "eagle3", "ngram"),
        caches_prefixes=True,
        process="trtllm",
    ),
)
