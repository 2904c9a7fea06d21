"""GPT-2 and its descendants: windows, key/value heads, norms and refused sizes."""

import pytest
from decoder_cases import attentions, by_layer, tiny, windows

from planner.errors import ModelFileError


def test_gpt_neo_alternates_windows_unless_its_layers_are_listed() -> None:
    assert windows(tiny("gpt_neo")) == [None, 256] * 4
    assert windows(tiny("gpt_neo", attention_layers=["local"] * 8, window_size=9)) == [9] * 8


def test_masks_are_kept_by_each_layer_of_gpt_neo_and_once_by_gpt_bigcode() -> None:
    assert tiny("gpt_neo", max_position_embeddings=100).mask_buffer_bytes == 8 * 100 * 100
    assert tiny("gpt_bigcode", max_position_embeddings=100).mask_buffer_bytes == 100 * 100
    assert tiny("gpt2").mask_buffer_bytes == 0


@pytest.mark.parametrize(
    ("model_type", "changes"),
    [
        ("gpt_neo", {"attention_layers": ["local"] * 3}),
        ("falcon", {"new_decoder_architecture": True, "num_kv_heads": 3}),
        ("gpt2", {"max_position_embeddings": None}),
    ],
    ids=str,
)
def test_contradictory_sizes_are_refused(model_type: str, changes: dict[str, object]) -> None:
    with pytest.raises(ModelFileError):
        tiny(model_type, **changes)


def test_options_of_the_gpt_families() -> None:
    # transformers saves a number of heads of keys beside the flag, and derives it anew.
    assert attentions(tiny("gpt_bigcode", multi_query=False, num_key_value_heads=2))[0].kv_heads == 4
    grouped = tiny("falcon", new_decoder_architecture=True, num_kv_heads=2)
    assert (attentions(grouped)[0].kv_heads, by_layer(grouped)[0].norm_count) == (2, 2)
    plain = tiny("falcon", multi_query=False, parallel_attn=False, alibi=True)
    assert (attentions(plain)[0].kv_heads, attentions(plain)[0].rotary) == (4, False)
    assert (by_layer(plain)[0].norm_count, by_layer(plain)[0].parallel) == (2, False)
    narrow = tiny("opt", word_embed_proj_dim=32, do_layer_norm_before=False)
    assert [tensor.name for tensor in narrow.main.after] == ["model.decoder.project_out.weight"]
    assert by_layer(tiny("opt", layer_norm_elementwise_affine=False))[0].norm_count == 2
