"""Questions for `answers.py`, which records the answers: plans, jobs, networks to trace and recordings to replay.

The questions are written as the JSON of plans and as options of the command line, because these names are stable.
"""

from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

Fields = dict[str, Any]


class Model(NamedTuple):
    """A model of the catalog: its kind, how many layers it has, and whether it has experts."""

    id: str
    kind: str
    layers: int = 0
    has_experts: bool = False


class Case(NamedTuple):
    """A plan by its name, as the fields of its file."""

    name: str
    plan: Fields


MODELS: Final = (
    Model("meta-llama/Llama-3.1-8B", "text", 32),
    Model("google-bert/bert-base-uncased", "encoder", 12),
    Model("mistralai/Mixtral-8x7B-v0.1", "text", 32, has_experts=True),
    Model("black-forest-labs/FLUX.1-dev", "diffusion"),
    Model("Qwen/Qwen2-VL-7B-Instruct", "vision-text", 28),
    Model("openai-community/gpt2", "text", 12),
    Model("google-t5/t5-large", "encoder-decoder"),
    Model("google/gemma-2-9b", "text", 42),
    Model("google/vit-base-patch16-224", "vision", 12),
    Model("deepseek-ai/DeepSeek-V3", "text", 61, has_experts=True),
    Model("meta-llama/Llama-3.1-70B", "text", 80),
    Model("stabilityai/stable-diffusion-xl-base-1.0", "diffusion"),
    Model("Qwen/Qwen2.5-0.5B", "text", 24),
    Model("openai/whisper-large-v3", "encoder-decoder"),
    Model("openai/gpt-oss-20b", "text", 24, has_experts=True),
    Model("google/gemma-3-4b-it", "vision-text", 34),
    Model("tiiuae/falcon-7b", "text", 32),
    Model("Qwen/Qwen3-30B-A3B", "text", 48, has_experts=True),
    Model("meta-llama/Llama-3.2-11B-Vision", "vision-text", 40),
    Model("microsoft/Phi-3-mini-4k-instruct", "text", 32),
)
CARDS: Final = (
    ("h100-sxm5-80gb", 8),
    ("rtx-4090", 1),
    ("a100-sxm4-80gb", 4),
    ("rtx-3090", 2),
    ("tesla-t4", 1),
    ("instinct-mi300x", 8),
    ("h200-sxm-141gb", 16),
    ("tesla-v100-sxm2-32gb", 4),
    ("apple-m3-ultra", 1),
    ("b200-sxm-180gb", 8),
    ("l40s", 4),
    ("rtx-5090", 2),
)
WORKLOADS: Final = 8
_POSSIBLE: Final = 0.85

_PROFILES: Final = ("hf", "liger", "unsloth", "torchtune", "megatron", "deepspeed", "litgpt")
_SCHEMES: Final = (
    None, "as-stored", "fp32", "bf16", "fp16", "fp8", "fp8-block128", "int8", "nf4", "nf4-dq", "gptq4-128", "gptq4-64",
    "gptq4-32", "awq4-128", "awq4-64", "gptq8-128", "mxfp8", "mxfp4", "nvfp4",
)  # fmt: skip
_GGUF: Final = (
    "F32", "F16", "BF16", "Q8_0", "Q6_K", "Q5_K_M", "Q5_K_S", "Q5_0", "Q5_1", "Q4_K_M", "Q4_K_S", "Q4_0", "Q4_1",
    "IQ4_NL", "IQ4_XS", "Q3_K_L", "Q3_K_M", "Q3_K_S", "Q2_K", "bf16", "Q4_K_M",
)  # fmt: skip
_OPTIMIZERS: Final = (
    "adamw", "adam", "nadam", "rmsprop", "adagrad", "adamw-8bit", "adamw-32bit-bnb", "paged-adamw-8bit",
    "paged-adamw-32bit", "adafactor", "adafactor-transformers", "sgd", "sgd-momentum", "lion", "lion-8bit",
    "paged-lion", "paged-lion-8bit", "muon", "galore-adamw", "soap", "shampoo",
)  # fmt: skip
_OPTIMIZERS_OF_MORE: Final = (
    "ademamix", "ademamix-8bit", "paged-ademamix", "paged-ademamix-8bit", "schedule-free-adamw",
)  # fmt: skip
"""Optimizers that only `more_cases` asks about: the grid's cases keep the optimizers that they have."""
_FEW_STEPS: Final = {
    "adamw": ("fused", "foreach", "loop"),
    "adam": ("fused", "foreach", "loop"),
    "sgd": ("fused", "foreach", "loop"),
    "sgd-momentum": ("fused", "foreach", "loop"),
    "nadam": ("foreach", "loop"),
    "adafactor": ("foreach", "loop"),
}
_COMPUTE: Final = ("amp-bf16", "bf16", "fp32", "tf32", "fp16", "amp-fp16", "fp8", "amp-bf16", "bf16")
_FP8_PROFILES: Final = ("hf", "liger", "torchtune", "deepspeed")
_CHECKPOINTING: Final = ("none", "full", "selective", "full")
_ATTENTION: Final = ("sdpa", "flash", "eager")
_LOSSES: Final = (None, None, "full-logits", "chunked", "fused-linear")
_TARGETS: Final = ("all-linear", ["q_proj", "v_proj"], ["q_proj", "k_proj", "v_proj", "o_proj"], "all-linear")
_LINKS: Final = (None, None, None, "pcie", "nvlink")


