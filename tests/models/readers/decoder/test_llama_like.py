"""Dense decoders that differ from Llama in a few settings."""

from decoder_cases import by_layer, tiny


def test_stablelm_can_run_attention_and_feed_forward_in_parallel() -> None:
    layer = by_layer(tiny("stablelm", use_parallel_residual=True, qk_layernorm=True))[0]
    assert (layer.norm_count, layer.parallel) == (1, True)
