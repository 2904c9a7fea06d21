"""Plans as `sglang serve` commands, and back.

**Source**: SGLang 0.5.23 `srt/arg_groups/fields/*.py`, `sglang/cli/serve.py`.
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
    Job,
    Launcher,
    LaunchFacts,
    Measurement,
    Setting,
    draft_checkpoint,
    lora_slot_settings,
)
from planner.launch.text import command_line, job_words
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.servers import (
    DRAFT_METHOD,
    DRAFT_MODEL,
    DRAFT_TOKENS,
    DTYPE_OPTION,
    QUANTIZATION_OPTION,
    Option,
    read_adapters,
    read_engine_command,
)
from planner.workload.software.sglang import SglangSettings

_VERSION: Final = "0.5.23"
_PORT: Final = 30_000
_OFF: Final = {"True": "disabled"}
OPTIONS: Final = (
    DTYPE_OPTION,
    QUANTIZATION_OPTION,
    Option("--context-length", "context_length", "integer", "context: prompt and output tokens together"),
    Option("--max-running-requests", "engine.max_running_requests", "integer", "requests at the same time"),
    Option("--chunked-prefill-size", "engine.chunked_prefill_size", "integer", "prompt tokens in one step"),
    Option("--kv-cache-dtype", "kv_cache", "word", "KV-cache precision", {"fp8": "fp8_e4m3", "bf16": "bfloat16"}),
    Option(
        "--mem-fraction-static",
        "engine.mem_fraction_static",
        "number",
        "share of the memory free at start for weights and KV cache",
    ),
    Option("--page-size", "engine.page_size", "integer", "tokens in each page of the KV cache"),
    Option("--cuda-graph-max-bs-decode", "engine.cuda_graph_max_bs", "integer", "largest batch in a CUDA graph"),
    Option("--scheduler-recv-interval", "engine.scheduler_recv_interval", "integer", "decode steps between arrivals"),
    Option("--cuda-graph-backend-decode", "engine.disable_cuda_graph", "word", "no CUDA graphs", _OFF),
    Option("--tp-size", "parallel.tensor", "integer", "tensor parallelism"),
    Option("--pp-size", "parallel.pipeline", "integer", "pipeline parallelism"),
    Option("--dp-size", "parallel.data", "integer", "replicas"),
    Option(
        "--speculative-algorithm",
        "speculation.method",
        "word",
        DRAFT_METHOD,
        {"model": "STANDALONE", "mtp": "NEXTN", "eagle": "EAGLE", "eagle3": "EAGLE3", "ngram": "NGRAM"},
    ),
    Option("--max-loras-per-batch", "adapters.slots", "integer", "LoRA adapters on the GPU at once"),
    Option("--max-lora-rank", "adapters.rank", "integer", "highest rank of LoRA adapters"),
    Option("--speculative-draft-model-path", "speculation.model", "text", DRAFT_MODEL),
    Option("--speculative-num-steps", "speculation.tokens", "integer", DRAFT_TOKENS),
)
"""Options of `sglang serve`."""
_MODEL: Final = "--model-path"
_CACHE: Final = "--kv-cache-dtype"
_RAM: Final = "--hicache-size"
_TARGETS: Final = "--lora-target-modules"
_STEPS: Final = "--speculative-num-steps"
_CHECKED: Final = "--speculative-num-draft-tokens"
_PROMPT_GRAPHS: Final = "--cuda-graph-backend-prefill"
_ALIASES: Final = {
    "--model": _MODEL,
    "--tp": "--tp-size",
    "--tensor-parallel-size": "--tp-size",
    "--pipeline-parallel-size": "--pp-size",
    "--dp": "--dp-size",
    "--data-parallel-size": "--dp-size",
    "--cuda-graph-max-bs": "--cuda-graph-max-bs-decode",
}
_NEUTRAL: Final = frozenset(("--host", "--port", "--served-model-name", "--trust-remote-code", "--enable-metrics"))
_UNEXPRESSED: Final = {
    "parallel.pipeline_layers": "set SGLANG_PP_LAYER_PARTITION to these numbers",
    "parallel.expert": "SGLang splits experts across the tensor-parallel GPUs of a replica: set --ep-size",
    "images": "each request has its own",
    "other_processes_bytes": "SGLang counts what is free when it starts",
}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.inference
    assert isinstance(workload.engine, SglangSettings)
    loaded = [term.bytes for term in facts.evaluation.memory.terms if term.name in ("weights", "draft", "adapters")]
    fraction = cache_fraction(facts, sum(loaded))
    engine = workload.engine.evolve(mem_fraction_static=fraction or workload.engine.mem_fraction_static)
    adapters = workload.adapters if workload.adapters.slots else None
    chosen = list(server_settings(OPTIONS, workload.replaced(engine=engine, adapters=adapters)))
    chosen += lora_slot_settings(workload, _TARGETS)
    if workload.adapters.slots and workload.adapters.targets == "all-linear":
        chosen.append(Setting(_TARGETS, "all", "layers that may have an adapter", ("adapters.targets",)))
    if workload.cache_in_ram_bytes:
        cards = workload.parallel.tensor * workload.parallel.pipeline
        size = max(round(workload.cache_in_ram_bytes / cards / 1e9), 1)
        chosen.append(Setting("--enable-hierarchical-cache", True, "KV cache in RAM as well", ("cache_in_ram_bytes",)))
        chosen.append(Setting(_RAM, size, "GB of RAM for each GPU", ("cache_in_ram_bytes",)))
    own = workload.speculation
    if own.method is not None:
        checked = Setting(_CHECKED, own.drafted + 1, "tokens in each check", ("speculation.tokens",))
        if own.method == "ngram":
            chosen = [setting for setting in chosen if setting.key != _STEPS]
            chosen.append(checked)
        else:
            chosen += [checked, Setting("--speculative-eagle-topk", 1, "one chain of tokens, as in the estimate")]
        if own.method in ("eagle", "eagle3") and own.model is None:
            chosen.append(Setting("--speculative-draft-model-path", draft_checkpoint(facts), DRAFT_MODEL))
    if engine.disable_cuda_graph:
        chosen.append(Setting(_PROMPT_GRAPHS, "disabled", "no CUDA graphs of prompts either"))
    chosen.append(Setting("--enable-metrics", True, "measured latencies at /metrics"))
    return Job(
        start=("sglang", "serve"),
        requirement=f"sglang=={_VERSION}",
        arguments=(Setting(_MODEL, facts.model, "model of the plan", ("model",)), *chosen),
        image=f"lmsysorg/sglang:v{_VERSION}",
        container_start=("sglang",),
        port=_PORT,
        unexpressed={**unexpressed_fields(workload), **_UNEXPRESSED},
    )


def _measure(facts: LaunchFacts, job: Job) -> tuple[Measurement, ...]:
    """Return the start of the server, a benchmark of it, and a scrape of its metrics afterwards."""
    bench = ("python", "-m", "sglang.bench_serving", "--backend", "sglang", "--port", str(_PORT))
    return (
        speed_measurement(facts, f"{command_line(job_words(job))} &\n", *bench, "--random-range-ratio", "1"),
        Measurement(
            "Cache: from the server's metrics",
            f"curl -s http://127.0.0.1:{_PORT}/metrics > metrics.txt",
            figures=(("cache-tokens", "sglang:max_total_num_tokens"),),
        ),
    )


def _read(reader: ConfigReader) -> None:
    read_engine_command(reader, "sglang", OPTIONS, _MODEL, _CACHE)
    reader.set_if_enabled("--disable-cuda-graph", "engine.disable_cuda_graph")
    size = reader.integer(_RAM)
    if reader.flag("--enable-hierarchical-cache") and size is not None:
        cards = (reader.integer("--tp-size") or 1) * (reader.integer("--pp-size") or 1)
        reader.set(_RAM, "cache_in_ram_bytes", size * cards * 10**9)
        reader.record_read("--enable-hierarchical-cache", "cache_in_ram_bytes")
    read_adapters(reader, "--max-loras-per-batch", _TARGETS, slots=8)
    checked = reader.integer(_CHECKED)
    if checked is not None and reader.field("speculation.tokens") is None:
        reader.set(_CHECKED, "speculation.tokens", checked - 1)
    reader.ignore_all((_CHECKED, "--speculative-eagle-topk"), "one chain of drafted tokens is estimated")
    reader.ignore_all((_PROMPT_GRAPHS,), "as the graphs of decoding")
    reader.ignore_rest(_NEUTRAL)


SGLANG_SERVER: Final = Launcher(
    "sglang",
    "SGLang",
    f"SGLang {_VERSION}",
    "inference",
    ("sglang",),
    _write,
    with_sequence_limit,
    _measure,
    CommandReader((("sglang", "serve"), ("sglang.launch_server",)), _read, _ALIASES),
)
