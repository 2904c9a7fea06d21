"""Plans as `vllm serve` commands.

**Source**: vLLM 0.33.0 `engine/arg_utils.py`; see `planner.workload.recipes.servers`.
"""

import json
import math
from typing import Final

from planner.errors import SpecError
from planner.launch.paged_server import server_settings, speed_measurement, unexpressed_fields, with_sequence_limit
from planner.launch.settings import (
    FITTING_HINT,
    CommandReader,
    Job,
    Launcher,
    LaunchFacts,
    Measurement,
    Setting,
    draft_checkpoint,
    lora_slot_settings,
    settings_from,
)
from planner.launch.text import command_line, job_words
from planner.memory.parallel.tensor import draft_is_divided
from planner.units import GIB, ceil_div
from planner.workload.recipes.servers import DRAFT_METHOD, VLLM_OPTIONS, VLLM_SPECULATION, read_vllm_options
from planner.workload.software.vllm import VllmSettings, reserved_rank
from planner.workload.workload import Inference, ServedAdapters

_PATCH: Final = {"0.33": "0.33.0", "0.19": "0.19.0", "0.11": "0.11.0"}
_PORT: Final = 8000
_STEP: Final = 100
"""The memory fraction is rounded up to 1/100."""
_UNEXPRESSED: Final = {
    "parallel.pipeline_layers": "set VLLM_PP_LAYER_PARTITION to these numbers",
    "images": "vLLM limits images per request, but profiles one",
}


def _write(facts: LaunchFacts) -> Job:
    workload = facts.inference
    assert isinstance(workload.engine, VllmSettings)
    version = workload.engine.version or "0.33"
    utilization = _memory_fraction(facts, workload.engine)
    engine = workload.engine.evolve(memory_utilization=utilization)
    settled = workload.replaced(engine=engine, adapters=_reserved_adapters(workload))
    chosen = [_explained(setting, facts, workload) for setting in server_settings(VLLM_OPTIONS, settled)]
    if workload.cache_in_ram_bytes:
        size = round(workload.cache_in_ram_bytes / GIB, 3)
        chosen.append(Setting("--kv-offloading-size", size, "GiB of RAM for the KV cache", ("cache_in_ram_bytes",)))
    chosen += lora_slot_settings(workload, "--lora-target-modules")
    if workload.speculation.method is not None:
        chosen.append(_speculation(workload, facts))
    unexpressed = {**unexpressed_fields(workload), **_UNEXPRESSED}
    parallel = workload.parallel
    if parallel.expert > 1 and parallel.expert == (parallel.data or 1) * parallel.tensor:
        chosen.append(Setting("--enable-expert-parallel", True, "experts split across all GPUs", ("parallel.expert",)))
    elif parallel.expert > 1:
        unexpressed["parallel.expert"] = "vLLM splits experts across the tensor- and data-parallel GPUs together"
    return Job(
        start=("vllm", "serve", facts.model),
        requirement=f"vllm=={_PATCH[version]}",
        arguments=tuple(chosen),
        image=f"vllm/vllm-openai:v{_PATCH[version]}",
        container_start=("vllm",),
        port=_PORT,
        expressed=("model", "engine.version"),
        unexpressed=unexpressed,
    )


def _reserved_adapters(workload: Inference) -> ServedAdapters | None:
    """Return the adapters with a rank that vLLM has, None without slots, so that no option names any."""
    own = workload.adapters
    return own.evolve(rank=reserved_rank(own.rank)) if own.slots else None


def _speculation(workload: Inference, facts: LaunchFacts) -> Setting:
    """Return the option by which vLLM drafts tokens, a section in JSON."""
    drafting = list(settings_from(VLLM_SPECULATION, workload))
    config: dict[str, object] = {setting.key: setting.value for setting in drafting}
    if workload.speculation.method in ("eagle", "eagle3"):
        config.setdefault("model", draft_checkpoint(facts))
    draft = facts.architecture.draft
    if workload.parallel.tensor > 1 and draft is not None and not draft_is_divided(draft, workload.parallel.tensor):
        config["draft_tensor_parallel_size"] = 1
    fields = tuple(field for setting in drafting for field in setting.fields)
    return Setting("--speculative-config", json.dumps(config), DRAFT_METHOD, fields)


