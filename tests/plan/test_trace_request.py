import json

import pytest

from planner.errors import SpecError
from planner.memory.estimate import fullest_timeline
from planner.plan.plan import ModelChoice, Plan
from planner.plan.trace_request import (
    is_traced_for_other_card,
    operator_fields,
    request_of_config,
    request_of_plan,
    request_of_unread_model,
)
from planner.trace.request import Target, TraceRequest
from planner.workload.defaults import with_defaults
from planner.workload.parallel import Parallel
from planner.workload.training import Lora
from planner.workload.workload import Inference, Training

GPT2 = ModelChoice(id="openai-community/gpt2")


def request_of(catalog, workload, **fields):
    return request_of_plan(Plan(model=GPT2, workload=workload, **fields), catalog)


def test_the_request_has_the_plans_training_settings(catalog):
    workload = Training(micro_batch=4, gradient_accumulation=2, activation_checkpointing="full", attention="eager")
    request = request_of(catalog, workload, gpu="rtx-4090", count=2)
    assert request.target.kind == "config"
    assert json.loads(request.target.config)["model_type"] == "gpt2"
    assert (request.batch, request.sequence_length, request.gradient_accumulation) == (4, 1024, 2)
    assert (request.dtype, request.autocast, request.optimizer) == ("fp32", "bf16", "AdamW")
    assert (request.checkpointing, request.attention) == ("full", "eager")
    assert (request.parallel.ranks, request.parallel.strategy) == (2, "ddp")
    assert (request.device, request.compute_capability) == ("cuda", "8.9")
    assert not request.runs_user_code


@pytest.mark.parametrize(("compute", "dtype"), [("bf16", "bf16"), ("tf32", "fp32"), ("fp32", "fp32")])
def test_pure_formats_are_traced_without_autocast(catalog, compute, dtype):
    request = request_of(catalog, Training(compute=compute, optimizer="sgd-momentum"))
    assert (request.dtype, request.autocast) == (dtype, None)
    assert request.optimizer_arguments[0].name == "momentum"
    assert request.parallel.ranks == 1


def test_adapters_are_traced_with_their_targets(catalog):
    lora = Lora(rank=8, targets=("c_attn",), adapter_dtype="bf16", dropout=0.1)
    request = request_of(catalog, Training(method="lora", compute="bf16", lora=lora))
    assert (request.lora.rank, request.lora.targets, request.lora.dtype, request.lora.dropout) == (
        8,
        ("c_attn",),
        "bf16",
        0.1,
    )
    assert (request.dtype, request.autocast) == ("bf16", None)
    plain = request_of(catalog, Training(method="lora"))
    assert (plain.lora.targets, plain.dtype, plain.autocast) == (("all-linear",), "bf16", "bf16")


@pytest.mark.parametrize(
    ("name", "step", "kind", "arguments"),
    [
        ("adamw", "foreach", "AdamW", {"foreach": True}),
        ("adamw", "loop", "AdamW", {"foreach": False}),
        ("sgd", None, "SGD", {"fused": True}),
        ("sgd-momentum", "foreach", "SGD", {"momentum": 0.9, "foreach": True}),
        ("adafactor", None, "Adafactor", {"foreach": False}),
    ],
)
def test_every_optimizer_of_pytorch_steps_as_planned(catalog, name, step, kind, arguments):
    request = request_of(catalog, Training(optimizer=name, optimizer_step=step))
    assert request.optimizer == kind
    assert {one.name: one.value for one in request.optimizer_arguments} == arguments


def test_parameters_that_no_pattern_names_are_frozen(catalog):
    request = request_of(catalog, Training(trainable=("layers.11", "wte")))
    assert "*.10.attn.c_attn.weight" in request.freeze
    assert "transformer.wpe.weight" in request.freeze
    assert not any(name.startswith("*.11.") or "wte" in name for name in request.freeze)
    mixtral = Plan(model=ModelChoice(id="mistralai/Mixtral-8x7B-v0.1"), workload=Training(trainable=("layers.31",)))
    frozen = request_of_plan(mixtral, catalog).freeze
    # transformers holds the experts of a layer as one tensor, and calls its block of experts mlp.
    assert {"*.30.*experts.*", "*.30.*.gate.*weight", "*.30.self_attn.q_proj.weight"} <= set(frozen)
    assert not any("block_sparse_moe" in name for name in frozen)
    both = Plan(model=ModelChoice(id="google-t5/t5-small"), workload=Training(trainable=("layers.1",)))
    with pytest.raises(SpecError, match="same numbers"):
        request_of_plan(both, catalog)


