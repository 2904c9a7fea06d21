"""Small decoders by `model_type`, with their layers in order and the sizes of their states."""

from typing import Any

from planner.models.architecture import Architecture, Attention, Layer, StateMixer
from planner.models.readers.config_json import read_config

SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 8,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "vocab_size": 100,
    "max_position_embeddings": 4096,
}
EXPERTS: dict[str, Any] = {
    "num_experts": 8,
    "num_local_experts": 8,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
}
LATENT: dict[str, Any] = {
    **EXPERTS,
    "q_lora_rank": 24,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 12,
    "qk_rope_head_dim": 4,
    "v_head_dim": 8,
    "index_n_heads": 2,
    "index_head_dim": 8,
}


def tiny(model_type: str, **changes: object) -> Architecture:
    return read_config({**SIZES, "model_type": model_type, **changes}, "config.json")


def by_layer(architecture: Architecture) -> list[Layer]:
    placed = [(place, group.layer) for group in architecture.main.groups for place in group.places]
    return [layer for _, layer in sorted(placed, key=lambda item: item[0])]


def attentions(architecture: Architecture) -> list[Attention]:
    mixers = [layer.mixer for layer in by_layer(architecture)]
    assert all(isinstance(mixer, Attention) for mixer in mixers)
    return [mixer for mixer in mixers if isinstance(mixer, Attention)]


def windows(architecture: Architecture) -> list[int | None]:
    return [mixer.window for mixer in attentions(architecture)]


def hybrid(model_type: str, sizes: dict[str, object], **changes: object) -> Architecture:
    return read_config({"model_type": model_type, **sizes, **changes}, "test")


def state_elements(found: Architecture) -> list[tuple[int, int]]:
    """Return the elements of the convolution's and the recurrent state of each layer that has one, in order."""
    layers = {
        place: mixer
        for group in found.main.groups
        for place in group.places
        for mixer in (group.layer.mixer, group.layer.second_mixer)
        if isinstance(mixer, StateMixer)
    }
    return [(layers[place].conv_state_elements, layers[place].recurrent_state_elements) for place in sorted(layers)]


def attention_layers(found: Architecture) -> list[int]:
    attends = (group for group in found.main.groups if not isinstance(group.layer.mixer, StateMixer))
    return sorted(place for group in attends for place in group.places)
