"""llama.cpp's weights, cells, states and buffers on the card and in RAM, with what its logs printed."""

import pytest
from llama_cpp_cases import LLAMA_3, alive, filled, in_ram, state_model
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, llama, other

from planner.memory.estimate import estimate_memory
from planner.memory.software.llama_cpp import graph_network, reserved_batch
from planner.memory.software.llama_cpp.graph import GraphBatch, GraphNetwork, compute_buffer_bytes
from planner.memory.software.llama_cpp.setup import setup_of
from planner.models.architecture import Architecture, Attention, Layer, Mlp, Moe, Norm
from planner.units import GIB, MIB
from planner.workload.workload import Inference


def test_a_quantized_cache_is_smaller_and_its_buffer_larger():
    # Flash attention makes an F16 copy of one layer's cells (ggml-org/llama.cpp#24166).
    model = bundled().models.model(LLAMA_3)
    plain, quantized = (alive(model, context_length=131_072, kv_cache=name) for name in ("bf16", "q4_0"))
    assert quantized["kv_cache"] == plain["kv_cache"] * 9 // 32
    copied = 2 * 131_072 * 1024 * 2
    assert copied * 0.7 < quantized["activations"] - plain["activations"] <= copied


def test_the_logits_that_are_handed_out_are_in_ram():
    model = bundled().models.model(LLAMA_3)
    assert "logits" not in alive(model)
    more = in_ram(model, engine={"slots": 8, "kv_unified": True}) - in_ram(
        model, engine={"slots": 4, "kv_unified": True}
    )
    assert more == 4 * 128_256 * 4


def test_without_a_card_the_graph_is_in_ram():
    model = bundled().models.model(LLAMA_3)
    assert in_ram(model, gpu_layers=32) - in_ram(model, gpu_layers=33) > 100 * MIB


def test_an_encoder_attends_to_its_batch_and_keeps_nothing():
    bert = bundled().models.model("google-bert/bert-base-uncased")
    workload = filled(bert)
    batch = reserved_batch(bert, workload, setup_of(bert, workload))
    assert batch.outputs == batch.tokens == batch.cells
    assert "kv_cache" not in alive(bert)


def test_the_graph_has_each_kind_of_layer_and_the_last():
    gemma = bundled().models.model("google/gemma-3-4b-it")
    network = graph_network(gemma)
    windows = [layer.mixer.window for layer in network.layers]
    assert windows == [1024, None, None, 1024]
    assert graph_network(llama()).layers == (llama().main.groups[0].layer,) * 3


@pytest.mark.parametrize(
    "model",
    [
        llama(),
        other("gpt2", GPT2),
        other("mixtral", MIXTRAL),
        other("deepseek_v3", DEEPSEEK),
        state_model(),
        state_model(second=True),
        bundled().models.model("tiiuae/falcon-7b"),
    ],
    ids=lambda model: model.model_type,
)
def test_every_kind_of_block_has_a_buffer(model: Architecture):
    small, large = (alive(model, engine={"slots": 1, "n_ubatch": size})["activations"] for size in (64, 512))
    assert 0 < small < large < 2 * GIB


def test_blocks_without_parts_are_laid_out_too():
    norm = Norm(kind="rms")
    bare = Layer(norm=norm, norm_count=1, tensors=())
    only_mlp = bare.evolve(feed_forward=Mlp(intermediate=64, gated=False))
    mixer = Attention(heads=2, kv_heads=2, head_dim=16, rotary=False, kv_shared=True)
    attended = only_mlp.evolve(mixer=mixer, parallel=True)
    unrotated = only_mlp.evolve(mixer=mixer.evolve(kv_shared=False))
    batch = GraphBatch(tokens=32, outputs=1, cells=256, sliding_cells=256)
    experts = only_mlp.evolve(feed_forward=Moe(experts=4, top_k=2, intermediate=8, gated=False))
    for layer in (bare, only_mlp, attended, unrotated, experts):
        for flash in (True, False):
            assert compute_buffer_bytes(GraphNetwork(32, 100, (layer,) * 3), batch._replace(flash=flash)) > 0


def test_notes_say_what_was_assumed_and_that_the_margin_is_not_in_it():
    result = estimate_memory(bundled().models.model(LLAMA_3), Inference(weights="Q4_K_M", gpu_layers=10))
    notes = " ".join(result.notes)
    assert "llama.cpp 0.5.0" in notes
    assert "1,024 MiB of the GPU free" in notes
    assert "9 of 32 layers are on the GPU" in notes
    assert (result.host_bytes or 0) > 3 * GIB
    apart = estimate_memory(llama(), Inference(profile="llama.cpp", engine={"slots": 2})).notes
    assert any("a KV cache of 4,096 cells each" in note for note in apart)


@pytest.mark.parametrize(("name", "certainty"), [(LLAMA_3, "measured"), ("deepseek-ai/DeepSeek-V3", "assumed")])
def test_buffers_of_blocks_that_no_log_was_held_against_are_assumed(name, certainty):
    result = estimate_memory(bundled().models.model(name), Inference(profile="llama.cpp", weights="Q4_K_M"))
    assert result.term("activations").certainty == certainty
