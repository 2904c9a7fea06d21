"""The bytes of published checkpoints in the formats that their configurations state, with the arithmetic."""

from math import ceil

import pytest
from small_models import bundled, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.weights import weights_term
from planner.models.architecture import Architecture
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference


def model(name: str) -> Architecture:
    return bundled().models.model(name)


def stored_bytes(name: str) -> int:
    return weights_term(model(name), model(name).stored_as).bytes


def fp8(rows: int, columns: int, count: int = 1) -> int:
    """Return the bytes of a matrix in FP8 with a scale in fp32 for each block of 128 × 128."""
    return count * (rows * columns + 4 * ceil(rows / 128) * ceil(columns / 128))


def attention_and_norms(heads: int) -> int:
    """Return the bytes of a layer's latent attention in FP8, and of its norms in bf16."""
    queries = fp8(1536, 7168) + fp8(heads * 192, 1536)
    keys_and_values = fp8(512 + 64, 7168) + fp8(heads * 256, 512)
    return queries + keys_and_values + fp8(7168, heads * 128) + 2 * (2 * 7168 + 1536 + 512)


def mixture(experts: int) -> int:
    """Return the bytes of a layer's routed experts and the shared one in FP8, and of its router in bf16."""
    return fp8(2048, 7168, 2 * (experts + 1)) + fp8(7168, 2048, experts + 1) + 2 * experts * 7168


def tables(vocabulary: int) -> int:
    return 2 * 2 * vocabulary * 7168


FIRST = fp8(18_432, 7168, 2) + fp8(7168, 18_432)
DEEPSEEK = 61 * attention_and_norms(128) + 3 * FIRST + 58 * mixture(256) + 2 * 7168 + tables(129_280)
KIMI = 61 * attention_and_norms(64) + FIRST + 60 * mixture(384) + 2 * 7168 + tables(163_840)


@pytest.mark.parametrize(
    ("name", "hand_made"),
    [
        ("deepseek-ai/DeepSeek-V3", DEEPSEEK),
        ("deepseek-ai/DeepSeek-R1", DEEPSEEK),
        ("moonshotai/Kimi-K2-Instruct", KIMI),
        ("openai-community/gpt2", 4 * 124_439_808),
        ("openai/whisper-large-v3", 2 * 1_543_490_560),
        ("openai/whisper-small", 4 * 241_734_912),
    ],
)
def test_weights_take_what_the_checkpoint_holds(name, hand_made):
    assert stored_bytes(name) == hand_made


def test_the_published_files_of_deepseek_v3_hold_a_layer_more_and_their_headers():
    bias = 59 * 256 * 4  # of the routers, in fp32
    predicting = attention_and_norms(128) + mixture(256) + tables(129_280) + 2 * 2 * 7168 * 7168 + 3 * 2 * 7168
    headers = 688_586_727_753 - (DEEPSEEK + predicting + bias)
    assert 0 < headers < 13e6  # 91,991 tensors' names, formats and offsets


@pytest.mark.parametrize(("name", "layers", "experts"), [("gpt-oss-20b", 24, 32), ("gpt-oss-120b", 36, 128)])
def test_gpt_oss_keeps_its_experts_in_mxfp4_and_the_rest_in_16_bits(name, layers, experts):
    held = layers * experts * (2 * 2880 * 2880 + 2880 * 2880)
    published = {"gpt-oss-20b": 13_761_264_768, "gpt-oss-120b": 65_248_815_744}[name]
    rest = model(f"openai/{name}").parameters - held
    assert stored_bytes(f"openai/{name}") == held // 2 + held // 32 + 2 * rest == published


@pytest.mark.parametrize(
    ("profile", "compute", "loaded"),
    [
        ("hf", "bf16", "fp32"),
        ("vllm", "bf16", "bf16"),
        ("vllm", "fp16", "fp16"),
        ("vllm", "fp32", "fp32"),
        ("llama.cpp", "bf16", "BF16"),
    ],
)
def test_an_fp32_checkpoint_is_loaded_as_the_program_loads_it(profile, compute, loaded):
    workload = Inference(profile=profile, compute=compute)
    assert with_defaults(workload, model("openai-community/gpt2"), 1).weights == loaded
    assert with_defaults(workload.evolve(weights="stored"), model("openai-community/gpt2"), 1).weights == loaded


def test_a_stated_weight_format_stays():
    workload = Inference(profile="vllm", weights="fp32")
    assert with_defaults(workload, model("openai-community/gpt2"), 1).weights == "fp32"
    assert not format_notes(model("openai-community/gpt2"), workload)


def format_notes(architecture: Architecture, workload: Inference) -> list[str]:
    return [note for note in estimate_memory(architecture, workload).notes if "stored" in note]


@pytest.mark.parametrize(
    ("profile", "words"),
    [("hf", "keeps them so; as bf16 they take half the memory"), ("vllm", "vLLM loads them in 16 bits")],
)
def test_a_note_says_how_an_fp32_checkpoint_is_loaded(profile, words):
    (note,) = format_notes(model("openai-community/gpt2"), Inference(profile=profile))
    assert words in note


def test_a_note_names_a_quantized_checkpoint_in_words():
    notes = format_notes(model("openai/gpt-oss-20b"), Inference())
    assert "The weights are stored in MXFP4." in notes


def test_an_unknown_format_is_said_to_be_assumed():
    unknown = small_llama().evolve(stored_dtype=None)
    (note,) = format_notes(unknown, Inference())
    assert note.startswith("The number format of the stored weights is not known")
    assert "BF16 is assumed. Set the weight format" in note
    assert not format_notes(unknown, Inference(weights="bf16"))
    assert not format_notes(unknown.evolve(stored_dtype="bf16"), Inference())