def grid_cases(model_index: int) -> Iterator[Case]:
    """Return the plans of a model on every card: eight workloads each."""
    model = MODELS[model_index]
    for card_index, (card, count) in enumerate(CARDS):
        turn = model_index * len(CARDS) + card_index
        for slot, (label, workload, cards) in enumerate(_workloads(model, turn, count)):
            # The seed is a text, so that each plan stays as it is when others are added.
            chance = Random(f"{model.id} {card} {slot}")
            plan: Fields = {"schema_version": 1, "model": {"id": model.id}, "workload": workload}
            if not workload.get("gpus"):
                plan |= {"gpu": card, "count": cards}
            plan |= {"timing": _timing(model, chance, cards), "cost": _cost(workload, chance)}
            yield Case(f"{model.id} · {count} {card} · {slot} {label}", plan)


def more_cases() -> Iterator[Case]:
    """Return plans for options that the grid rarely or never covers: optimizer steps, and rare choices."""
    small, mixtral, llama = "meta-llama/Llama-3.2-1B", "mistralai/Mixtral-8x7B-v0.1", "meta-llama/Llama-3.1-8B"
    for draft in (
        {"method": "model", "model": small}, {"method": "eagle", "tokens": 4}, {"method": "eagle3"},
        {"method": "ngram", "tokens": 4, "acceptance": 0.5},
    ):  # fmt: skip
        served = {"task": "inference", "profile": "vllm", "batch": 8, "speculation": draft}
        yield _case(f"draft {draft['method']}", llama, {**served, "adapters": {"slots": 2}, "common_prefix": 512})
    drafted = {"task": "inference", "profile": "sglang", "batch": 8, "speculation": {"method": "mtp"}}
    yield _case("draft mtp", "zai-org/GLM-4.5-Air", {**drafted, "cache_in_ram_bytes": 2**36})
    grouped = {"group": 4, "completion_length": 512}
    for alignment in (
        {"method": "dpo", "reference": "kept"}, {"method": "dpo", "reference": "precomputed"},
        {"method": "ppo", "completion_length": 512, "reference": "kept", "reward": "model", "value": "full"},
        {"method": "grpo", **grouped, "reference": "none"}, {"method": "grpo", **grouped, "engine": "same-cards"},
        {"method": "grpo", **grouped, "engine": "same-cards-asleep", "reference": "adapter-off"},
        {"method": "grpo", **grouped, "engine": "other-cards"},
    ):  # fmt: skip
        tuned = {"task": "training", "method": "lora", "micro_batch": 4, "sequence_length": 1_024}
        names = " ".join(str(value) for value in alignment.values())
        yield _case(f"aligned {names}", small, {**tuned, "alignment": alignment})
    for optimizer in (*_OPTIMIZERS, *_OPTIMIZERS_OF_MORE):
        for step in (None, "fused", "foreach", "loop"):
            workload = {"task": "training", "optimizer": optimizer, "optimizer_step": step, "gradient_clipping": True}
            yield _case(f"{optimizer} {step}", small, workload)
    for method, weights, compute in (
        ("full", "fp16", "fp16"), ("lora", "fp16", "fp16"), ("lora", "fp16", "amp-fp16"), ("full", "bf16", "amp-bf16"),
        ("full", "bf16", "fp8"), ("lora", "int8", "amp-fp16"), ("lora", "fp32", "tf32"), ("full", "nf4", "amp-bf16"),
    ):  # fmt: skip
        for profile in _PROFILES:
            workload = {"task": "training", "method": method, "weights": weights, "compute": compute}
            yield _case(f"{method} {profile} {weights} {compute}", small, workload | {"profile": profile})
    for profile, model, parallel in (
        ("megatron", llama, {"pipeline": 2, "interleave": 2}),
        ("megatron", llama, {"pipeline": 4, "interleave": 4, "zero": 1}),
        ("megatron", llama, {"tensor": 2, "pipeline": 2, "interleave": 4, "sequence": True}),
        ("deepspeed", llama, {"pipeline": 4, "interleave": 2}),
        ("megatron", mixtral, {"expert": 4, "tensor": 2, "sequence": True}),
        ("megatron", mixtral, {"expert": 8, "zero": 1}),
        ("deepspeed", mixtral, {"expert": 8, "zero": 3}),
        ("deepspeed", mixtral, {"expert": 4, "zero": 1}),
        ("hf", mixtral, {"expert": 8, "zero": 3, "reshard_after_forward": False}),
        ("torchtune", mixtral, {"expert": 2, "zero": 2}),
        ("hf", llama, {"gradient_as_bucket_view": True}),
        ("torchtune", llama, {"context": 4, "tensor": 2, "zero": 3}),
    ):
        ways = " ".join(f"{name}={value}" for name, value in parallel.items())
        workload = {"task": "training", "profile": profile, "parallel": parallel, "gradient_accumulation": 8}
        yield _case(f"{profile} {ways}", model, workload, 8)
    for profile in ("hf", "vllm", "llama.cpp"):
        for offload in ("optimizer", "parameters", "nvme"):
            workload = {"task": "inference", "profile": profile, "parallel": {"offload": offload}}
            yield _case(f"serving {profile} offload {offload}", llama, workload)
    yield from _trained_pipelines()
    yield from _sharing_cases()


