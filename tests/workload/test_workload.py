import pytest
from pydantic import TypeAdapter, ValidationError
from small_models import other, small_llama

from planner.errors import SpecError
from planner.workload.defaults import default_weight_format, with_defaults
from planner.workload.fields import fields_of
from planner.workload.presentation import FieldContext
from planner.workload.workload import Inference, Parallel, ServedAdapters, Training, Workload

T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 100}


def test_the_task_decides_which_workload_it_is():
    adapter = TypeAdapter(Workload)
    assert adapter.validate_python({"task": "training"}) == Training()
    assert adapter.validate_python({"task": "inference", "batch": 2}) == Inference(batch=2)
    with pytest.raises(ValidationError):
        adapter.validate_python({"task": "dreaming"})


@pytest.mark.parametrize(
    ("spec", "field", "value"),
    [
        (Training, "micro_batch", 0),
        (Training, "gradient_accumulation", -1),
        (Training, "sequence_length", 0),
        (Training, "weights", "nf4"),
        (Training, "optimizer", "magic"),
        (Training, "other_processes_bytes", -1),
        (Inference, "batch", 0),
        (Inference, "context_length", 0),
        (Inference, "weights", "int3"),
        (Inference, "kv_cache", "nf4"),
        (Parallel, "data", 0),
    ],
)
def test_what_cannot_be_is_refused(spec, field, value):
    with pytest.raises(SpecError, match=field):
        spec(**{field: value})


def test_a_program_of_the_other_task_is_refused_with_the_way_to_it():
    with pytest.raises(SpecError, match=r"'unsloth' trains models and does not run them.*--task training.*vllm"):
        Inference(profile="unsloth")
    with pytest.raises(SpecError, match=r"'vllm' does not train models.*unsloth"):
        Training(profile="vllm")


def test_formats_are_refused_with_those_that_there_are():
    with pytest.raises(SpecError, match=r"choose fp32, .*Q4_K_M, .*Close names: "):
        Inference(weights="q4")
    with pytest.raises(SpecError, match=r"choose fp32, .*q4_0"):
        Inference(kv_cache="q4")


def test_the_answer_of_an_encoder_and_decoder_need_not_hold_the_prompt():
    filled = with_defaults(Inference(prompt_length=300, context_length=20), other("t5", T5), count=1)
    assert (filled.context_length, filled.prompt_length) == (20, 300)


@pytest.mark.parametrize(
    ("compute", "weights"),
    [
        ("amp-bf16", "fp32"),
        ("amp-fp16", "fp32"),
        ("tf32", "fp32"),
        ("fp32", "fp32"),
        ("bf16", "bf16"),
        ("fp16", "fp16"),
    ],
)
def test_parameters_are_in_fp32_under_autocast_and_else_as_computed(compute, weights):
    assert default_weight_format(Training(compute=compute)) == weights
    assert with_defaults(Training(compute=compute), small_llama(), count=1).weights == weights


def test_attention_of_llama_cpp_is_with_or_without_its_own_kernel():
    attention = fields_of("inference")["attention"]
    titles = {
        profile: attention.choices(FieldContext(Inference(profile=profile), small_llama()))
        for profile in ("hf", "llama.cpp")
    }
    assert titles["llama.cpp"] == {"sdpa": "Flash attention", "eager": "Without flash attention"}
    assert titles["hf"].keys() == {"eager", "sdpa", "flash"}


def test_layers_are_named_as_those_of_training():
    assert ServedAdapters(targets="q_proj, v_proj").targets == ("q_proj", "v_proj")
    assert ServedAdapters(targets=["all-linear"]).targets == "all-linear"


def test_programs_without_estimated_slots_refuse_adapters():
    with pytest.raises(SpecError, match="the slots of TensorRT-LLM for LoRA adapters are not estimated"):
        Inference(profile="tensorrt-llm", adapters={"slots": 1})
    assert Inference(profile="tensorrt-llm").adapters.slots == 0
