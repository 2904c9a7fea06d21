"""Workspaces of quantized and DoRA layers, and steps that train a part."""

from small_models import small_llama
from training_snapshots import alive, snapshots

from planner.memory.training.adapters.settings import AdapterSettings
from planner.memory.training.partial import dora_workspace_terms


def test_without_adapted_layers_nothing_is_multiplied_out():
    assert dora_workspace_terms((), 2, 2) == ()
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=True, converts=True)
    assert not adapters.shares_input(2)


def test_a_trained_embedding_gets_its_gradient_after_the_first_layer():
    trained = {"trainable": ("*down_proj*", "*embed_tokens*"), "sequence_length": 64}
    found = snapshots(small_llama(), **trained)
    layers, embedding = 2 * 160 * 64, 1000 * 64
    assert alive(found, "backward", "first layer")["gradients"] == 2 * layers
    assert alive(found, "step")["gradients"] == 2 * (layers + embedding)
