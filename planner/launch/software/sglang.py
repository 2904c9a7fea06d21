"""Plans as `sglang serve` commands, and back.

**Source**: SGLang 0.5.23 `srt/arg_groups/fields/*.py`, `sglang/cli/serve.py`.
"""

from typing import Final

from planner.dtypes import AS_STORED
from planner.launch.cache_fraction import cache_fraction, settled_sequences
from planner.launch.settings import CommandReader, Job, Launcher, LaunchFacts, Measurement, Setting, settings_from
from planner.launch.text import command_line, job_words
from planner.plan.logs.figures import request_tokens
from planner.plan.plan import Plan
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.recipes.servers import Option, read_engine_command
from planner.workload.software.sglang import SglangSettings
from planner.workload.workload import Inference

_VERSION: Final = "0.5.23"
_PORT: Final = 30_000
_REQUESTS_EACH: Final = 8
"""Requests of the benchmark for each that runs at the same time, so that most of the run has all of them."""
_OFF: Final = {"True": "disabled"}
OPTIONS: Final = (
    Option(
        "--dtype",
        "compute",
        "word",
        "compute precision",
        {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"},
    ),
    Option(
        "--quantization",
        "weights",
        "word",
        "weight format",
        {"fp8": "fp8", "nf4": "bitsandbytes", "awq4-128": "awq", "gptq4-128": "gptq"},
    ),
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
)
"""Options of `sglang serve`."""
_MODEL: Final = "--model-path"
_CACHE: Final = "--kv-cache-dtype"
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
_CLIENTS: Final = "each request has its own; the longest that fits is the context"
_UNEXPRESSED: Final = {
    "prompt_length": _CLIENTS,
    "prompt_logits": "each request asks for its own",
    "attention": "SGLang chooses its kernels by the GPU",
    "parallel.pipeline_layers": "set SGLANG_PP_LAYER_PARTITION to these numbers",
    "parallel.expert": "SGLang splits experts across the tensor-parallel GPUs of a replica: set --ep-size",
    "images": "each request has its own",
    "weights": "SGLang takes the format from the checkpoint: name one in this format",
    "other_processes_bytes": "SGLang counts what is free when it starts",
}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.workload
    assert isinstance(workload, Inference)
    assert isinstance(workload.engine, SglangSettings)
    weights = facts.evaluation.memory.term("weights")
    fraction = cache_fraction(facts, weights.bytes if weights else 0)
    engine = workload.engine.evolve(mem_fraction_static=fraction or workload.engine.mem_fraction_static)
    cache = "auto" if workload.kv_cache == workload.compute else workload.kv_cache
    chosen = list(settings_from(OPTIONS, workload.replaced(engine=engine, kv_cache=cache)))
    if cache == "auto":
        chosen.append(Setting(_CACHE, "auto", "KV-cache precision: that of the computation", ("kv_cache",)))
    if engine.disable_cuda_graph:
        chosen.append(Setting(_PROMPT_GRAPHS, "disabled", "no CUDA graphs of prompts either"))
    chosen.append(Setting("--enable-metrics", True, "measured latencies at /metrics"))
    unexpressed = dict(_UNEXPRESSED)
    if workload.batch != engine.max_running_requests:
        unexpressed["batch"] = f"clients decide how many requests they send; up to {engine.max_running_requests} run"
    return Job(
        start=("sglang", "serve"),
        requirement=f"sglang=={_VERSION}",
        arguments=(
            Setting(_MODEL, facts.model, "model of the plan", ("model",)),
            *(_explained(setting, workload) for setting in chosen),
        ),
        image=f"lmsysorg/sglang:v{_VERSION}",
        container_start=("sglang",),
        port=_PORT,
        unexpressed=unexpressed,
    )


def _explained(setting: Setting, workload: Inference) -> Setting:
    """Return `setting` with the further fields of the plan that it expresses."""
    if setting.key == "--max-running-requests" and setting.value == workload.batch:
        return setting._replace(fields=(*setting.fields, "batch"))
    if setting.key == "--dtype" and workload.weights in (AS_STORED, None, workload.compute):
        return setting._replace(comment="compute precision; weights as stored", fields=("compute", "weights"))
    return setting


def _settle(plan: Plan) -> Plan:
    """Return `plan` with as many running requests as it has, unless it sets their number."""
    assert isinstance(plan.workload, Inference)
    return plan.evolve(workload=settled_sequences(plan.workload))


def _measure(facts: LaunchFacts, job: Job) -> tuple[Measurement, ...]:
    """Return the start of the server, a benchmark of it, and a scrape of its metrics afterwards."""
    workload = facts.workload
    assert isinstance(workload, Inference)
    prompt, answer = request_tokens(workload)
    bench = (
        "python", "-m", "sglang.bench_serving", "--backend", "sglang", "--port", str(_PORT), "--dataset-name", "random",
        "--random-input-len", str(prompt), "--random-output-len", str(answer), "--random-range-ratio", "1",
        "--max-concurrency", str(workload.batch), "--num-prompts", str(_REQUESTS_EACH * workload.batch),
    )  # fmt: skip
    return (
        Measurement(
            "Speed: while the server runs",
            f"{command_line(job_words(job))} &\n{command_line(bench)}",
            figures=(
                ("throughput", "Output token throughput (tok/s)"),
                *((("first-token", "Mean TTFT (ms)"),) if workload.batch == 1 else ()),
                ("output-token", "Mean TPOT (ms)"),
            ),
        ),
        Measurement(
            "Cache: from the server's metrics",
            f"curl -s http://127.0.0.1:{_PORT}/metrics > metrics.txt",
            figures=(("cache-tokens", "sglang:max_total_num_tokens"),),
        ),
    )


def _read(reader: ConfigReader) -> None:
    read_engine_command(reader, "sglang", OPTIONS, _MODEL, _CACHE)
    reader.set_if_enabled("--disable-cuda-graph", "engine.disable_cuda_graph")
    reader.ignore_all((_PROMPT_GRAPHS,), "as the graphs of decoding")
    reader.ignore_rest(_NEUTRAL)


SGLANG_SERVER: Final = Launcher(
    "sglang",
    "SGLang",
    f"SGLang {_VERSION}",
    "inference",
    ("sglang",),
    _settle,
    _write,
    _measure,
    CommandReader((("sglang", "serve"), ("sglang.launch_server",)), _read, _ALIASES),
)
