"""Sizes of GGUF files, against what llama.cpp prints."""

import pytest
from small_models import bundled, llama, other, small_llama

from planner.memory.estimate import estimate_memory
from planner.memory.gguf import file_bytes, tensor_bytes
from planner.memory.weights import is_gguf, weight_bytes
from planner.workload.workload import Inference

# Llama 2 7B: 32 layers of four 4096 × 4096 and three 4096 × 11008 projections, 65 norms, two 32000 × 4096 tables.
PROJECTIONS = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11_008)


TABLE = 32_000 * 4096


NORMS = 65 * 4096


FALCON = {
    "vocab_size": 65_024,
    "hidden_size": 4544,
    "num_hidden_layers": 32,
    "num_attention_heads": 71,
    "multi_query": True,
    "parallel_attn": True,
    "new_decoder_architecture": False,
    "bias": False,
}


def test_a_q4_0_file_of_llama_7b():
    # Everything in Q4_0 (4.5 bits) but the output head in Q6_K (6.5625) and norms in fp32: the 3.56 GiB of every table.
    expected = (PROJECTIONS + TABLE) * 9 // 16 + TABLE * 105 // 128 + 4 * NORMS
    assert file_bytes(llama(), "Q4_0") == expected == 3_825_065_984
    assert expected / 2**30 == pytest.approx(3.56, abs=0.005)
    assert weight_bytes(llama(), "Q4_0") == expected


def test_where_the_bytes_of_a_file_stand():
    places = tensor_bytes(llama(), "Q8_0")
    assert places == {
        "embedding": TABLE * 17 // 16,
        "layers": PROJECTIONS * 17 // 16 + 64 * 4096 * 4,
        "output": TABLE * 17 // 16,
        "other": 4096 * 4,
    }


@pytest.mark.parametrize(
    ("file_type", "bits"),
    [
        ("Q2_K", 3.16),
        ("Q3_K_S", 3.64),
        ("Q3_K_L", 4.30),
        ("IQ4_XS", 4.46),
        ("Q4_K_S", 4.67),
        ("IQ4_NL", 4.68),
        ("Q4_K_M", 4.89),
        ("Q5_K_S", 5.57),
        ("Q5_K_M", 5.70),
        ("Q6_K", 6.56),
        ("Q8_0", 8.50),
        ("F16", 16.00),
    ],
)
def test_whole_files_have_the_bits_that_llama_cpp_prints(file_type, bits):
    # ggml-org/llama.cpp tools/quantize/README.md, Llama-3.1-8B
    model = bundled().models.model("meta-llama/Llama-3.1-8B")
    assert 8 * file_bytes(model, file_type) / model.parameters == pytest.approx(bits, abs=0.006)


def test_experts_are_in_mxfp4_and_the_other_matrices_in_8_bits():
    # gpt-oss-20b: experts in 4.25 bits; tables and attention in 8.5; biases, routers, sinks and norms in fp32.
    model = bundled().models.model("openai/gpt-oss-20b")
    experts = 24 * 32 * (5760 * 2880 + 2880 * 2880)
    tables, attention = 2 * 201_088 * 2880, 24 * (2 * 4096 * 2880 + 2 * 512 * 2880)
    rest = model.parameters - experts - tables - attention
    assert file_bytes(model, "MXFP4_MOE") == experts * 17 // 32 + (tables + attention) * 34 // 32 + 4 * rest


def test_a_tied_embedding_is_the_output_too():
    tied = llama(tie_word_embeddings=True)
    assert tensor_bytes(tied, "Q4_0")["embedding"] == TABLE * 105 // 128  # Q6_K, as the head would be
    assert tensor_bytes(tied, "Q4_0")["output"] == 0


@pytest.mark.parametrize(
    ("columns", "file_type", "block_type"),
    [
        (96, "Q4_K_S", "Q5_0"),  # no multiple of 256, but of 32
        (96, "Q6_K", "Q8_0"),
        (96, "IQ4_XS", "IQ4_NL"),
        (96, "Q2_K", "Q4_0"),
        (50, "Q4_K_S", "F16"),  # of neither
        (50, "Q4_0", "F16"),
    ],
)
def test_rows_that_are_no_whole_blocks_fall_back(columns, file_type, block_type):
    model = small_llama(hidden_size=columns, num_attention_heads=2, num_key_value_heads=2, vocab_size=1000)
    per_element = {"Q5_0": 22 / 32, "Q8_0": 34 / 32, "IQ4_NL": 18 / 32, "Q4_0": 18 / 32, "F16": 2}[block_type]
    assert tensor_bytes(model, file_type)["embedding"] == 1000 * columns * per_element


