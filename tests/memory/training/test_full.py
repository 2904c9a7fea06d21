"""Casts and gradients of full fine-tuning, by hand."""

from small_models import llama
from training_snapshots import alive, snapshots

P = 6_738_415_616  # Llama 2 7B


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


def test_a_tied_embeddings_gradients_meet():
    tied = llama(tie_word_embeddings=True)
    backward = alive(snapshots(tied), "backward", "embedding")
    assert backward["temporaries"] == 2 * 2 * 32_000 * 4096  # the dense gradient, and its sum with the head's
