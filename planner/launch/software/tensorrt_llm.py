"""Plans as `trtllm-serve` commands with a file of settings, and back.

**Source**: NVIDIA/TensorRT-LLM@00209af `tensorrt_llm/commands/serve.py`, and `tensorrt_llm/llmapi/llm_args.py` of
version 1.2 (`TorchLlmArgs`, `KvCacheConfig`, `CudaGraphConfig`), whose keys the file has.
"""

from typing import Final

from planner.launch.paged_server import (
    cache_fraction,
    server_settings,
    speed_measurement,
    unexpressed_fields,
    with_sequence_limit,
)
from planner.launch.settings import (
    CommandReader,
    ConfigFile,
    Job,
    Launcher,
    LaunchFacts,
    Measurement,
    Setting,
    draft_checkpoint,
)
from planner.launch.text import command_line, job_words
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.servers import (
    DRAFT_METHOD,
    DRAFT_MODEL,
    DRAFT_TOKENS,
    DTYPE_OPTION,
    Option,
    read_engine_command,
)
from planner.workload.software.tensorrt_llm import TensorRtLlmSettings

_VERSION: Final = "1.2.1"
_PORT: Final = 8_000
_FILE: Final = "trtllm.yaml"
_CONFIG: Final = "--config"
_CACHE: Final = "kv_cache_config.dtype"
_RAM: Final = "kv_cache_config.host_cache_size"
_DRAFT: Final = "speculative_config.speculative_model_dir"
FLAGS: Final = (
    Option("--max_seq_len", "context_length", "integer", "context: prompt and output tokens together"),
    Option("--max_batch_size", "engine.max_batch_size", "integer", "requests in one step"),
    Option("--max_num_tokens", "engine.max_num_tokens", "integer", "tokens in one step"),
    Option("--tp_size", "parallel.tensor", "integer", "tensor parallelism"),
    Option("--pp_size", "parallel.pipeline", "integer", "pipeline parallelism"),
)
"""Options of `trtllm-serve`."""
KEYS: Final = (
    DTYPE_OPTION._replace(key="dtype"),
    Option(_CACHE, "kv_cache", "word", "KV-cache precision", {"fp8": "fp8", "bf16": "bfloat16", "fp16": "float16"}),
    Option(
        "kv_cache_config.free_gpu_memory_fraction",
        "engine.free_gpu_memory_fraction",
        "number",
        "share of the memory that weights and a step leave free",
    ),
    Option(
        "kv_cache_config.tokens_per_block", "engine.tokens_per_block", "integer", "tokens in each block of the KV cache"
    ),
    Option(
        "cuda_graph_config.max_batch_size",
        "engine.cuda_graph_max_batch_size",
        "integer",
        "largest batch in a CUDA graph",
    ),
    Option(
        "speculative_config.decoding_type",
        "speculation.method",
        "word",
        DRAFT_METHOD,
        {"model": "Draft_Target", "mtp": "MTP", "eagle3": "Eagle", "ngram": "NGram"},
    ),
    Option("speculative_config.max_draft_len", "speculation.tokens", "integer", DRAFT_TOKENS),
    Option(_DRAFT, "speculation.model", "text", DRAFT_MODEL),
)
"""Keys of the file that `--config` names."""
_ALIASES: Final = {
    "--tensor_parallel_size": "--tp_size",
    "--pipeline_parallel_size": "--pp_size",
    "--extra_llm_api_options": _CONFIG,
    "--free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "--kv_cache_free_gpu_memory_fraction": "kv_cache_config.free_gpu_memory_fraction",
    "max_batch_size": "--max_batch_size",
    "max_num_tokens": "--max_num_tokens",
    "max_seq_len": "--max_seq_len",
    "tensor_parallel_size": "--tp_size",
    "pipeline_parallel_size": "--pp_size",
}
_NEUTRAL: Final = frozenset(("--host", "--port", "--backend", "--log_level", "--trust_remote_code", "backend"))
_UNEXPRESSED: Final = {
    "parallel.pipeline_layers": "set pp_partition to these numbers",
    "parallel.data": "start a server for each replica",
    "parallel.expert": "TensorRT-LLM splits experts across the tensor-parallel GPUs of a server: set --ep_size",
    "images": "each request has its own",
    "other_processes_bytes": "TensorRT-LLM counts what is free after a step",
}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.inference
    assert isinstance(workload.engine, TensorRtLlmSettings)
    fraction = cache_fraction(facts, 0)
    engine = workload.engine.evolve(free_gpu_memory_fraction=fraction or workload.engine.free_gpu_memory_fraction)
    settled = workload.replaced(engine=engine)
    keys = list(server_settings(KEYS, settled))
    if workload.cache_in_ram_bytes:
        size = workload.cache_in_ram_bytes // (workload.parallel.tensor * workload.parallel.pipeline)
        keys.append(Setting(_RAM, size, "bytes of RAM for each GPU's KV cache", ("cache_in_ram_bytes",)))
    if workload.speculation.method == "eagle3" and workload.speculation.model is None:
        keys.append(Setting(_DRAFT, draft_checkpoint(facts), DRAFT_MODEL))
    return Job(
        start=("trtllm-serve", facts.model),
        requirement=f"tensorrt-llm=={_VERSION}",
        arguments=(
            *server_settings(FLAGS, settled),
            Setting(_CONFIG, _FILE, "the other settings"),
        ),
        configs=(ConfigFile(_FILE, "yaml", tuple(keys)),),
        image=f"nvcr.io/nvidia/tensorrt-llm/release:{_VERSION}",
        container_start=("trtllm-serve",),
        port=_PORT,
        expressed=("model",),
        unexpressed={**unexpressed_fields(workload), **_UNEXPRESSED},
    )


def _measure(facts: LaunchFacts, job: Job) -> tuple[Measurement, ...]:
    """Return the start of the server, and SGLang's or vLLM's benchmark, which run against any server of its kind."""
    bench = ("vllm", "bench", "serve", "--model", facts.model, "--port", str(_PORT), "--ignore-eos")
    return (speed_measurement(facts, f"{command_line(job_words(job))} &\n", *bench),)


def _read(reader: ConfigReader) -> None:
    read_engine_command(reader, "tensorrt-llm", (*FLAGS, *KEYS), "--model", _CACHE)
    size = reader.integer(_RAM, low=0, high=2**50)
    if size:
        cards = (reader.integer("--tp_size") or 1) * (reader.integer("--pp_size") or 1)
        reader.set(_RAM, "cache_in_ram_bytes", size * cards)
    reader.ignore_rest(_NEUTRAL)


TENSORRT_LLM_SERVER: Final = Launcher(
    "tensorrt-llm",
    "TensorRT-LLM",
    f"TensorRT-LLM {_VERSION}",
    "inference",
    ("tensorrt-llm",),
    _write,
    with_sequence_limit,
    _measure,
    CommandReader((("trtllm-serve", "serve"), ("trtllm-serve",)), _read, _ALIASES, _CONFIG),
)
