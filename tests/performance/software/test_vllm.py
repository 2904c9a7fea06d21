"""Inference speed of vLLM."""

from known_engines import ENGINES
from small_models import bundled

from planner.performance.inference.machine import card_speed


def test_the_engine_of_version_0_launches_more_slowly() -> None:
    card = bundled().hardware.gpu("a100-sxm4-80gb")
    old, new = (card_speed(card, ENGINES[name], "bf16") for name in ("vllm-v0", "vllm"))
    assert old is not None
    assert new is not None
    assert (old.layer_seconds, new.layer_seconds) == (136e-6, 60e-6)
    assert old.sequence_seconds == new.sequence_seconds


def test_fp8_weights_are_multiplied_as_stored_where_the_card_can() -> None:
    vllm = ENGINES["vllm"]
    assert vllm.product_format(bundled().hardware.gpu("h100-sxm5-80gb"), "fp8", "bf16") == "fp8"
    assert vllm.product_format(bundled().hardware.gpu("a100-sxm4-80gb"), "fp8", "bf16") == "fp16"