def test_eight_experts_keep_values_and_keys_in_8_bits():
    experts = other(
        "mixtral",
        {
            "vocab_size": 1024,
            "hidden_size": 256,
            "intermediate_size": 256,
            "num_hidden_layers": 8,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "num_local_experts": 8,
            "num_experts_per_tok": 2,
        },
    )
    matrix = 256 * 256
    # Per layer: q in Q3_K, k and v in Q8_0, o in Q5_K, gate and up of 8 experts in Q3_K, down in Q4_K but Q5_K where
    # the place is below layers / 16 = 0; a router and two norms in fp32.
    layer = matrix * (110 / 256 * 17 + 2 * 34 / 32 + 176 / 256 + 8 * 144 / 256) + 4 * (8 * 256 + 2 * 256)
    assert tensor_bytes(experts, "Q3_K_M")["layers"] == 8 * layer
    assert file_bytes(experts, "Q4_K_M") > file_bytes(experts, "Q4_K_S") > file_bytes(experts, "Q3_K_S")


def test_falcon_has_rules_of_its_own():
    falcon = other("falcon", FALCON, hidden_size=4096, num_attention_heads=64)
    sizes = [file_bytes(falcon, name) for name in ("Q2_K", "Q3_K_S", "Q3_K_M", "Q3_K_L", "Q4_K_S", "Q4_K_M", "Q5_K_M")]
    assert sizes == sorted(sizes)
    assert tensor_bytes(falcon, "Q4_K_M")["embedding"] == 65_024 * 4096 * 34 // 32  # tied: its head in Q8_0, not Q6_K


def test_falcon_7b_has_rows_that_no_large_block_divides():
    falcon = other("falcon", FALCON)  # 4544 = 17.75 · 256 = 142 · 32
    assert tensor_bytes(falcon, "Q4_K_S")["embedding"] == 65_024 * 4544 * 34 // 32
    # Columns of 4544 in Q5_0, but the values of the first four layers in Q5_1; 18176 = 71 · 256 columns in Q4_K.
    qkv, dense, mlp = (4544 + 2 * 64) * 4544, 4544**2, 4 * 4544**2
    rows = 32 * (dense + mlp) + 28 * qkv
    expected = rows * 22 // 32 + 4 * qkv * 24 // 32 + 32 * mlp * 144 // 256 + 32 * 2 * 4544 * 4
    assert tensor_bytes(falcon, "Q4_K_S")["layers"] == expected


def test_70b_gives_its_eightfold_shared_values_more_bits():
    large = bundled().models.model("meta-llama/Llama-3.1-70B")
    # 80 layers of 8192 columns: the value projections (1024 × 8192) are in Q5_K instead of Q4_K.
    other_depth = large.evolve(hidden=8191)
    gained = file_bytes(large, "Q4_K_S") - file_bytes(other_depth, "Q4_K_S")
    assert gained == (80 - 4) * 1024 * 8192 * (176 - 144) // 256


def test_a_gguf_file_takes_its_own_bytes_and_others_by_formula(gguf):
    assert weight_bytes(gguf, "Q8_0") == gguf.stored_bytes == file_bytes(gguf, "Q8_0")
    assert tensor_bytes(gguf, "Q8_0")["output"] == 128 * 64 * 34 // 32
    assert weight_bytes(gguf, "bf16") == 2 * gguf.parameters
    assert weight_bytes(gguf, "Q4_0") == file_bytes(gguf, "Q4_0") < gguf.stored_bytes


def test_a_mixture_without_a_name_is_counted_too(unnamed):
    assert is_gguf(unnamed, "stored")
    assert (
        weight_bytes(unnamed, "stored")
        == unnamed.stored_bytes
        == tensor_bytes(unnamed, "stored")["layers"]
        + sum(tensor_bytes(unnamed, "stored")[place] for place in ("embedding", "output", "other"))
    )
    memory = estimate_memory(unnamed, Inference())
    assert memory.total_bytes > unnamed.stored_bytes // 2
    assert any("llama.cpp" in note for note in memory.notes)
