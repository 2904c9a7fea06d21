"""Activations that a network saves with and without checkpoints, by hand."""

import pytest
from small_models import bundled, other
from training_snapshots import TOKENS, alive, layer_difference, snapshots

from planner.memory.estimate import fullest_timeline
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


def test_every_layer_with_a_table_of_position_biases_keeps_its_indices():
    sizes = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_layers": 3, "num_heads": 4, "vocab_size": 100}
    kept = {
        kind: alive(snapshots(other(kind, sizes), sequence_length=32), "loss")["activations"] for kind in ("t5", "umt5")
    }
    # Two more tables in the encoder and two in the decoder, with 8 B for each pair of positions; and of the decoder's
    # cross-attention the zeros of 4 heads in bf16.
    assert kept["umt5"] - kept["t5"] == 2 * 2 * 8 * 32 * 32 + 2 * 4 * 2 * 32 * 32
