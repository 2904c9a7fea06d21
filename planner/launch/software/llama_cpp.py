"""Plans as `llama-server` commands.

**Source**: llama.cpp `tools/server/README.md` at commit 00dc805; see `planner.workload.recipes.servers`.
"""

from collections.abc import Iterator
from typing import Final

from planner.dtypes import AS_STORED
from planner.launch.settings import (
    OF_REQUESTS,
    CommandReader,
    Job,
    Launcher,
    LaunchFacts,
    Measurement,
    Setting,
    draft_checkpoint,
    settings_from,
)
from planner.launch.text import command_line, job_words
from planner.plan.logs.figures import request_tokens
from planner.plan.plan import Plan
from planner.workload.recipes.servers import LLAMA_SERVER_OPTIONS, override_of_layers, read_llama_server
from planner.workload.software.llama_cpp import LlamaCppSettings
from planner.workload.workload import Inference

PORT: Final = 8080
GGUF: Final = ".gguf"
_PRINTS_SIZES: Final = 4
"""Verbosity from which llama.cpp 0.5.0 prints the sizes of its buffers; the default is 3."""
_BENCH_WORDS: Final = {
    "--model": "-m",
    "--n-gpu-layers": "-ngl",
    "--cache-type-k": "-ctk",
    "--cache-type-v": "-ctv",
    "--flash-attn": "-fa",
    "--batch-size": "-b",
    "--ubatch-size": "-ub",
    "--split-mode": "-sm",
    "--tensor-split": "-ts",
    "--n-cpu-moe": "-ncmoe",
    "--override-tensor": "-ot",
}
"""Options of llama.cpp's benchmarks by those of llama-server."""
UNEXPRESSED: Final = {
    **OF_REQUESTS,
    "compute": "llama.cpp chooses it by the kernel",
    "engine.n_outputs_max": "llama-server sets it itself",
    "other_processes_bytes": "llama-server takes what it needs, whatever else is on the GPU",
    "images": "each request has its own",
    "adapters.rank": "each file has its own",
    "adapters.targets": "each file has its own",
    "engine.ram": "it is what the machine has",
}
"""Fields that no setting of llama.cpp expresses, with the reason."""


def weights_file(facts: LaunchFacts) -> str:
    """Return the GGUF file of the plan, or the usual name of one if the plan names a model that is none."""
    if facts.model.lower().endswith(GGUF):
        return facts.model
    weights = facts.workload.weights
    name = facts.model.rstrip("/").rpartition("/")[2]
    return f"./{name}{GGUF}" if weights in (None, AS_STORED) else f"./{name}-{weights}{GGUF}"


def model_settings(facts: LaunchFacts, key: str) -> Setting:
    """Return the setting `key` with the plan's GGUF file."""
    own = facts.model.lower().endswith(GGUF)
    comment = "weights of the plan" if own else f"weights: your GGUF file of {facts.model}, in this format"
    return Setting(key, weights_file(facts), comment, ("model", "weights"))


def _write(facts: LaunchFacts) -> Job:
    workload = facts.inference
    assert isinstance(workload.engine, LlamaCppSettings)
    engine, slots = workload.engine, workload.engine.slots or workload.batch
    context = (workload.context_length or 1) * slots
    chosen = [
        model_settings(facts, "--model"),
        Setting("--alias", facts.evaluation.plan.model.id, "name of the model in requests", ("model",)),
        Setting(
            "--ctx-size",
            context,
            "context of the slot" if slots == 1 else f"context of all {slots} slots together",
            ("context_length",),
        ),
        *settings_from(LLAMA_SERVER_OPTIONS, workload.replaced(engine=engine.evolve(slots=slots))),
    ]
    cache = next(setting for setting in chosen if setting.key == "--cache-type-k")
    chosen.append(cache._replace(key="--cache-type-v", comment="precision of cached values"))
    unified = engine.kv_unified if engine.kv_unified is not None else engine.slots is None
    chosen.append(
        Setting(
            "--kv-unified" if unified else "--no-kv-unified",
            True,
            "one KV cache for all slots" if unified else "a KV cache for each slot",
            ("engine.kv_unified",),
        )
    )
    chosen += [*_placing(workload), *_adapters_and_draft(facts, workload)]
    if workload.speculation.method == "ngram":
        chosen = [
            setting._replace(key="--spec-ngram-simple-size-m") if setting.key == "--spec-draft-n-max" else setting
            for setting in chosen
        ]
    if engine.keeps_experts_in_ram:
        chosen.append(Setting("--load-mode", "none", "experts in memory from which the GPU copies fast"))
    if workload.parallel.pipeline > 1:
        chosen += _split(facts, workload)
    chosen.append(Setting("--fit", "off", "nothing is changed to make it fit; the plan was checked"))
    chosen = [
        setting._replace(fields=(*setting.fields, "batch"))
        if setting.key == "--parallel" and slots == workload.batch
        else setting
        for setting in chosen
    ]
    several = {"batch": f"clients decide how many requests they send; up to {slots} are answered"}
    return Job(
        start=("llama-server",),
        requirement="llama.cpp 0.5.0",
        arguments=tuple(chosen),
        image="ghcr.io/ggml-org/llama.cpp:server-cuda",
        container_start=("/app/llama-server",),
        local_files=True,
        places=("shell", "compose", "slurm", "kubernetes"),
        port=PORT,
        unexpressed={**UNEXPRESSED, **(several if slots != workload.batch else {})},
    )


