"""llama.cpp's weights, cells, states and buffers on the card and in RAM, with what its logs printed."""

import pytest
from small_models import DEEPSEEK, GPT2, MIXTRAL, bundled, llama, other

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.gguf import file_bytes, layer_bytes, tensor_bytes
from planner.memory.software.llama_cpp import graph_network, reserved_batch
from planner.memory.software.llama_cpp.graph import GraphBatch, GraphNetwork, compute_buffer_bytes
from planner.memory.software.llama_cpp.setup import LlamaCppSetup, placed_weights, setup_of
from planner.models.architecture import Architecture, Attention, Layer, Mlp, Moe, Norm, StateMixer, StoredTensors
from planner.units import GIB, MIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Inference

LLAMA_3 = "meta-llama/Llama-3.1-8B"
ONE_SLOT = {"slots": 1}


def filled(model: Architecture, **changes) -> Inference:
    workload = with_defaults(Inference.model_validate({"profile": "llama.cpp"} | changes), model, 1)
    assert isinstance(workload, Inference)
    return workload


def alive(model: Architecture, **changes) -> dict[str, int]:
    snapshot = fullest_timeline(model, filled(model, **changes)).snapshots[1]
    return {term.name: term.bytes for term in snapshot.terms}


def in_ram(model: Architecture, **changes) -> int:
    return fullest_timeline(model, filled(model, **changes)).host_bytes or 0


def set_up(model: Architecture, **changes) -> LlamaCppSetup:
    return setup_of(model, filled(model, **changes))


@pytest.mark.parametrize(
    ("name", "file_type", "mib"),
    [
        ("meta-llama/Meta-Llama-3-8B", "Q4_K_M", 4403.49),
        ("huggyllama/llama-7b", "Q4_0", 3577.55),
        ("huggyllama/llama-7b", "F16", 12_603.02),
        ("huggyllama/llama-13b", "Q4_0", 6936.01),
        ("huggyllama/llama-65b", "Q4_0", 34_950.11),
    ],
)
def test_weights_on_the_card_are_what_the_logs_print(name: str, file_type: str, mib: float):
    # XiongjieDai/GPU-Benchmarks-on-LLM-Inference: model buffer size, all layers offloaded
    shares = alive(bundled().models.model(name), weights=file_type, context_length=512)
    assert shares["weights"] / MIB == pytest.approx(mib, abs=0.01)


@pytest.mark.parametrize(
    ("name", "changes", "mib"),
    [
        ("meta-llama/Llama-2-7b-hf", {"context_length": 512}, 256),
        ("Qwen/Qwen3-32B", {"context_length": 40_960}, 10_240),
        ("Qwen/Qwen3-32B", {"context_length": 16_896, "kv_cache": "q8_0"}, 2244),
        ("google/gemma-3-27b-it", {"context_length": 32_768, "engine": ONE_SLOT | {"swa_full": True}}, 15_872),
        # 52 sliding layers of pad256(1,024 + 512) cells, 10 full ones of 32,768
        ("google/gemma-3-27b-it", {"context_length": 32_768, "engine": ONE_SLOT}, (52 * 1536 + 10 * 32_768) / 128),
        # Gemma-3-270m with 4,096 tokens: 27.00 MiB (measured)
        ("google/gemma-3-270m-it", {"context_length": 4096, "engine": ONE_SLOT}, 27.0),
    ],
)
def test_cells_are_what_the_logs_print(name: str, changes: dict[str, object], mib: float):
    assert alive(bundled().models.model(name), **changes)["kv_cache"] / MIB == pytest.approx(mib, abs=0.005)


def test_cells_come_in_multiples_of_256():
    model = llama()
    assert set_up(model, context_length=100).cells == 256
    assert set_up(model, context_length=257, batch=2).cells == 768
    assert set_up(model, context_length=257, batch=2, engine={"slots": 2}).cells == 512


def test_slots_share_one_cache_unless_they_are_given():
    shared, apart = set_up(llama()), set_up(llama(), engine={"slots": 3})
    assert (shared.slots, shared.streams, shared.unified) == (4, 1, True)
    assert (apart.slots, apart.streams, apart.unified) == (3, 3, False)
    assert set_up(llama(), batch=9).slots == 9
    assert set_up(llama(), engine={"slots": 3, "kv_unified": True}).streams == 1
    # Each slot has the whole context, and room for the window of every slot where they share a cache.
    assert alive(llama(), engine={"slots": 3})["kv_cache"] == 3 * alive(llama())["kv_cache"]
    assert shared.sliding_cells(1000) == 4096
    assert shared._replace(cells=100_000).sliding_cells(1000) == 4608
    assert apart._replace(cells=100_000).sliding_cells(1000) == 1536


def test_a_micro_batch_is_a_multiple_of_the_slots_and_no_longer_than_the_cache():
    assert set_up(llama(), context_length=10).tokens == 256
    assert set_up(llama(), engine={"n_batch": 100}).tokens == 100
    assert set_up(llama(), engine={"slots": 3, "n_ubatch": 100}).tokens == 102
    assert set_up(llama(), engine={"n_outputs_max": 2}).outputs == 4
    assert set_up(llama(), engine={"n_outputs_max": 10_000}).outputs == 512