def _explained(setting: Setting, facts: LaunchFacts, workload: Inference) -> Setting:
    """Return `setting` with what its value follows from, where the option alone does not say it."""
    pool = facts.evaluation.memory.cache_pool
    if setting.key == "--gpu-memory-utilization" and pool is not None:
        needed = sum(term.bytes for term in facts.evaluation.memory.terms if term.name in ("kv_cache", "state"))
        text = (
            f"share of each GPU's memory: weights, activations and {needed / GIB:.2f} GiB of KV cache for "
            f"{workload.batch:,} × {workload.context_length or 1:,} tokens"
        )
        return setting._replace(comment=text, fields=(*setting.fields, "batch", "other_processes_bytes"))
    return setting


def _memory_fraction(facts: LaunchFacts, engine: VllmSettings) -> float | None:
    """Return the share of each GPU's memory that the plan needs in vLLM, rounded up to 0.01; None without a cache.

    **Formula**: u = ⌈100 · (weights + step + graphs from 0.21 on + outside PyTorch + pages of all sequences) / C⌉ /
    100; C is the total that a process sees. What the estimate's pool leaves of its own share is what these need.
    """
    memory = facts.evaluation.memory
    pool, total = memory.cache_pool, memory.capacity_bytes
    if pool is None or not total:
        return engine.memory_utilization
    workload = facts.inference
    per_sequence = pool.bytes / pool.sequences if pool.sequences else math.inf
    beside = int(pool.utilization * total) - pool.bytes
    needed = beside + per_sequence * min(workload.batch, engine.max_num_seqs or workload.batch)
    free = total - memory.other_processes_bytes
    planned = facts.evaluation.plan.workload
    assert isinstance(planned, Inference)
    own = planned.settings_as(VllmSettings).memory_utilization
    share = own or (ceil_div(int(needed * _STEP), total) / _STEP if needed < total else math.inf)
    if needed > share * total or share * total > free:
        raise SpecError(
            "engine.memory_utilization",
            f"the plan needs {needed / GIB:.2f} GiB of each GPU in vLLM, but "
            + (f"its share is {own:g} of {total / GIB:.2f} GiB" if own else f"{free / GIB:.2f} GiB are free"),
            FITTING_HINT,
        )
    return share


def _measure(facts: LaunchFacts, job: Job) -> tuple[Measurement, ...]:
    """Return the start of the server and a benchmark of it.

    The server gets the share of memory that the estimate is for, not the least that the plan needs.
    """
    pool = facts.evaluation.memory.cache_pool
    arguments = tuple(
        setting._replace(value=pool.utilization)
        if setting.key == "--gpu-memory-utilization" and pool is not None
        else setting
        for setting in job.arguments
    )
    bench = ("vllm", "bench", "serve", "--model", facts.model, "--port", str(_PORT), "--ignore-eos")
    return (
        Measurement(
            "Memory: the server's start",
            f"{command_line(job_words(job._replace(arguments=arguments)))} 2>&1 | tee vllm.log",
            (
                ("weights", "Model loading took … GiB"),
                ("working", "peak activation, or torch peak memory increase"),
                ("overhead", "non-torch memory, and CUDA graphs"),
                ("pool", "Available KV cache memory: … GiB"),
            ),
            (("cache-tokens", "GPU KV cache size: … tokens"),),
        ),
        speed_measurement(facts, "", *bench),
    )


_READER: Final = CommandReader((("vllm", "serve"), ("vllm.entrypoints.openai.api_server",)), read_vllm_options)
VLLM_SERVER: Final = Launcher(
    "vllm", "vLLM", "vLLM 0.33.0", "inference", ("vllm",), _write, with_sequence_limit, _measure, _READER
)