def test_full_sharding_is_traced_and_other_parallelism_refused(catalog):
    sharded = request_of(catalog, Training(parallel=Parallel(zero=3)), count=2)
    assert (sharded.parallel.ranks, sharded.parallel.strategy) == (2, "fsdp")
    with pytest.raises(SpecError, match="only data parallelism and full sharding"):
        request_of(catalog, Training(parallel=Parallel(zero=1)), count=2)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"method": "lora", "compute": "bf16"}, id="lora", marks=pytest.mark.oracle),
        pytest.param(
            {"method": "lora", "compute": "bf16", "activation_checkpointing": "full"},
            id="checkpoints",
            marks=pytest.mark.oracle,
        ),
        pytest.param({"trainable": ("layers.11", "ln_f"), "compute": "bf16"}, id="frozen"),
        pytest.param({"optimizer": "adafactor", "compute": "bf16"}, id="adafactor", marks=pytest.mark.oracle),
    ],
)
def test_the_trace_has_the_memory_that_the_plan_estimates(catalog, how):
    pytest.importorskip("transformers")
    from planner.trace.analysis.memory import facts_of
    from planner.trace.worker.job import record_trace

    workload = Training(micro_batch=2, sequence_length=256, **how)
    asked = request_of(catalog, workload).evolve(unknown_values="typical")  # bounds would take more traces
    traced = facts_of(record_trace(asked, lambda *_: None)).allocated_bytes
    architecture = catalog.models.model(GPT2.id)
    predicted = fullest_timeline(architecture, with_defaults(workload, architecture, 1)).peak().total
    assert predicted == pytest.approx(traced, rel=0.03)


def test_generation_is_traced_with_its_cache(catalog):
    workload = Inference(weights="bf16", context_length=512, prompt_length=500, batch=3)
    request = request_of(catalog, workload)
    assert (request.task, request.batch, request.sequence_length, request.decode_tokens) == ("inference", 3, 500, 12)
    assert request.dtype == "bf16"


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        (Training(optimizer="adamw-8bit"), "optimizer"),
        (Training(optimizer="muon"), "optimizer"),
        (Training(profile="liger"), "profile"),
        (Training(loss="chunked"), "loss"),
        (Training(method="qlora"), "weights"),
        (Training(method="lora", weights="int8"), "weights"),
        (Training(method="lora", lora=Lora(dora=True)), "lora.dora"),
        (Training(gradient_clipping=True), "gradient_clipping"),
        (Training(compute="fp8"), "compute"),
        (Training(activation_checkpointing="full", checkpoint_every=2), "checkpoint_every"),
        (Inference(weights="nf4"), "weights"),
        (Inference(weights="fp32"), "weights"),
        (Inference(weights="bf16", kv_cache="fp8"), "kv_cache"),
        (Inference(weights="bf16", context_length=1024, prompt_length=10), "prompt_length"),
    ],
)
def test_settings_that_pytorch_alone_cannot_run_are_refused(catalog, workload, field):
    with pytest.raises(SpecError) as error:
        request_of(catalog, workload)
    assert error.value.field == field
    assert error.value.hint


def test_the_users_own_configuration_is_read_from_its_file(catalog, tmp_path):
    config = catalog.models.record("openai-community/gpt2").config
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config), encoding="utf-8")
    architecture = catalog.models.model("openai-community/gpt2")
    choice = ModelChoice.of_file("mine", architecture, file)
    request = request_of_plan(Plan(model=choice, workload=Training()), catalog)
    assert request.target.place == "mine"
    assert json.loads(request.target.config) == config
    with pytest.raises(SpecError, match="not available"):
        request_of_plan(Plan(model=choice.evolve(path=None), workload=Training()), catalog)


def test_only_nvidia_cards_set_a_compute_capability(catalog):
    assert operator_fields(None)["compute_capability"] is None
    assert operator_fields(catalog.hardware.gpu("rtx-4090"))["compute_capability"] == "8.9"
    amd = next(gpu for gpu in catalog.hardware.gpus if gpu.vendor == "AMD" and gpu.compute_capability)
    assert operator_fields(amd)["compute_capability"] is None


