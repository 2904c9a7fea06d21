import pytest
from pydantic import TypeAdapter, ValidationError
from small_models import llama, other, small_llama

from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.defaults import default_weights, with_defaults
from planner.workload.workload import Inference, Parallel, Training, Workload

VIT = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 224,
    "patch_size": 16,
}
T5 = {"d_model": 64, "d_ff": 128, "d_kv": 16, "num_heads": 4, "num_layers": 2, "vocab_size": 100}


def image_encoder() -> Architecture:
    return other("vit", VIT)


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
    with pytest.raises(ValidationError, match=field):
        spec(**{field: value})


def test_formats_are_refused_with_those_that_there_are():
    with pytest.raises(ValidationError, match=r"'fp32', .*'Q4_K_M'"):
        Inference(weights="q4")
    with pytest.raises(ValidationError, match=r"'fp32', .*'q4_0'"):
        Inference(kv_cache="q4")


def test_the_defaults_of_inference():
    filled = with_defaults(Inference(), llama(max_position_embeddings=131_072), count=1)
    assert (filled.weights, filled.context_length, filled.prompt_length) == ("bf16", 4096, 4096)
    assert filled.parallel.data == 1


def test_a_model_of_short_context_is_not_asked_for_more():
    assert with_defaults(Inference(), llama(max_position_embeddings=512), count=1).context_length == 512
    assert with_defaults(Training(), llama(max_position_embeddings=512), count=1).sequence_length == 512


def test_a_long_context_leaves_the_prompt_at_its_default():
    filled = with_defaults(Inference(context_length=100_000), llama(max_position_embeddings=131_072), count=1)
    assert (filled.context_length, filled.prompt_length) == (100_000, 4096)


def test_the_context_holds_the_prompt():
    filled = with_defaults(Inference(prompt_length=3000, context_length=100), llama(), count=1)
    assert (filled.context_length, filled.prompt_length) == (3000, 3000)


def test_the_answer_of_an_encoder_and_decoder_need_not_hold_the_prompt():
    filled = with_defaults(Inference(prompt_length=300, context_length=20), other("t5", T5), count=1)
    assert (filled.context_length, filled.prompt_length) == (20, 300)


def test_weights_are_as_stored():
    stored = small_llama().evolve(stored_dtype="fp16")
    assert with_defaults(Inference(), stored, count=1).weights == "fp16"
    assert with_defaults(Inference(), stored.evolve(quantization="mxfp4"), count=1).weights == "mxfp4"
    assert with_defaults(Inference(weights="nf4"), stored, count=1).weights == "nf4"


def test_an_image_has_the_length_it_has():
    tokens = (224 // 16) ** 2 + 1  # patches and the class token
    assert with_defaults(Inference(context_length=9), image_encoder(), count=1).context_length == tokens
    assert with_defaults(Training(sequence_length=9), image_encoder(), count=1).sequence_length == tokens


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
    assert default_weights(Training(compute=compute)) == weights
    assert with_defaults(Training(compute=compute), small_llama(), count=1).weights == weights


def test_every_card_is_a_replica():
    assert with_defaults(Training(), small_llama(), count=8).parallel.data == 8
    assert with_defaults(Training(parallel=Parallel(data=8)), small_llama(), count=8).parallel.data == 8


def test_replicas_without_cards_are_refused():
    with pytest.raises(SpecError, match="data parallelism of 8 needs as many cards, not 2"):
        with_defaults(Training(parallel=Parallel(data=8)), small_llama(), count=2)


@pytest.mark.parametrize(("weights", "compute"), [("bf16", "fp32"), ("fp32", "bf16"), ("fp16", "amp-fp16")])
def test_formats_that_pytorch_does_not_train_in_are_refused(weights: str, compute: str):
    with pytest.raises(ValidationError, match=f"parameters in {weights} cannot be trained in {compute}"):
        Training(weights=weights, compute=compute)


def test_autocast_takes_parameters_in_its_own_format():
    assert Training(weights="bf16", compute="amp-bf16").weights == "bf16"
