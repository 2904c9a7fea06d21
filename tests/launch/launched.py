"""Plans to launch, and comparison of a plan with what its files give when they are read."""

import re
from pathlib import Path

import yaml

import planner
from planner.errors import SpecError
from planner.launch.launch import launch_settings
from planner.launch.load import load_launch_file
from planner.plan.evaluate import evaluate
from planner.plan.recipes import with_recipe
from planner.workload.fields import fields_of
from planner.workload.rules import field_reader, nest_fields

LLAMA = planner.ModelChoice(id="meta-llama/Llama-3.1-8B")


def serving(profile, gpu="l40s", count=1, **fields):
    return planner.Plan(model=LLAMA, gpu=gpu, count=count, workload=planner.Inference(profile=profile, **fields))


def training(gpu="l40s", count=1, **fields):
    return planner.Plan(model=LLAMA, gpu=gpu, count=count, workload=planner.Training(**fields))


SMALL = {"model": "meta-llama/Llama-3.2-1B", "tokens": 5}
HEAD = {"method": "eagle3", "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", "tokens": 3}
PLANS = {
    "served": serving("vllm", batch=4, context_length=8192),
    "served in fp8": serving("vllm", batch=2, kv_cache="fp8", weights="fp8", context_length=4096),
    "served on 2": serving("vllm", count=2, batch=8, parallel={"tensor": 2}, engine={"max_num_batched_tokens": 4096}),
    "served eagerly": serving("vllm", compute="fp16", engine={"enforce_eager": True, "memory_utilization": 0.9}),
    "served in stages": serving("vllm", count=2, parallel={"pipeline": 2}, engine={"block_size": 32}),
    "served by sglang": serving("sglang", batch=4, context_length=8192),
    "served by sglang on 2": serving(
        "sglang", count=2, batch=8, kv_cache="fp8", parallel={"tensor": 2}, engine={"chunked_prefill_size": 2048}
    ),
    "served by sglang eagerly": serving(
        "sglang", gpu="h100-sxm5-80gb", weights="fp8", engine={"disable_cuda_graph": True, "page_size": 64}
    ),
    "served by tensorrt": serving("tensorrt-llm", batch=4, context_length=8192),
    "served by tensorrt on 2": serving(
        "tensorrt-llm", count=2, batch=8, kv_cache="fp8", parallel={"tensor": 2}, engine={"tokens_per_block": 64}
    ),
    "served by tensorrt in stages": serving(
        "tensorrt-llm", count=2, parallel={"pipeline": 2}, engine={"cuda_graph_max_batch_size": 8}
    ),
    "gguf": serving("llama.cpp", weights="Q4_K_M", batch=3, context_length=8192),
    "gguf with fewer layers": serving("llama.cpp", weights="Q8_0", gpu_layers=20, kv_cache="q8_0"),
    "gguf on 2": serving("llama.cpp", count=2, weights="Q8_0", parallel={"pipeline": 2}),
    "gguf with experts in ram": serving(
        "llama.cpp", weights="MXFP4_MOE", context_length=8192, engine={"n_cpu_moe": 12}
    ).evolve(model=planner.ModelChoice(id="openai/gpt-oss-20b")),
    "gguf with experts of 2 in ram": serving(
        "llama.cpp",
        count=2,
        weights="MXFP4_MOE",
        context_length=8192,
        parallel={"pipeline": 2, "pipeline_layers": (12, 12)},
        engine={"cpu_moe_layers": "0-3,12-15"},
    ).evolve(model=planner.ModelChoice(id="openai/gpt-oss-20b")),
    "gguf with slots": serving("llama.cpp", weights="Q4_K_M", batch=2, engine={"slots": 2, "kv_unified": False}),
    "served with a draft": serving("vllm", gpu="h100-sxm5-80gb", count=2, parallel={"tensor": 2}, speculation=SMALL),
    "served with adapters": serving("vllm", adapters={"slots": 4, "rank": 32, "targets": ("q_proj", "v_proj")}),
    "served with any adapters": serving("vllm", adapters={"slots": 2, "rank": 16}),
    "sglang with adapters": serving("sglang", gpu="h100-sxm5-80gb", adapters={"slots": 4, "targets": ("q_proj",)}),
    "sglang with any adapters": serving("sglang", gpu="h100-sxm5-80gb", adapters={"slots": 4, "rank": 64}),
    "gguf with adapters": serving("llama.cpp", weights="Q4_K_M", adapters={"slots": 2}),
    "served with cache in ram": serving("vllm", cache_in_ram_bytes=3 * 2**34),
    "sglang with cache in ram": serving(
        "sglang", gpu="h100-sxm5-80gb", count=2, parallel={"tensor": 2}, cache_in_ram_bytes=64 * 10**9
    ),
    "tensorrt with cache in ram": serving(
        "tensorrt-llm", gpu="h100-sxm5-80gb", count=2, parallel={"tensor": 2}, cache_in_ram_bytes=2**36
    ),
    "served with a head": serving("vllm", batch=2, context_length=4096, speculation=HEAD),
    "sglang with a head": serving("sglang", gpu="h100-sxm5-80gb", batch=4, speculation=HEAD),
    "sglang with repeated words": serving("sglang", gpu="h100-sxm5-80gb", speculation={"method": "ngram", "tokens": 4}),
    "tensorrt with a head": serving("tensorrt-llm", gpu="h100-sxm5-80gb", batch=4, speculation=HEAD),
    "gguf with a draft": serving("llama.cpp", weights="Q4_K_M", speculation={"model": "Llama-3.2-1B", "tokens": 4}),
    "lora": training(
        method="lora", lora={"rank": 32, "targets": ("q_proj", "v_proj")}, activation_checkpointing="full"
    ),
    "qlora": training(method="qlora", micro_batch=2, sequence_length=1024, activation_checkpointing="full"),
    "lora with liger": training(method="lora", profile="liger", activation_checkpointing="full"),
    "dpo with adapters": training(
        method="lora", alignment={"method": "dpo"}, sequence_length=1024, activation_checkpointing="full"
    ),
    "dpo computed first": training(
        gpu="h200-sxm-141gb",
        compute="amp-bf16",
        weights="bf16",
        optimizer="adamw-8bit",
        alignment={"method": "dpo", "reference": "precomputed"},
        activation_checkpointing="full",
    ),
    "grpo by the trainer": training(
        method="qlora",
        alignment={"method": "grpo", "completion_length": 256, "group": 4, "reference": "adapter-off"},
        gradient_accumulation=4,
        activation_checkpointing="full",
    ),
    "grpo beside vllm": training(
        gpu="h200-sxm-141gb",
        method="lora",
        alignment={"method": "grpo", "engine": "same-cards-asleep", "engine_memory": 0.4, "reward": "model"},
        micro_batch=8,
        activation_checkpointing="full",
    ),
    "grpo on other GPUs": training(
        gpu="h200-sxm-141gb",
        method="lora",
        alignment={"method": "grpo", "engine": "other-cards", "engine_cards": 2},
        micro_batch=8,
        activation_checkpointing="full",
    ),
    "full in fsdp": training(count=8, parallel={"zero": 3}, activation_checkpointing="full", gradient_clipping=True),
    "full in zero-2": training(
        count=8, profile="deepspeed", parallel={"zero": 2, "offload": "optimizer"}, gradient_accumulation=4
    ),
    "full in zero-3": training(
        count=8, profile="deepspeed", parallel={"zero": 3, "offload": "parameters"}, activation_checkpointing="full"
    ),
    "full in 16 bits": training(
        count=8, weights="bf16", parallel={"zero": 3, "reshard_after_forward": False}, activation_checkpointing="full"
    ),
    "pure bf16": training(
        count=8, compute="bf16", parallel={"zero": 3}, optimizer="lion", activation_checkpointing="full"
    ),
    "8 bits": training(
        count=8, optimizer="adamw-8bit", parallel={"zero": 3}, attention="flash", activation_checkpointing="full"
    ),
    "in chunks": training(
        count=8,
        loss="chunked",
        loss_chunks=8,
        parallel={"zero": 3},
        gradient_accumulation=2,
        activation_checkpointing="selective",
    ),
    "in stages": training(
        gpu="h100-sxm5-80gb",
        count=8,
        parallel={"tensor": 2, "sequence": True, "pipeline": 2, "data": 2, "zero": 3},
        loss="chunked",
        gradient_accumulation=4,
        activation_checkpointing="full",
    ),
}
"""Plans by what they are of."""