@pytest.mark.parametrize(("name", "multiprocessors"), [("rtx-4090", 128), ("a100-sxm4-80gb", 108)])
def test_code_sees_the_figures_of_the_plans_card(catalog, name, multiprocessors):
    gpu = catalog.hardware.gpu(name)
    card = operator_fields(gpu)["card"]
    assert (card.name, card.multiprocessors) == (f"NVIDIA {gpu.name}", multiprocessors)
    assert 0.9 * gpu.memory_bytes < card.memory_bytes <= gpu.memory_bytes
    assert operator_fields(gpu.evolve(shader_cores=None))["card"].multiprocessors is None


def test_a_trace_is_for_another_card_if_that_has_another_compute_capability(catalog):
    gpus = catalog.hardware
    ada, hopper, amd = (gpus.gpu(name) for name in ("rtx-4090", "h100-sxm5-80gb", "instinct-mi300x"))
    asked = TraceRequest(target=Target(kind="file", place="net.py"), compute_capability="8.9")
    assert [is_traced_for_other_card(asked, gpu) for gpu in (None, ada, hopper, amd)] == [False, False, True, True]
    assert not is_traced_for_other_card(asked.evolve(compute_capability=None), hopper)


def test_a_model_without_a_formula_is_traced_by_its_configuration(catalog):
    request = request_of_config(GPT2.id, catalog)
    assert (request.target.kind, request.target.place) == ("config", GPT2.id)
    assert json.loads(request.target.config)["model_type"] == "gpt2"


@pytest.fixture
def unread(catalog, tmp_path):
    """Return a way to get the trace request of a model without a reader, for a workload."""

    def request(workload, count=1, gpu=None, **fields):
        file = tmp_path / "config.json"
        file.write_text(json.dumps({"model_type": "apertus", **fields}), encoding="utf-8")
        return request_of_unread_model(str(file), workload, count, gpu, catalog)

    return request


@pytest.mark.parametrize(
    ("workload", "fields", "dtype"),
    [
        (Inference(), {}, "bf16"),
        (Inference(), {"torch_dtype": "float16"}, "fp16"),
        (Inference(), {"text_config": {"dtype": "float32"}}, "fp32"),
        (Inference(compute="fp16"), {"torch_dtype": "bfloat16"}, "fp16"),
        (Inference(weights="fp32"), {"torch_dtype": "bfloat16"}, "fp32"),
    ],
)
def test_a_model_without_a_reader_is_traced_in_the_format_asked_for_or_stated(unread, workload, fields, dtype):
    request = unread(workload, **fields)
    assert (request.task, request.dtype, request.batch) == ("inference", dtype, 1)
    assert (request.sequence_length, request.decode_tokens) == (None, 0)


def test_a_context_without_a_prompt_is_traced_as_one_that_the_prompt_fills(unread):
    request = unread(Inference(context_length=900, batch=3))
    assert (request.batch, request.sequence_length, request.decode_tokens) == (3, 900, 0)
    answered = unread(Inference(context_length=900, prompt_length=800))
    assert (answered.sequence_length, answered.decode_tokens) == (800, 100)


def test_training_without_a_reader_has_the_defaults_of_training_with_one(unread, catalog):
    request = unread(Training(micro_batch=2), gpu=catalog.hardware.gpu("rtx-4090"))
    assert (request.task, request.batch, request.sequence_length) == ("training", 2, None)
    assert (request.dtype, request.autocast, request.optimizer) == ("fp32", "bf16", "AdamW")
    assert request.compute_capability == "8.9"
    assert unread(Training(method="lora")).lora.rank == 16
    assert unread(Training(), count=4).parallel.strategy == "ddp"


@pytest.mark.parametrize(
    ("workload", "field"),
    [
        (Inference(weights="nf4"), "weights"),
        (Inference(kv_cache="fp8"), "kv_cache"),
        (Inference(images=2), "images"),
        (Inference(profile="vllm"), "profile"),
        (Inference(parallel=Parallel(tensor=2)), "parallel"),
        (Inference(prompt_length=10, context_length=9000), "prompt_length"),
        (Training(trainable=("layers.0.*",)), "trainable"),
    ],
)
def test_what_a_trace_would_ignore_is_refused_for_a_model_without_a_reader(unread, workload, field):
    with pytest.raises(SpecError) as error:
        unread(workload)
    assert error.value.field == field
    assert error.value.hint
