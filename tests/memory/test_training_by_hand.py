"""One training step, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, LLAMA, bundled, llama, other, small_llama

from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.phases import PhaseSnapshots
from planner.memory.precision import Precision
from planner.memory.training.autograd.backward import backward_points
from planner.memory.training.autograd.layer import saved_by_layer
from planner.models.architecture import StateMixer
from planner.units import MIB
from planner.workload.defaults import with_defaults
from planner.workload.workload import Training

P = 6_738_415_616  # Llama 2 7B
LAYER = {"h": 4096, "q": 4096, "kv": 1024, "i": 14_336, "a": 32}
TOKENS = 2048


def snapshots(model, count=1, **changes) -> PhaseSnapshots:
    return fullest_timeline(model, with_defaults(Training(**{"compute": "bf16"} | changes), model, count))


def alive(found: PhaseSnapshots, phase: str, explanation: str = "") -> dict[str, int]:
    """Return the bytes of each term in the first snapshot of `phase` whose explanation has these words."""
    snapshot = next(m for m in found.snapshots if m.name == phase and explanation in m.explanation)
    shares: dict[str, int] = {}
    for term in snapshot.terms:
        shares[term.name] = shares.get(term.name, 0) + term.bytes
    return shares


def test_pure_bf16_adamw_is_8_bytes_a_parameter():
    step = alive(snapshots(llama()), "step")
    assert step == {"weights": 2 * P, "gradients": 2 * P, "optimizer_states": 4 * P}
    assert sum(step.values()) == 8 * P


@pytest.mark.parametrize("compute", ["fp32", "tf32", "amp-bf16", "amp-fp16"])
def test_fp32_parameters_are_16_bytes_with_adamw(compute):
    assert sum(alive(snapshots(llama(), compute=compute), "step").values()) == 16 * P


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("sgd-momentum", 1), ("adamw", 2)])
def test_states_are_as_the_parameters(optimizer, states):
    step = alive(snapshots(llama(), optimizer=optimizer), "step")
    assert step.get("optimizer_states", 0) == states * 2 * P


def test_8_bit_adam_keeps_embeddings_and_small_tensors_in_32_bits():
    # h = 64, i = 160, V = 1000, two layers. Of at least 4,096 elements: q and o (64 × 64) and the MLP's three
    # (64 × 160), in two 8-bit snapshots with an fp32 scale for each 256; k and v (32 × 64 = 2,048), the norms and the
    # embedding in 8 B. The head is no embedding: 64,000 elements are 250 blocks.
    quantized = 2 * (2 * 4096 + 3 * 10_240) + 64_000
    blocks = 2 * (2 * 16 + 3 * 40) + 250
    full = 2 * 2 * 2048 + 5 * 64 + 64_000
    states = alive(snapshots(small_llama(), optimizer="adamw-8bit"), "step")["optimizer_states"]
    assert states == 2 * (quantized + 4 * blocks) + 8 * full


def test_what_a_layer_keeps_in_bf16():
    # 16h + 4q + 4kv + 8i + 4a + 8 bytes a token: 200,840 for Llama-3.1-8B
    h, q, kv, i, a = LAYER.values()
    per_token = 16 * h + 4 * q + 4 * kv + 8 * i + 4 * a + 8
    assert per_token == 200_840
    assert layer_difference(compute="bf16") == TOKENS * per_token


def test_what_a_layer_keeps_in_fp32():
    # No fused kernel takes groups in fp32: matrix products keep q, k, v and output in full, 16q, and 4 · a · s
    h, q, _, i, a = LAYER.values()
    assert layer_difference(compute="fp32") == TOKENS * (24 * h + 16 * q + 16 * i + 8 + 4 * a * TOKENS)
    # With the kernels of flash-attn, or as many heads of keys, 24h + 8q + 8kv + 16i + 4a + 8
    assert layer_difference(compute="fp32", attention="flash") == TOKENS * 368_776


def test_what_a_layer_keeps_under_autocast():
    # 26h + 4q + 4kv + 8i + 4a + 8, beside the casts of its projections
    assert layer_difference(compute="amp-bf16") == TOKENS * 241_800


def test_eager_attention_keeps_scores_and_repeated_heads():
    # 4kv become 4q, the statistics 4a fall away, and 6 · a · s come: fp32 softmax and its cast
    h, q, _, i, a = LAYER.values()
    per_token = 16 * h + 8 * q + 8 * i + 8 + 6 * a * TOKENS
    assert layer_difference(compute="bf16", attention="eager") == TOKENS * per_token


@pytest.mark.parametrize(("compute", "size"), [("bf16", 2), ("amp-bf16", 4), ("fp32", 4)])
def test_checkpoints_keep_a_layers_input(compute, size):
    assert layer_difference(compute=compute, activation_checkpointing="full") == TOKENS * size * LAYER["h"]


def layer_difference(**changes) -> int:
    """Return what 3 layers of Llama-3.1-8B keep more than 2 when the forward pass is through."""
    sizes = {"num_key_value_heads": 8, "intermediate_size": 14_336}
    kept = [
        alive(snapshots(llama(num_hidden_layers=depth, **sizes), sequence_length=TOKENS, **changes), "forward")
        for depth in (2, 3)
    ]
    return kept[1]["activations"] - kept[0]["activations"]


@pytest.mark.parametrize(("compute", "per_logit"), [("bf16", 14), ("amp-bf16", 14), ("fp32", 16)])
def test_bytes_of_a_logit_when_the_loss_is_derived(compute, per_logit):
    loss = alive(snapshots(llama(), compute=compute, micro_batch=2, sequence_length=100), "loss")
    assert loss["logits"] == per_logit * 2 * 100 * 32_000


def test_autocast_keeps_a_cast_of_every_projection_and_the_head():
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11_008) + 32_000 * 4096
    assert alive(snapshots(llama(), compute="amp-bf16"), "loss")["temporaries"] == 2 * matrices
    checkpointed = snapshots(llama(), compute="amp-bf16", activation_checkpointing="full")
    assert alive(checkpointed, "forward")["temporaries"] == 2 * matrices
    assert alive(checkpointed, "loss")["temporaries"] == 2 * 32_000 * 4096


def test_gradients_come_layer_by_layer():
    found = snapshots(llama())
    assert "gradients" not in alive(found, "loss")
    assert alive(found, "backward", "starts at the head")["gradients"] == 2 * 32_000 * 4096
    # The first layer's down projection comes before the rest of it.
    layer = 4 * 4096**2 + 2 * 4096 * 11_008 + 2 * 4096
    assert alive(found, "backward", "first layer")["gradients"] == 2 * (P - layer - 32_000 * 4096)
    assert alive(found, "backward", "embedding")["gradients"] == 2 * P


def test_accumulated_gradients_stay():
    found = snapshots(llama(), gradient_accumulation=4)
    assert alive(found, "forward")["gradients"] == 2 * P
    assert alive(found, "backward", "first layer")["gradients"] == 2 * P
    assert alive(found, "step")["gradients"] == 2 * P


def test_a_tied_embeddings_gradients_meet():
    tied = llama(tie_word_embeddings=True)
    backward = alive(snapshots(tied), "backward", "embedding")
    assert backward["temporaries"] == 2 * 2 * 32_000 * 4096  # the dense gradient, and its sum with the head's


def test_replicas_hold_the_gradients_twice_and_a_communicator():
    assert "communication" not in alive(snapshots(llama()), "step")
    for count, communicator in ((2, 544_000_000), (8, 688_000_000)):
        term = next(t for t in snapshots(llama(), count=count).snapshots[-1].terms if t.name == "communication")
        assert term.bytes == 2 * P + communicator
        assert (term.low_bytes, term.high_bytes) == (2 * P, 2 * P + communicator + 512 * MIB)


@pytest.mark.parametrize(
    ("shape", "phase"),
    [
        ({"micro_batch": 8, "sequence_length": 2048}, "loss"),
        ({"micro_batch": 1, "sequence_length": 16}, "backward"),
    ],
)
def test_which_phase_peaks(shape, phase):
    assert estimate_memory(llama(), Training(compute="bf16", **shape)).peak_phase == phase


def test_plain_sgd_with_few_tokens_peaks_where_all_gradients_meet_the_logits():
    result = estimate_memory(llama(), Training(compute="bf16", optimizer="sgd", sequence_length=16))
    assert result.peak_phase == "backward"
    assert {term.name for term in result.terms} == {"weights", "gradients", "logits", "framework_overhead"}


def test_parts_say_what_the_activations_are():
    result = estimate_memory(small_llama(), Training(compute="bf16", micro_batch=64, sequence_length=512))
    names = {part.name for part in result.term("activations").parts}
    assert {"norms and their inputs", "feed-forward blocks"} <= names
    checkpointed = Training(compute="bf16", micro_batch=64, sequence_length=512, activation_checkpointing="full")
    parts = estimate_memory(small_llama(vocab_size=16), checkpointed).term("activations").parts
    assert {part.name for part in parts} >= {
        "checkpoints (each layer's input)",
        "one recomputed layer with its gradients",
    }


def test_a_windowed_layer_gives_the_fused_kernel_a_mask():
    def activations(window):
        model = other("mistral", LLAMA, num_hidden_layers=2, sliding_window=window)
        return alive(snapshots(model, sequence_length=1024), "forward")["activations"]

    assert activations(256) - activations(4096) == 2 * 1024 * 1024 * 2  # two layers, s × s numbers in bf16


def test_an_encoder_of_images_has_one_output_each():
    vit = other(
        "vit",
        {
            "hidden_size": 64,
            "intermediate_size": 128,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 224,
            "patch_size": 16,
            "id2label": {str(n): str(n) for n in range(10)},
            "architectures": ["ViTForImageClassification"],
        },
    )
    assert alive(snapshots(vit, micro_batch=8), "loss")["logits"] == 14 * 8 * 10


def test_parts_name_one_layer_where_the_backward_pass_has_freed_the_rest():
    found = snapshots(llama(num_hidden_layers=40), sequence_length=512)
    snapshot = next(m for m in found.snapshots if "first layer" in m.explanation)
    term = next(term for term in snapshot.written() if term.name == "activations")
    assert [part.name for part in term.parts] == ["one layer and its gradients"]
    assert term.formula == "O"


def test_a_layer_of_states_keeps_its_expanded_stream():
    mixer = StateMixer(name="mamba", conv_state_elements=1, recurrent_state_elements=1, inner_dim=1000)
    model = small_llama(tie_word_embeddings=True)
    group = model.main.groups[0]
    bare = group.layer.evolve(mixer=mixer, feed_forward=None, norm_count=1)
    only = model.evolve(stacks=(model.main.evolve(groups=(group.evolve(layer=bare),)),))
    found = snapshots(only, sequence_length=100)
    norm = (4 + 2) * 64 + 4 + 2 * 64  # its fp32 input and normalised values, the root, and its output
    outer = (4 + 2) * 64 + 4 + 2 * 64
    assert alive(found, "forward")["activations"] == 100 * (2 * (norm + 4 * 2 * 1000) + outer)
    # The gradients in flight, 4h, are less than the final norm and its output, which are freed by then.
    assert alive(found, "backward", "last layer") == alive(found, "backward", "starts at the head") | {
        "logits": alive(found, "backward", "last layer")["logits"]
    }


def test_towers_of_different_lengths_have_no_formula_per_token():
    whisper = bundled().models.model("openai/whisper-large-v3")
    encoder = whisper.stacks[0].positions
    workload = with_defaults(Training(compute="bf16", sequence_length=2 * encoder), whisper, 1)
    term = next(t for t in fullest_timeline(whisper, workload).snapshots[1].written() if t.name == "activations")
    assert term.parts[0].formula == f"{term.parts[0].bytes:,}"


def test_eager_latent_attention_keeps_keys_values_and_scores():
    # queries and keys of 128 + 64, values of 128, for each of 128 heads; two normed latents: fp32 input, normalised,
    # and what is read; fp32 softmax and its cast. In the backward pass 3 · 4 B for each score, its cast freed, and all
    # that stands behind attention with its output.
    layer = other("deepseek_v3", DEEPSEEK).main.groups[0].layer
    precision = Precision(2, 2, 2, autocast=False)
    ledger = saved_by_layer(layer, 7168, precision, "eager")
    query_key, value, latents = 128 * (128 + 64), 128 * 128, 1536 + 512
    assert ledger.attention == 2 * (2 * query_key + 2 * value) + 8 * latents + 8
    assert ledger.scores == 128 * (4 + 2)
    behind = ledger.feed_forward + (4 + 2 + 2) * 7168 + 4 + 2 * value
    in_scores = backward_points(layer, 7168, 1, 1000, precision, "eager", checkpointed=False)[-1]
    assert in_scores.bytes == 1000 * (1000 * 128 * (3 * 4 - 2) + 2 * 7168 - behind)