def without_comments(text, name):
    """Return a launch file without its comments; JSON and settings in a Modelfile have none."""
    if name.endswith((".yaml", ".yml")):
        return yaml.safe_dump(yaml.safe_load(text), sort_keys=False)
    lines = [line for line in text.splitlines() if line.startswith(("#!", "#SBATCH")) or not line.startswith("#")]
    return "".join(f"{re.sub(r'  # .*$', '', line)}\n" for line in lines)


def written(plan, catalog, program, place):
    """Return the launch settings, or the error that refuses them."""
    try:
        return launch_settings(plan, catalog, program, place)
    except SpecError as error:
        return error


def read_back(settings, folder: Path):
    """Write the files without comments to `folder`, and return the recipe that the first one gives."""
    for file in settings.files:
        (folder / file.name).write_text(without_comments(file.text, file.name))
    return load_launch_file(folder / settings.files[0].name)


def differences(settings, recipe, catalog):
    """Return the fields that the files give differently, or drop without saying so, and whether the estimates differ.

    What the files say that they do not express is taken from the plan.
    """
    unsaid = {row.field for row in settings.not_expressed}
    plan = settings.plan
    names = fields_of(plan.workload.task)
    own = field_reader(plan.workload)
    fields = {name: value for name in sorted(unsaid) if name in names and (value := own(name)) is not None}
    workload = recipe.workload
    for name, value in nest_fields(fields).items():
        part = getattr(workload, name)
        change = part.evolve(**value) if isinstance(value, dict) and part is not None else value
        workload = workload.evolve(**{name: change})
    again = with_recipe(planner.Plan(model=plan.model, gpu=plan.gpu), recipe.evolve(workload=workload))
    first, second = evaluate(plan, catalog), evaluate(again, catalog)
    said = {field for row in settings.settings for field in row.fields if field in names}
    said |= {name for name, field in names.items() if own(name) not in (None, (), field.default)} - unsaid
    one, other = field_reader(first.workload), field_reader(second.workload)
    alike = {"fp16": "bf16", "flash": "sdpa"} if first.workload.profile == "llama.cpp" else {}
    found = [
        (name, one(name), other(name))
        for name in sorted(said - {"parallel.sharing"})
        if one(name) is not None and alike.get(one(name), one(name)) != alike.get(other(name), other(name))
    ]
    if first.memory.total_bytes != second.memory.total_bytes:
        found.append(("memory", first.memory.total_bytes, second.memory.total_bytes))
    if first.plan.count != second.plan.count:
        found.append(("count", first.plan.count, second.plan.count))
    return found
