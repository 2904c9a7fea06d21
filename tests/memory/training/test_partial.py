"""Workspaces of quantized and DoRA layers, and steps that train a part."""

from small_models import other, small_llama
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


def test_pixels_are_held_by_the_caller_unless_the_patch_convolution_saves_them():
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
    vit = other("vit", sizes | {"image_size": 224, "patch_size": 16})

    def pixels(**changes):
        return alive(snapshots(vit, compute="amp-bf16", micro_batch=3, **changes), "step").get("buffers", 0)

    # three images of three channels in fp32, or in the format of the frozen weights
    assert pixels(trainable=("layers.1",)) == 3 * 3 * 224 * 224 * 4
    assert pixels(method="lora") == 3 * 3 * 224 * 224 * 2
    assert pixels(trainable=("*patch_embeddings*", "layers.1")) == pixels() == 0


def test_a_frozen_last_layer_has_no_gradients():
    llama = small_llama(num_hidden_layers=3)
    first, last = (snapshots(llama, trainable=(f"layers.{place}",), sequence_length=16) for place in (1, 2))
    assert "gradients" not in alive(first, "backward", "last layer")
    assert alive(last, "backward", "last layer")["gradients"] > 0


def test_checkpoints_of_images_need_no_gradient_of_the_input():
    sizes = {"hidden_size": 64, "intermediate_size": 128, "num_hidden_layers": 3, "num_attention_heads": 4}
    vit = other("vit", sizes | {"image_size": 224, "patch_size": 16})
    one = 2 * 197 * 64 * 4  # an input in fp32 of two images, with 14 · 14 patches and a token for the class

    def inputs(place):
        changes = {"trainable": (f"layers.{place}",), "activation_checkpointing": "full", "micro_batch": 2}
        return alive(snapshots(vit, compute="fp32", **changes), "loss")["activations"] // one

    # that of each layer from the trained one on, and that of the last norm
    assert [inputs(place) for place in (0, 1, 2)] == [3 + 1, 2 + 1, 1 + 1]