def _trained_pipelines() -> Iterator[Case]:
    """Return trainings of image pipelines, with each choice of what is computed before."""
    for pipeline in ("black-forest-labs/FLUX.1-dev", "stabilityai/stable-diffusion-xl-base-1.0"):
        for precomputed in ("none", "prompts", "all"):
            adapted = {"task": "training", "method": "lora", "lora": {"targets": "usual"}, "precomputed": precomputed}
            yield _case(f"lora {precomputed} precomputed", pipeline, adapted)
        whole = {"task": "training", "image_size": 512, "micro_batch": 4, "activation_checkpointing": "full"}
        yield _case("full checkpointed", pipeline, whole)


def _sharing_cases() -> Iterator[Case]:
    """Return plans of several cards with their sharing left to the software, and set by hand."""
    for task, profiles in (("inference", ("hf", "vllm", "llama.cpp")), ("training", ("hf", "deepspeed", "megatron"))):
        for profile in profiles:
            for sharing in ("auto", "manual"):
                workload = {"task": task, "profile": profile, "parallel": {"sharing": sharing}}
                yield _case(f"{task} {profile} sharing {sharing}", "meta-llama/Llama-3.1-70B", workload, 8, schema=2)


def _case(name: str, model: str, workload: Fields, count: int = 1, *, schema: int = 1) -> Case:
    plan = {
        "schema_version": schema,
        "model": {"id": model},
        "workload": workload,
        "gpu": "h100-sxm5-80gb",
        "count": count,
    }
    return Case(f"{model} · {count} h100-sxm5-80gb · {name}", plan)


def _workloads(model: Model, turn: int, count: int) -> Iterator[tuple[str, Fields, int]]:
    makers = {
        "text": (_served, _by_vllm, _by_llama_cpp, _full, _lora, _qlora, _shared, _special),
        "vision-text": (_served, _by_vllm, _by_llama_cpp, _full, _lora, _qlora, _shared, _with_images),
        "encoder": (_served, _by_vllm, _full, _full, _lora, _qlora, _shared, _partial),
        "vision": (_images_read, _images_read, _full, _full, _lora, _qlora, _shared, _partial),
        "encoder-decoder": (_served, _served, _by_vllm, _full, _lora, _qlora, _shared, _partial),
        "diffusion": (_diffused,) * 7 + (_diffusion_refused,),
    }[model.kind]
    for slot, maker in enumerate(makers):
        chance = Random(f"{model.id} {turn} {slot}")
        label, workload = maker(model, turn + slot, count, chance)
        if chance.random() < _POSSIBLE:
            _make_possible(workload)
        kinds = workload.get("gpus", ())
        cards = 1 if workload.get("profile") == "litgpt" else sum(kind["count"] for kind in kinds) or count
        yield label, workload, cards


def _make_possible(workload: Fields) -> None:
    """Remove settings that the training software does not support, except from a few plans that must be refused."""
    profile, lora = workload.get("profile"), workload.get("lora", {})
    if profile == "litgpt":
        workload |= {"activation_checkpointing": "none", "checkpoint_every": 1, "attention": "sdpa", "loss": None}
        if workload.get("weights") == "int8":
            workload["weights"] = None
        lora.pop("dora", None)
    if workload.get("activation_checkpointing") == "selective" and (profile == "torchtune" or lora.get("dora")):
        workload["activation_checkpointing"] = "full"


