"""Speed of AutoAWQ."""

from planner.performance.software import autoawq, transformers


def test_its_fused_layers_decode_as_a_compiled_network_does() -> None:
    assert autoawq.ENGINE is transformers.COMPILED