@pytest.mark.parametrize(
    ("asked", "on_card", "output"), [(None, 32, True), (0, 0, False), (1, 0, True), (11, 10, True), (99, 32, True)]
)
def test_the_output_is_the_first_layer_on_the_card(asked: int | None, on_card: int, output: bool):
    found = set_up(llama(), gpu_layers=asked)
    assert (found.layers_on_card, found.output_on_card) == (on_card, output)


def test_what_is_not_on_the_card_is_in_ram():
    model = bundled().models.model(LLAMA_3)
    whole = file_bytes(model, "Q4_K_M")
    for asked in (None, 0, 1, 12, 33):
        placed = placed_weights(model, "Q4_K_M", set_up(model, weights="Q4_K_M", gpu_layers=asked))
        assert placed.term.bytes + placed.host_bytes == whole
        assert (placed.largest_on_host > 0) == (asked in (0, 1, 12))
    layers = layer_bytes(model, "Q4_K_M")
    twelve = placed_weights(model, "Q4_K_M", set_up(model, weights="Q4_K_M", gpu_layers=12))
    assert twelve.term.bytes == sum(layers[-11:]) + tensor_bytes(model, "Q4_K_M")["output"] + 4 * 4096


def test_keys_and_values_stand_where_their_layers_do():
    model = bundled().models.model(LLAMA_3)
    everything = alive(model)["kv_cache"]
    assert alive(model, gpu_layers=9)["kv_cache"] == everything // 4
    assert "kv_cache" not in alive(model, gpu_layers=0)
    assert in_ram(model, gpu_layers=9) > in_ram(model) + everything * 3 // 4


def test_a_tied_output_is_loaded_a_second_time():
    qwen = bundled().models.model("Qwen/Qwen3-0.6B")
    placed = placed_weights(qwen, "Q8_0", set_up(qwen, weights="Q8_0"))
    parts = tensor_bytes(qwen, "Q8_0")
    assert placed.host_bytes == parts["embedding"]
    assert placed.term.bytes == file_bytes(qwen, "Q8_0")


def test_weights_of_a_file_that_was_read_are_shared_among_its_layers():
    parts = (("embedding", 100), ("layers", 3201), ("output", 50), ("other", 4))
    stored = tuple(StoredTensors(format="Q4_K", place=place, elements=1, bytes=size) for place, size in parts)
    model = llama().evolve(container="gguf", quantization="Q4_K_M", stored=stored)
    by_layer = layer_bytes(model, "Q4_K_M")
    assert sum(by_layer) == 3201
    assert set(by_layer) == {100, 101}
    assert alive(model)["weights"] == 3201 + 54
    mixed = model.evolve(quantization=None, stored_dtype="bf16")
    assert mixed.stored_as == "stored"
    assert alive(mixed, gpu_layers=1)["activations"] > alive(mixed)["activations"]


def test_latent_attention_keeps_no_values():
    deepseek = other("deepseek_v3", DEEPSEEK)
    assert alive(deepseek, context_length=4096)["kv_cache"] == 4 * 4096 * 576 * 2


def test_layers_that_share_keys_and_values_keep_none():
    model = llama()
    group = model.main.groups[0]
    shared = group.layer.evolve(mixer=group.layer.mixer.evolve(kv_shared=True))
    places = tuple(range(32))
    halves = (group.evolve(count=20, places=places[:20]), group.evolve(layer=shared, count=12, places=places[20:]))
    half = model.evolve(stacks=(model.main.evolve(groups=halves),))
    assert alive(half)["kv_cache"] == alive(model)["kv_cache"] * 20 // 32


def state_model(second: bool = False) -> Architecture:
    mixer = StateMixer(name="mamba2", conv_state_elements=30, recurrent_state_elements=70, inner_dim=64)
    model = llama(num_hidden_layers=2)
    group = model.main.groups[0]
    layer = group.layer.evolve(second_mixer=mixer) if second else group.layer.evolve(mixer=mixer)
    return model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=layer),)),))


def test_states_are_in_fp32_one_for_each_slot():
    model = state_model()
    assert alive(model)["state"] == 4 * 2 * 100 * 4
    assert alive(model, gpu_layers=2)["state"] == 4 * 100 * 4
    assert "kv_cache" not in alive(model)
    assert {"state", "kv_cache"} <= set(alive(state_model(second=True)))


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
    assert "1,024 MiB of the card free" in notes
    assert "9 of 32 layers are on the card" in notes
    assert (result.host_bytes or 0) > 3 * GIB
    apart = estimate_memory(llama(), Inference(profile="llama.cpp", engine={"slots": 2})).notes
    assert any("a KV cache of 4,096 cells each" in note for note in apart)


@pytest.mark.parametrize(("name", "certainty"), [(LLAMA_3, "measured"), ("deepseek-ai/DeepSeek-V3", "assumed")])
def test_buffers_of_blocks_that_no_log_was_held_against_are_assumed(name, certainty):
    result = estimate_memory(bundled().models.model(name), Inference(profile="llama.cpp", weights="Q4_K_M"))
    assert result.term("activations").certainty == certainty
