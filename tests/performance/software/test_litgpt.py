"""Training speed of LitGPT."""

from planner.performance.software import litgpt


def test_bitsandbytes_weights_take_longer_to_launch() -> None:
    assert litgpt.ENGINE.quantised_layer_seconds["nf4"] > litgpt.ENGINE.layer_seconds
