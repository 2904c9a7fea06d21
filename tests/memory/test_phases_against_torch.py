"""The peak of the phases, against two real optimizer steps, and a prefill and decoding, on the CPU."""

from typing import Any

import pytest

pytest.importorskip("transformers")

from live_runs import Network, inference_peaks, training_peak

from planner.memory.inference import inference_moments
from planner.memory.training import training_moments
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference, Training

# The name that transformers from 4.57 on understands; later ones have another.
pytestmark = pytest.mark.filterwarnings("ignore:`gradient_checkpointing_enable` is deprecated:FutureWarning")

TRAINED = {
    "llama": Network("llama"),
    "qwen3": Network("qwen3", {"head_dim": 32}),
    "gemma": Network("gemma", {"head_dim": 32, "vocab_size": 16_000}),
    "gpt2": Network("gpt2", {"num_key_value_heads": 4, "intermediate_size": 512}),
}
WINDOWED = {"sliding_window": 32}
LATENT = {
    "num_key_value_heads": 4,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "n_group": 1,
    "topk_group": 1,
    "moe_intermediate_size": 64,
    "first_k_dense_replace": 1,
    "q_lora_rank": 64,
    "kv_lora_rank": 32,
    "qk_nope_head_dim": 32,
    "qk_rope_head_dim": 16,
    "v_head_dim": 48,  # as wide as the keys: the CPU's fused kernel takes no other, and those of CUDA do
}
SHAPES = {"many-tokens": (2, 128), "few-tokens": (1, 16)}
QUICK = {
    "llama-bf16-none-many-tokens",
    "llama-amp-bf16-full-many-tokens",
    "qwen3-bf16-none-few-tokens",
    "gemma-bf16-none-few-tokens",
    "gpt2-fp32-none-many-tokens",
}


def training_cases() -> list[Any]:
    """Return every network, compute format, checkpointing and shape; the slow ones marked."""
    names = [
        (network, compute, checkpointing, shape)
        for network in TRAINED
        for compute in ("fp32", "bf16", "amp-bf16")
        for checkpointing in ("none", "full")
        for shape in SHAPES
    ]
    return [
        pytest.param(*name, id="-".join(name), marks=() if "-".join(name) in QUICK else pytest.mark.oracle)
        for name in names
    ]


@pytest.mark.parametrize(("name", "compute", "checkpointing", "shape"), training_cases())
def test_a_training_step_peaks_where_predicted(name: str, compute: str, checkpointing: str, shape: str) -> None:
    sequences, length = SHAPES[shape]
    asked = Training(
        compute=compute, micro_batch=sequences, sequence_length=length, activation_checkpointing=checkpointing
    )
    architecture = TRAINED[name].architecture()
    workload = with_defaults(asked, architecture, count=1)
    predicted = training_moments(architecture, workload).peak().total
    assert predicted == pytest.approx(training_peak(TRAINED[name], workload), rel=0.01)


@pytest.mark.parametrize("checkpointing", ["none", "full"])
@pytest.mark.parametrize(
    ("network", "attention"),
    [
        pytest.param(Network("mistral", WINDOWED), "sdpa", id="window-sdpa"),
        pytest.param(Network("mistral", WINDOWED | {"num_key_value_heads": 1}), "sdpa", id="window-one-kv-head"),
        pytest.param(Network("llama"), "eager", id="eager"),
    ],
)
@pytest.mark.oracle
def test_masks_are_kept_by_the_kernel_that_is_given_one(network: Network, attention: str, checkpointing: str) -> None:
    architecture = network.architecture()
    asked = Training(
        compute="bf16",
        micro_batch=2,
        sequence_length=256,
        attention=attention,
        activation_checkpointing=checkpointing,
    )
    workload = with_defaults(asked, architecture, count=1)
    predicted = training_moments(architecture, workload).peak().total
    assert predicted == pytest.approx(training_peak(network, workload), rel=0.01)


ANSWERING = {
    "llama": Network("llama"),
    "qwen3": Network("qwen3", {"head_dim": 64}),
    "gemma3": Network("gemma3_text", {"head_dim": 32, "sliding_window": 32, "num_hidden_layers": 6}),
    "gpt2": Network("gpt2", {"num_key_value_heads": 4, "intermediate_size": 512}),
    "mixtral": Network("mixtral", {"num_local_experts": 4}),
    "deepseek": Network("deepseek_v3", LATENT),
}


def inference_cases() -> list[Any]:
    """Return every network and format with the fused kernel, and eager attention in fp32.

    Not eager in bf16: the softmax in fp32 of CUDA reads bf16 scores as they are, that of the CPU copies them to fp32.
    """
    kinds = [(name, *kind) for name in ANSWERING for kind in (("bf16", "sdpa"), ("fp32", "sdpa"), ("fp32", "eager"))]
    quick = {("llama", "bf16", "sdpa"), ("gemma3", "bf16", "sdpa")}
    return [pytest.param(*kind, id="-".join(kind), marks=() if kind in quick else pytest.mark.oracle) for kind in kinds]


@pytest.mark.parametrize(("name", "compute", "attention"), inference_cases())
def test_prefill_and_decoding_peak_where_predicted(name: str, compute: str, attention: str) -> None:
    asked = Inference(
        weights=compute,
        compute=compute,
        kv_cache=compute,
        attention=attention,
        batch=2,
        prompt_length=128,
        context_length=132,
    )
    architecture = ANSWERING[name].architecture()
    workload = with_defaults(asked, architecture, count=1)
    predicted: dict[str, int] = {}
    for moment in inference_moments(architecture, workload).moments:
        predicted[moment.name] = max(predicted.get(moment.name, 0), moment.total)
    for phase, real in inference_peaks(ANSWERING[name], workload).items():
        assert predicted[phase] == pytest.approx(real, rel=0.03), phase