def _placing(workload: Inference) -> Iterator[Setting]:
    """Yield the settings that place layers on the GPU and experts in RAM."""
    engine = workload.settings_as(LlamaCppSettings)
    if workload.gpu_layers is None:
        yield Setting("--n-gpu-layers", "all", "all layers on the GPU", ("gpu_layers",))
    if engine.cpu_moe_layers:
        yield Setting(
            "--override-tensor",
            override_of_layers(engine.cpu_moe_layers),
            "layers whose routed experts are in RAM",
            ("engine.cpu_moe_layers",),
        )


def _adapters_and_draft(facts: LaunchFacts, workload: Inference) -> Iterator[Setting]:
    """Yield the files of LoRA adapters and of the model that drafts, as far as the plan has them."""
    if workload.adapters.slots:
        files = ",".join(f"./adapter-{number}{GGUF}" for number in range(1, workload.adapters.slots + 1))
        yield Setting("--lora", files, "your LoRA adapters as GGUF files", ("adapters.slots",))
    drafting = workload.speculation
    if drafting.method in ("model", "eagle3"):
        fields = ("speculation.model",) if drafting.model else ()
        file = f"./{draft_checkpoint(facts).rpartition('/')[2]}{GGUF}"
        yield Setting("--spec-draft-model", file, "your GGUF file of the draft, in the same format", fields)
    if drafting.method not in (None, "ngram"):
        yield Setting("--spec-draft-ngl", "all", "all layers of the draft on the GPU")


def _split(facts: LaunchFacts, workload: Inference) -> list[Setting]:
    """Return the settings that place the layers on several GPUs as the estimate does."""
    counts = [device.layers or 1 for device in facts.evaluation.memory.per_gpu for _ in range(device.count)]
    layers = workload.parallel.pipeline_layers or tuple(counts)
    return [
        Setting("--split-mode", "layer", "each GPU holds some of the layers", ("parallel.pipeline",)),
        Setting(
            "--tensor-split",
            ",".join(map(str, layers)),
            "layers on each GPU",
            ("parallel.pipeline", *(("parallel.pipeline_layers",) if workload.parallel.pipeline_layers else ())),
        ),
    ]


def complete(plan: Plan) -> Plan:
    """Return `plan` with a slot for each request, and one KV cache for all, unless it sets them."""
    workload = plan.workload
    assert isinstance(workload, Inference)
    engine = workload.settings_as(LlamaCppSettings)
    if engine.slots is not None:
        return plan
    unified = True if engine.kv_unified is None else engine.kv_unified
    return plan.evolve(workload=workload.evolve(engine=engine.evolve(slots=workload.batch, kv_unified=unified)))


def _measure(facts: LaunchFacts, job: Job) -> tuple[Measurement, ...]:
    """Return the start of the server, and llama.cpp's own benchmark with the same settings.

    **Source**: llama.cpp `tools/llama-bench/README.md` at commit 08d0baa; `tools/batched-bench`.
    """
    workload = facts.inference
    (prompt, answer), requests = request_tokens(workload), workload.batch
    planned = facts.evaluation.plan.workload
    assert isinstance(planned, Inference)
    slots = planned.engine.slots if isinstance(planned.engine, LlamaCppSettings) and planned.engine.slots else requests
    # Without slots of its own, a plan is estimated with one for each request.
    sizes = {"--parallel": slots, "--ctx-size": slots * (workload.context_length or 1)}
    arguments = (
        *(setting._replace(value=sizes.get(setting.key, setting.value)) for setting in job.arguments),
        Setting("--verbosity", _PRINTS_SIZES, "sizes of buffers are not printed by default"),
    )
    own = [(word, setting.value) for setting in job.arguments if (word := _BENCH_WORDS.get(setting.key))]
    layers = facts.architecture.depth + 1
    options = [
        word
        for key, value in own
        for word in (key, str(layers if value == "all" else value).replace(",", "/" if key == "-ts" else ","))
    ]
    if requests == 1:
        shared = ("llama-bench", *options, "-o", "jsonl")
        speeds = (
            f"{command_line((*shared, '-p', str(prompt), '-n', '0'))}\n"
            f"{command_line((*shared, '-p', '0', '-n', str(answer), '-d', str(prompt)))}"
        )
    else:
        lengths = ("-c", str(requests * (prompt + answer)), "-npp", str(prompt), "-ntg", str(answer))
        speeds = command_line(("llama-batched-bench", *options, *lengths, "-npl", str(requests)))
    return (
        Measurement(
            "Memory: the server's start",
            f"{command_line(job_words(job._replace(arguments=arguments)))} 2>&1 | tee llama-server.log",
            (
                ("weights", "model buffer size"),
                ("kv_cache", "KV buffer size"),
                ("state", "RS buffer size"),
                ("working", "compute buffer size"),
                ("host", "CPU buffer sizes"),
            ),
        ),
        Measurement(
            "Speed: without the server",
            speeds,
            figures=(("prompt", "avg_ts, or S_PP t/s"), ("generation", "avg_ts, or S_TG t/s")),
        ),
    )


LLAMA_SERVER: Final = Launcher(
    "llama-server",
    "llama-server",
    "llama.cpp 0.5.0",
    "inference",
    ("llama.cpp",),
    _write,
    complete,
    _measure,
    CommandReader((("llama-server",),), read_llama_server),
)