def _served(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    weights = _SCHEMES[turn % len(_SCHEMES)]
    parallel = _inference_parallel(model, count, turn) if turn % 3 else {}
    if turn % 11 == 0:
        parallel = {"offload": "parameters"}
    workload = {
        "task": "inference", "profile": "hf", "weights": weights,
        "compute": chance.choice(("bf16", "bf16", "fp16", "fp32")), "batch": chance.choice((1, 4, 16, 33)),
        "context_length": chance.choice((None, 1000, 8192) if model.kind == "text" else (None, 448, 512)),
        "kv_cache": chance.choice(("bf16", "fp16", "fp32", "fp8", "q8_0", "q4_0", "q5_1", "q5_0", "q4_1")),
        "attention": _ATTENTION[turn % 3], "prompt_logits": chance.choice(("last", "last", "all")),
        "other_processes_bytes": chance.choice((0, 0, 1 << 30)), "parallel": parallel,
    }  # fmt: skip
    if model.kind == "encoder-decoder" or model.kind == "encoder":
        workload["kv_cache"] = "bf16"
    return f"hf {weights}", workload


def _by_vllm(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    version = (None, "0.33", "0.19", "0.11")[turn % 4]
    engine = {
        "version": version, "max_num_seqs": chance.choice((None, None, 64, 256)),
        "max_num_batched_tokens": chance.choice((None, None, 2048, 8192)),
        "memory_utilization": chance.choice((None, 0.9, 0.85)), "block_size": chance.choice((None, 16, 32)),
        "enforce_eager": chance.choice((None, True, False)),
    }  # fmt: skip
    weights = chance.choice((None, None, "bf16", "fp8", "awq4-128", "gptq4-128", "fp16", "mxfp4", "nvfp4", "int8"))
    return f"vllm {version} {weights}", {
        "task": "inference", "profile": "vllm", "weights": weights, "batch": chance.choice((1, 8, 64, 200)),
        "context_length": chance.choice((None, 1024, 4096)), "prompt_length": chance.choice((None, 512)),
        "kv_cache": chance.choice(("bf16", "fp8", "fp16", "fp32")), "compute": chance.choice(("bf16", "fp16")),
        "engine": engine, "parallel": _inference_parallel(model, count, turn),
    }  # fmt: skip


def _by_llama_cpp(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    weights = _GGUF[turn % len(_GGUF)]
    attention = chance.choice(("flash", "sdpa", "eager"))
    caches = ("fp16", "bf16", "fp32") if attention == "eager" else ("fp16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0")
    engine = {
        "n_batch": chance.choice((None, 1024)), "n_ubatch": chance.choice((None, 256, 1024)),
        "slots": chance.choice((None, None, 1, 8)), "kv_unified": chance.choice((None, None, False, True)),
        "swa_full": chance.choice((None, None, True)), "n_outputs_max": chance.choice((None, None, 4)),
    }  # fmt: skip
    layers = chance.choice((None, None, 0, model.layers // 2))
    return f"llama.cpp {weights}", {
        "task": "inference", "profile": chance.choice(("llama.cpp", "llama.cpp", None)), "weights": weights,
        "batch": chance.choice((1, 1, 4)), "context_length": chance.choice((None, 2048, 4096)),
        "kv_cache": chance.choice(caches), "attention": attention, "gpu_layers": layers, "engine": engine,
        "parallel": {"pipeline": count} if count > 1 else {},
    }  # fmt: skip


def _full(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    profile = _PROFILES[turn % len(_PROFILES)]
    optimizer = _OPTIMIZERS[(turn * 2 + turn // 21) % len(_OPTIMIZERS)]
    compute = _COMPUTE[turn % len(_COMPUTE)]
    if (compute == "fp8" and profile not in _FP8_PROFILES) or optimizer == "soap":
        compute = "amp-bf16"
    zero = chance.choice((0, 0, 1, 2, 3)) if count > 1 and profile != "litgpt" else 0
    parallel = {"zero": min(zero, 1) if profile == "megatron" else zero}
    if zero == 0 and turn % 2:
        parallel["gradient_as_bucket_view"] = True
    if zero == 3 and turn % 2:
        parallel["reshard_after_forward"] = False
    workload = _training(model, turn, chance) | {
        "method": "full", "profile": profile, "optimizer": optimizer, "compute": compute, "parallel": parallel,
        "optimizer_step": chance.choice((None, *_FEW_STEPS.get(optimizer, ()))),
        "gradient_clipping": chance.random() < 0.3,
    }  # fmt: skip
    return f"full {profile} {optimizer} {compute} zero-{zero}", workload


def _lora(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    profile = _PROFILES[(turn * 3 + 1) % len(_PROFILES)]
    targets = _TARGETS[turn % len(_TARGETS)] if model.kind in ("text", "vision-text") else "all-linear"
    if model.id in ("openai-community/gpt2", "tiiuae/falcon-7b"):
        targets = "all-linear"
    if model.id == "microsoft/Phi-3-mini-4k-instruct" and targets != "all-linear":
        targets = ["qkv_proj"]
    dora = turn % 5 == 0
    shards = (0, 0, 1, 2, 3) if count > 1 and profile not in ("megatron", "litgpt") else ()
    weights = chance.choice((None, None, "bf16", "int8", "fp32"))
    workload = _training(model, turn, chance) | {
        "method": "lora", "profile": profile, "weights": weights,
        "compute": "amp-bf16" if weights != "bf16" else chance.choice(("bf16", "amp-bf16")),
        "lora": {
            "rank": chance.choice((4, 16, 64)), "targets": targets, "dora": dora,
            "adapter_dtype": chance.choice(("fp32", "fp32", "bf16")), "dropout": chance.choice((0.0, 0.05)),
        },
        "optimizer": chance.choice(_OPTIMIZERS[:13]),
        "parallel": {"zero": chance.choice(shards)} if shards else {},
    }  # fmt: skip
    return f"{'dora' if dora else 'lora'} {profile} {weights}", workload


def _qlora(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    profile = _PROFILES[(turn * 5 + 2) % len(_PROFILES)]
    weights = chance.choice((None, "nf4", "nf4-dq"))
    workload = _training(model, turn, chance) | {
        "method": "qlora", "profile": profile, "weights": weights,
        "compute": chance.choice(("bf16", "fp16") if profile == "litgpt" else ("amp-bf16", "amp-bf16", "amp-fp16")),
        "optimizer": chance.choice(("paged-adamw-8bit", "paged-adamw-32bit", "adamw-8bit", "paged-lion-8bit", "adamw")),
        "parallel": {"zero": chance.choice((0, 3))} if count > 1 and profile in ("hf", "liger", "torchtune") else {},
    }  # fmt: skip
    return f"qlora {profile} {weights}", workload


def _shared(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    """Return a training with one of the many combinations of parallelism."""
    ways: list[tuple[str, Fields]] = [
        ("deepspeed", {"zero": 2, "offload": "optimizer"}), ("hf", {"zero": 3, "offload": "parameters"}),
        ("deepspeed", {"zero": 3, "offload": "nvme"}), ("torchtune", {"zero": 3, "offload": "parameters"}),
        ("deepspeed", {"zero": 1}),
    ]  # fmt: skip
    if count > 1:
        ways += [
            ("megatron", {"tensor": 2, "sequence": True}), ("megatron", {"pipeline": 2, "zero": 1}),
            ("hf", {"context": 2, "zero": 3}), ("hf", {"tensor": 2}), ("deepspeed", {"pipeline": 2, "zero": 1}),
            ("megatron", {"pipeline": 2, "interleave": 2}), ("torchtune", {"tensor": 2}), ("megatron", {"context": 2}),
            ("deepspeed", {"zero": 3, "tensor": 2}), ("megatron", {"pipeline": 2, "pipeline_layers": _uneven(model)}),
        ]  # fmt: skip
    if count > 2:
        ways += [
            ("megatron", {"tensor": 2, "pipeline": 2, "zero": 1}), ("megatron", {"tensor": 4, "sequence": True}),
            ("hf", {"tensor": 2, "context": 2}), ("torchtune", {"tensor": 2, "zero": 3}),
            ("megatron", {"pipeline": 4}), ("deepspeed", {"tensor": 2, "pipeline": 2}),
        ]  # fmt: skip
    if model.has_experts and count > 1:
        ways += 4 * [
            ("megatron", {"expert": 2}), ("deepspeed", {"expert": 2, "zero": 2}), ("hf", {"expert": 2, "zero": 3}),
            ("megatron", {"expert": 2, "tensor": 2} if count > 2 else {"expert": 2, "zero": 1}),
        ]  # fmt: skip
    profile, parallel = chance.choice(ways)
    workload = _training(model, turn, chance) | {
        "method": chance.choice(("full", "full", "full", "lora")), "profile": profile, "parallel": parallel,
        "compute": chance.choice(("amp-bf16", "bf16")),
    }  # fmt: skip
    if "context" in parallel and workload["attention"] == "eager":
        workload["attention"] = "sdpa"
    return f"shared {profile} {' '.join(f'{name}={value}' for name, value in parallel.items())}", workload


def _special(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    """Return a rare workload: unequal cards, partial training, huge contexts, or settings that are refused."""
    kinds = [{"id": "rtx-4090", "count": 1}, {"id": "rtx-3090", "count": 1}]
    large = [{"id": "h100-sxm5-80gb", "count": 2}, {"id": "a100-sxm4-80gb", "count": 2}]
    base = {"method": "full", "compute": "amp-bf16", "profile": _PROFILES[turn % 5]}
    trained = _training(model, turn, chance) | base
    made = [
        ("unequal serving", {"task": "inference", "gpus": kinds, "parallel": {"pipeline": 2}, "weights": "int8"}),
        ("unequal llama.cpp", {
            "task": "inference", "profile": "llama.cpp", "weights": "Q4_K_M", "gpus": large,
            "parallel": {"pipeline": 4},
        }),
        ("unequal training", trained | {"gpus": large, "parallel": {"zero": 3}, "profile": "hf"}),
        ("unequal stages", trained | {"gpus": large, "parallel": {"pipeline": 4}, "profile": "megatron"}),
        ("last layers", trained | {"trainable": [f"layers.{model.layers - 1}", "*norm*"]}),
        ("norms", trained | {"trainable": ["*norm*"]}),
        ("long context", {"task": "inference", "profile": "vllm", "context_length": 131_072, "batch": 8}),
        ("no batch that large", trained | {"micro_batch": 4096, "sequence_length": 4096}),
        ("LitGPT", {"task": "inference", "profile": "litgpt", "weights": "nf4", "parallel": {"pipeline": count}}),
        ("AutoAWQ", {"task": "inference", "profile": "autoawq", "batch": 4}),
        ("gpt-fast", {"task": "inference", "profile": "gpt-fast", "engine": {"kv_cache_quantization": True}}),
        ("refused setting", {"task": "inference", "profile": "vllm", "engine": {"n_ubatch": 64}}),
        ("refused sharing", trained | {"profile": "megatron", "parallel": {"zero": 2}}),
        ("refused offload", trained | {"profile": "torchtune", "parallel": {"zero": 3, "offload": "nvme"}}),
        ("refused cards", {"task": "inference", "parallel": {"tensor": 3}}),
        ("unknown optimizer", trained | {"optimizer": "adamx"}),
    ]  # fmt: skip
    return made[turn % len(made)]


def _partial(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    pattern = ("*LayerNorm*", "*bias", "classifier", "*attention*", "*layer_norm*")[turn % 5]
    return f"trained {pattern}", _training(model, turn, chance) | {
        "method": "full", "trainable": [pattern], "profile": "hf", "compute": _COMPUTE[turn % 4],
        "optimizer": _OPTIMIZERS[turn % 13],
    }  # fmt: skip


def _with_images(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    size = chance.choice((None, "448x448", 896, [640, 480]))
    if turn % 4 == 0:
        seen = {"images": 2, "frozen_vision": ("tower", "all", "none")[turn // 3 % 3], "profile": "hf"}
        return "trained on images", _training(model, turn, chance) | {"method": "lora", "image_size": size} | seen
    if turn % 4 == 1:
        return "trained projector", _training(model, turn, chance) | {"trainable": ["*merger*", "*projector*"]}
    return f"images of {size}", {
        "task": "inference", "profile": chance.choice(("hf", "vllm")), "image_size": size,
        "images": chance.choice((None, 0, 2, 5)), "batch": chance.choice((1, 8)),
    }  # fmt: skip


def _images_read(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    return "images", {
        "task": "inference", "batch": chance.choice((1, 64, 512)), "image_size": chance.choice((None, None, 384)),
        "attention": _ATTENTION[turn % 3], "weights": chance.choice((None, "fp16", "int8", "fp32")),
        "compute": chance.choice(("bf16", "fp16", "fp32")),
    }  # fmt: skip


def _diffused(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    weights = (None, "bf16", "fp8", "nf4", "int8", "fp16", "fp32")[turn % 7]
    offload = ("none", "model", "sequential")[turn // 2 % 3]
    return f"images {weights} {offload}", {
        "task": "inference", "profile": chance.choice((None, "hf")), "weights": weights,
        "compute": chance.choice(("bf16", "fp16", "fp32")), "batch": chance.choice((1, 2, 4)),
        "image_size": chance.choice((None, 512, "1024x768", 2048)), "attention": _ATTENTION[turn % 3],
        "diffusion": {
            "guidance": chance.choice((None, True, False)), "offload": offload, "vae_tiling": chance.random() < 0.4,
            "vae_slicing": chance.random() < 0.4, "prompt_tokens": chance.choice((None, None, 256)),
            "text_weights": chance.choice((None, None, "nf4", "int8")),
        },
    }  # fmt: skip


def _diffusion_refused(model: Model, turn: int, count: int, chance: Random) -> tuple[str, Fields]:
    made: list[tuple[str, Fields]] = [
        ("trained", {"task": "training", "method": "lora"}), ("refused vllm", {"task": "inference", "profile": "vllm"}),
        ("refused format", {"task": "inference", "weights": "Q4_K_M"}),
        ("refused size", {"task": "inference", "image_size": 513}),
        ("refused sharing", {"task": "inference", "parallel": {"tensor": 2}}),
    ]  # fmt: skip
    return made[turn % len(made)]


def _training(model: Model, turn: int, chance: Random) -> Fields:
    """Return the fields that every training has."""
    large = model.kind in ("encoder", "vision")
    fields: Fields = {
        "task": "training", "micro_batch": chance.choice((1, 2, 8, 32) if large else (1, 1, 2, 4)),
        "gradient_accumulation": chance.choice((1, 1, 4, 16)), "attention": _ATTENTION[(turn // 2) % 3],
        "activation_checkpointing": _CHECKPOINTING[(turn // 3) % 4], "loss": chance.choice(_LOSSES),
        "loss_chunks": chance.choice((8, 4)),
    }  # fmt: skip
    if model.kind != "vision":
        fields["sequence_length"] = (
            chance.choice((None, 128, 448)) if model.kind != "text" else chance.choice((None, 512))
        )
    if fields["activation_checkpointing"] == "full":
        fields["checkpoint_every"] = chance.choice((1, 1, 2))
    return fields


def _inference_parallel(model: Model, count: int, turn: int) -> Fields:
    ways: list[Fields] = [{"tensor": count}, {"pipeline": count}, {}]
    if count > 2:
        ways += [{"tensor": 2, "pipeline": count // 2}, {"tensor": 2}]
    if model.has_experts and count > 1:
        ways += [{"expert": count}]
    return ways[turn % len(ways)] if count > 1 else {}


def _uneven(model: Model) -> list[int]:
    first = model.layers // 2 + 1
    return [first, model.layers - first]


def _timing(model: Model, chance: Random, count: int) -> Fields:
    setting: Fields = {"compiled": chance.random() < 0.25}
    if count > 1:
        setting["link"] = chance.choice(_LINKS)
        setting["cards_per_node"] = chance.choice((None, None, None, 2, 4))
        setting["network_bytes_per_s"] = chance.choice((None, None, 12.5e9))
        setting["parameter_server"] = chance.random() < 0.05
    if model.kind == "diffusion":
        setting["diffusion_steps"] = chance.choice((None, 4, 28))
    if chance.random() < 0.1:
        setting["matrix_format"] = chance.choice(("fp8", "fp4"))
    if chance.random() < 0.1:
        setting["input_samples_per_second"] = 50.0
    if chance.random() < 0.06:
        setting["measured"] = {"value": 1234.5, "unit": "tokens/s", "gpu": "a100-sxm4-80gb", "count": 1}
    return setting


def _cost(workload: Fields, chance: Random) -> Fields:
    if workload["task"] == "training":
        job = chance.choice(
            (
                {"kind": "run", "amount": 50e6, "unit": "tokens", "checkpoint_seconds": 30, "restart_seconds": 120},
                {"kind": "run", "amount": 100_000, "unit": "samples", "repeats_per_year": 12},
                {"kind": "run", "amount": 3, "unit": "epochs", "dataset_samples": 20_000, "dataset_gb": 12.5},
                {"kind": "run", "amount": 1_000, "unit": "steps", "evaluation_fraction": 0.1, "checkpoint_gb": 40},
                {"kind": "run", "amount": 72, "unit": "hours", "checkpoint_interval_hours": 2},
                {"kind": "daily-hours", "hours_per_day": 10},
            )
        )
    else:
        job = chance.choice(
            (
                {"kind": "service", "requests_per_day": 20_000},
                {"kind": "service", "requests_per_day": 3e6, "prompt_tokens": 300, "scales_down": True},
                {"kind": "service", "requests_per_day": 5e4, "hourly_shares": [1] * 8 + [4] * 12 + [2] * 4},
                {"kind": "run", "amount": 1e9, "unit": "tokens"},
                {"kind": "daily-hours", "hours_per_day": 8, "days_per_week": 7},
            )
        )
    rent = {"mode": chance.choice(("on-demand", "on-demand", "spot", "reserved-1y", "reserved-3y"))}
    if chance.random() < 0.3:
        rent["one_machine"] = False
    if chance.random() < 0.2:
        rent["include_history"] = True
    buy: Fields = {"place": chance.choice(("desk", "lab", "colocation", "data-centre"))}
    if chance.random() < 0.2:
        buy |= {"card_price_usd": 1900, "tariff_usd_per_kwh": 0.31, "switched_off_when_idle": True}
    if chance.random() < 0.2:
        buy |= {"loan_fraction": 0.5, "loan_rate": 0.05, "depreciation": chance.choice(("declining", "macrs-5"))}
    return {
        "job": job, "rent": rent, "buy": buy, "region": chance.choice(("US", "DE", "US-WA", "FR")),
        "horizon_years": chance.choice((3, 5)), "discount_rate": chance.choice((0.08, 0.0)),
    }  # fmt: skip


_QLORA: Final = {"task": "training", "method": "qlora", "activation_checkpointing": "full"}
_CHAT: Final = {"task": "inference", "profile": "vllm", "batch": 32}
_DESK: Final = {"task": "inference", "profile": "llama.cpp", "weights": "Q4_K_M"}
_SHARDED: Final = {"task": "training", "profile": "deepspeed", "parallel": {"zero": 3}}
_AWQ: Final = {"task": "inference", "profile": "vllm", "weights": "awq4-128"}
RECOMMENDED: Final[tuple[tuple[str, str, Fields, str], ...]] = (
    ("a service of 8B", "meta-llama/Llama-3.1-8B", _CHAT, "--requests-per-day 20000"),
    ("QLoRA within a budget", "meta-llama/Llama-3.1-8B", _QLORA, "--tokens 50e6 --budget 20"),
    (
        "70B in a hurry",
        "meta-llama/Llama-3.1-70B",
        _QLORA,
        "--tokens 20e6 --deadline 48 --counts 1,2,4,8,16 --modes on-demand,spot",
    ),
    ("a desk", "Qwen/Qwen3-30B-A3B", _DESK, "--own --place desk --power 800 --tight"),
    (
        "pictures",
        "black-forest-labs/FLUX.1-dev",
        {"task": "inference", "weights": "nf4"},
        "--samples 100000 --rent",
    ),
    ("full fine-tuning", "Qwen/Qwen2.5-7B", _SHARDED, "--epochs 3 --dataset 20000 --vendor nvidia --counts 4,8"),
    ("an encoder", "google-bert/bert-base-uncased", {"task": "training", "micro_batch": 32}, "--steps 10000"),
    (
        "daily work",
        "mistralai/Mixtral-8x7B-v0.1",
        _AWQ,
        "--hours-per-day 12 --electricity DE --modes reserved-1y,reserved-3y,on-demand",
    ),
)
"""Jobs to recommend hardware for: a model, a workload, and options."""

_GPT2: Final = {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"], "n_embd": 384, "n_layer": 6, "n_head": 6,
                "vocab_size": 16000, "bos_token_id": 0, "eos_token_id": 0}  # fmt: skip
_LLAMA: Final = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "vocab_size": 16000,
                 "intermediate_size": 1376, "num_hidden_layers": 6, "num_attention_heads": 8,
                 "num_key_value_heads": 4}  # fmt: skip
_MIXTRAL: Final = {"model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 384,
                   "intermediate_size": 768, "num_hidden_layers": 4, "num_attention_heads": 6, "vocab_size": 16000,
                   "num_key_value_heads": 2, "num_local_experts": 4, "num_experts_per_tok": 2}  # fmt: skip
_T5: Final = {"model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 384, "d_ff": 1024,
              "d_kv": 64, "num_layers": 4, "num_heads": 6, "vocab_size": 16000,
              "decoder_start_token_id": 0}  # fmt: skip
_TEXT: Final = {"batch": 4, "sequence_length": 128}
TRACED: Final[tuple[tuple[str, Fields], ...]] = (
    ("mlp", {"net": "plain.py:mlp", "task": "training"}),
    ("vae", {"net": "plain.py:vae", "task": "training", "optimizer": "Adam", "autocast": "bf16"}),
    ("resnet18", {"net": "convolutional.py:resnet18", "task": "training", "optimizer": "SGD"}),
    ("unet", {"net": "convolutional.py:unet", "task": "inference"}),
    ("lstm", {"net": "recurrent.py:lstm", "task": "training", "optimizer": "Adam"}),
    ("gan", {"net": "adversarial.py:dcgan", "task": "training", "optimizer": "Adam"}),
    ("dit", {"net": "diffusion.py:dit", "task": "training", "parallel": {"ranks": 4, "strategy": "fsdp"}}),
    ("gpt2", {"config": _GPT2, "task": "training", "checkpointing": "full", "gradient_accumulation": 2} | _TEXT),
    ("llama answers", {"config": _LLAMA, "task": "inference", "decode_tokens": 8} | _TEXT),
    ("llama lora", {"config": _LLAMA, "task": "training", "lora": {"rank": 8}, "autocast": "bf16"} | _TEXT),
    ("mixtral", {"config": _MIXTRAL, "task": "training", "optimizer": "Adafactor"} | _TEXT),
    ("t5", {"config": _T5, "task": "training", "parallel": {"ranks": 2, "strategy": "ddp"}, "device": "cpu"} | _TEXT),
)
"""Networks that are traced: a function of a file in `nets/`, or a configuration of transformers."""

LOGS: Final = {
    "query.csv": """\
timestamp, index, uuid, pci.bus_id, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], \
clocks.sm [MHz], pstate, clocks_event_reasons.active, fan.speed [%], temperature.memory
2026/01/03 15:36:53.507, 0, GPU-0a, 00000000:01:00.0, NVIDIA GeForce RTX 4090, 1 %, 1129 MiB, 24564 MiB, 33.09 W, \
210 MHz, P8, 0x0000000000000001, 30 %, [N/A]
2026/01/03 15:36:53.512, 1, GPU-0b, 00000000:02:00.0, NVIDIA GeForce RTX 4090, [Insufficient Permissions], , \
24564 MiB, [Unknown Error], 2520 MHz, P0, 0x4, [Function Not Found], [Not Supported]
2026/01/03 15:36:54.507, 0, GPU-0a, 00000000:01:00.0, NVIDIA GeForce RTX 4090, 34 %, 17304 MiB, 24564 MiB, 71.06 W, \
2520 MHz, P2, 0x0, 31 %, [Requested functionality has been deprecated]
2026/01/03 15:36:54.512, 1, GPU-0b, 000000
""",
    "plato.csv": """\
2026/04/25 16:20:23.686, 0 %, 0 %, 1949 MiB, 18199 MiB, 28, 11.48 W
2026/04/25 16:20:28.887, 2 %, 0 %, 3767 MiB, 16381 MiB, 30, 31.73 W
2026/04/25 16:20:33.907, 0 %, 0 %, 6183 MiB, 13965 MiB, 31, 32.69 W
2026/04/25 16:20:38.986, 0 %, 0 %, 20137 MiB, 11 MiB, 31, 31.49 W
2026/04/25 16:23:34.819, 44 %, 47 %, 4 MiB, 20143 MiB, 28, 18.40 W
""",
    "dmon.txt": """\
#Date       Time        gpu   pwr gtemp mtemp    sm   mem   enc   dec  mclk  pclk sbecc dbecc   pci rxpci txpci
#YYYYMMDD   HH:MM:SS    Idx     W     C     C     %     %     %     %   MHz   MHz  errs  errs  errs  MB/s  MB/s
 20210102   19:12:31      0    37    19     -     0     0     0     0   405   300     -     -     0     1     2
 20210102   19:12:31      1    60    30     -    50     7     0     0  5000  1300     -     -     0     3     4
 20210102   19:12:33      0    38    19     -     0     0     0     0   405   300     -     -     0     1     2
""",
    "amd.csv": """\
timestamp,gpu,gfx_activity,umc_activity,vcn_activity,socket_power,gfx_0_clk,mem_0_clk,edge,hotspot,mem
1786553852,0,97,12,"['N/A', 'N/A']",238,2100,2000,N/A,37,23
1786553852,1,0,0,"[0, 0]",242,94,2000,N/A,41,26

1786553853,0,96,12,"['N/A', 'N/A']",239,2100,2000,N/A,38,23
1786553853,1,0,0,"[0, 0]",243,94,2000,N/A,41,26
""",
    "dcgmi.txt": """\
#Entity         GPUTL             FBUSD             FBTTL             SMACT             DRAMA             TOTEC
ID
GPU 0           10                800               1000              0.512             N/A               5000
GPU 1           30                900               1000              0.25              0.125             7000
GPU-I 3         N/A               100               1000              0.9               0.5               N/A
GPU 0           11                800               1000              0.513             N/A               6000
""",
    "dcgm.csv": """\
timestamp,gpu,uuid,DCGM_FI_DEV_GPU_UTIL,DCGM_FI_DEV_POWER_USAGE,DCGM_FI_PROF_PIPE_TENSOR_ACTIVE
2026-01-03T10:00:00+00:00,0,GPU-0a,99,650.5,0.41
2026-01-03T10:00:01+00:00,0,GPU-0a,98,655.5,0.42
""",
    "nvtop.json": """\
[{"device_name": "NVIDIA GeForce RTX 5060 Ti", "gpu_clock": "210MHz", "mem_clock": "405MHz", "temp": "36C",
  "fan_speed": "CPU Fan", "power_draw": "7W", "gpu_util": "0%", "mem_util": "35%", "mem_total": "21197180928",
  "mem_used": "7585398784", "mem_free": "13611782144"},
 {"device_name": "Battlemage G21", "gpu_clock": "400MHz", "mem_clock": null, "fan_speed": "1179RPM",
  "pcie_link_gen": 3, "processes" : [{"pid": "7", "gpu_usage": null}]}]
""",
}
"""Logs of other programs, of the shapes that the tests read: tests/monitor/recording says where they are from."""
