"""Inference capabilities and settings of SGLang."""

from typing import Annotated, Final

from pydantic import Field

from planner.workload.presentation import Presentation
from planner.workload.software.software import EngineSettings, ServingSupport, Software


class SglangSettings(EngineSettings):
    """Settings of SGLang, by SGLang's own names; unset fields have the server's defaults, which depend on the card."""

    mem_fraction_static: Annotated[
        float | None,
        Field(
            gt=0,
            lt=1,
            title="Static memory fraction",
            description="SGLang: fraction of the memory free at start for weights and KV cache",
        ),
        Presentation(
            explanation="What is left of the free memory is for activations, CUDA graphs and buffers.",
            stops=(0.5, 0.6, 0.7, 0.8, 0.85, 0.88, 0.9, 0.93, 0.95),
        ),
    ] = None
    max_running_requests: Annotated[
        int | None,
        Field(ge=1, le=1_000_000, title="Running requests", description="SGLang: maximum number of running requests"),
        Presentation(default="2,048", explanation="The table of cached tokens has a row for each of them."),
    ] = None
    chunked_prefill_size: Annotated[
        int | None,
        Field(
            ge=1,
            le=100_000_000,
            title="Prefill chunk",
            description="SGLang: maximum number of prompt tokens in one step",
        ),
        Presentation(explanation="The activations of a step grow with the number of tokens."),
    ] = None
    page_size: Annotated[
        int | None,
        Field(ge=1, le=4096, title="Page size", description="SGLang: number of tokens per page of the KV cache"),
        Presentation(explanation="Larger pages leave more unused space at the end of each sequence."),
    ] = None
    cuda_graph_max_bs: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Largest CUDA graph",
            description="SGLang: largest batch for which CUDA graphs of decoding are captured",
        ),
        Presentation(explanation="Graphs are captured for batches up to this one, and need memory of their own."),
    ] = None
    scheduler_recv_interval: Annotated[
        int | None,
        Field(
            ge=1,
            le=1_000_000,
            title="Decode steps between arrivals",
            description="SGLang: number of decoding steps after which the scheduler looks for new requests",
        ),
        Presentation(default="1", explanation="Decoding is interrupted less often, and requests wait longer to begin."),
    ] = None
    disable_cuda_graph: Annotated[
        bool | None,
        Field(title="Without CUDA graphs", description="SGLang: run without CUDA graphs"),
        Presentation(default="false", explanation="CUDA graphs are faster but need memory of their own."),
    ] = None


SGLANG: Final = Software(
    name="sglang",
    module="sglang",
    title="SGLang",
    version="SGLang 0.5.23",
    started_as=("sglang.launch_server",),
    serving=ServingSupport(
        settings=SglangSettings,
        cache_formats=("bf16", "fp16", "fp8"),
        containers=("safetensors", "gguf"),
        ignored_fields=("prompt_length", "prompt_logits", "attention"),
        default_split="matrices",
        graphs="working",
        working_memory="SGLang leaves a share of the GPU for steps, whatever they need.",
        outside_memory="SGLang measures what is free after its start, so the GPU context is not included.",
        narrows_fp32=True,
        memory_fraction="mem_fraction_static",
        sequence_limit="max_running_requests",
        drafts=("model", "mtp", "eagle", "eagle3", "ngram"),
        caches_prefixes=True,
        adapters=True,
        process="sglang",  # sglang::scheduler
    ),
)
