"""Activations that a network saves with and without checkpoints, and gradients in flight in a layer, by hand."""

import pytest
from small_models import DEEPSEEK, LLAMA, MIXTRAL, bundled, other
from training_snapshots import TOKENS, alive, layer_difference, snapshots

from planner.memory.estimate import fullest_timeline
from planner.memory.precision import Precision
from planner.memory.training.autograd.layer import feed_forward_bytes, saved_by_layer
from planner.memory.training.autograd.network import backward_points, expert_weighting_bytes
from planner.workload.defaults import with_defaults
from planner.workload.workload import Training

LAYER = {"h": 4096, "q": 4096, "kv": 1024, "i": 14_336, "a": 32}


@pytest.mark.parametrize(("compute", "size"), [("bf16", 2), ("amp-bf16", 4), ("fp32", 4)])
def test_checkpoints_keep_a_layers_input(compute, size):
    assert layer_difference(compute=compute, activation_checkpointing="full") == TOKENS * size * LAYER["h"]


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
    in_scores = backward_points(layer, 7168, 1000, precision, "eager", checkpointed=False)[-1]
    assert in_scores.bytes == 1000 * 128 * (3 * 4 - 2) + 2 * 7168 - behind


def test_softcapped_scores_keep_a_copy_whose_gradient_takes_no_more_than_theirs():
    plain = other("llama", LLAMA).main.groups[0].layer
    capped = plain.evolve(mixer=plain.mixer.evolve(softcap=True))
    precision = Precision(2, 2, 2, autocast=False)
    saved = [saved_by_layer(layer, 4096, precision, "eager").scores for layer in (plain, capped)]
    assert saved[1] - saved[0] == 32 * 2  # a copy in bf16 for each head
    in_scores = [
        backward_points(layer, 4096, 100, precision, "eager", checkpointed=False)[-1].bytes for layer in (plain, capped)
    ]
    assert in_scores[0] == in_scores[1]


def test_outputs_of_experts_are_weighted_in_the_format_of_the_router():
    block = other("mixtral", MIXTRAL).main.groups[0].layer.feed_forward
    precision = Precision(2, 2, 2, autocast=False)
    in_bf16, in_fp32 = (expert_weighting_bytes(block.evolve(fp32_router=one), 4096, precision) for one in (False, True))
    assert in_fp32 - in_bf16 == 3 * 2 * 4096 * (4 - 2)  # three times the outputs of two experts


def test_every_layer_with_a_table_of_position_biases_keeps_its_indices():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 3, "num_heads": 4, "vocab_size": 100}
    kept = {
        kind: alive(snapshots(other(kind, sizes), sequence_length=32), "loss")["activations"] for kind in ("t5", "umt5")
    }
    # Two more tables in the encoder and two in the decoder, with 8 B for each pair of positions; and of the decoder's
    # cross-attention the zeros of 4 heads in bf16.
    assert kept["umt5"] - kept["t5"] == 2 * 2 * 8 * 32 * 32 + 2 * 4 * 2 * 32 * 32


def test_every_layer_that_gathers_scores_by_distance_keeps_the_indices_and_the_projected_tables():
    sizes = {"hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 96}
    sizes |= {"vocab_size": 100, "position_buckets": 16, "max_position_embeddings": 64, "type_vocab_size": 0}

    def kept(kinds, **changes):
        model = other("deberta-v2", sizes | {"relative_attention": True, "pos_att_type": kinds})
        return alive(snapshots(model, sequence_length=32, micro_batch=2, **changes), "loss")["activations"]

    # A table of 2 · 16 rows: an index of 8 B for each pair of positions; of both sequences the table's 64 columns, and
    # for each token the scores of 4 heads with each row, before they are gathered
    table = 8 * 32 * 32 + 2 * 32 * 64 * 2 + 2 * 32 * 4 * 32 * 2
    assert kept(["c2p", "p2c"]) - kept(["c2p"]) == 3 * table
    # and the mask of each pair that is not seen, in both sequences
    assert kept(["c2p"]) - kept([]) == 3 * (table + 2 * 32 * 32)
    # Checkpoints hold none of them until a layer is recomputed.
    full = {"activation_checkpointing": "full"}
    assert kept(["c2p"], **full) - kept([], **full) == 8 * 32 * 32 + 2 * 32 * 64 * 2


def test_t5_casts_what_its_last_projection_reads_to_the_weights_format_and_back():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 3, "num_heads": 4, "vocab_size": 100}
    block = other("t5", sizes | {"feed_forward_proj": "relu", "dropout_rate": 0.0}).main.groups[0].layer.feed_forward
    amp, bf16 = Precision(4, 2, 4, autocast=True), Precision(2, 2, 2, autocast=False)
    # the ReLU's output in bf16; under autocast fp32 weights make a second copy of it
    assert feed_forward_bytes(block, 64, bf16) == 128 * 2
    assert feed_forward_bytes(block, 64, amp) == 128 * 2 * 2
    assert feed_forward_bytes(block.evolve(recast=False), 64, amp) == 128 * 2
