"""Parameter formats that methods and compute precisions allow."""

import pytest

from planner.workload.formats import autocasts, formats_for, is_plain, plain_formats, product_format


@pytest.mark.parametrize(
    ("compute", "products", "is_autocast"),
    [("fp32", "fp32", False), ("bf16", "bf16", False), ("amp-fp16", "fp16", True), ("fp8", "bf16", True)],
)
def test_products_are_in_the_compute_precision_except_under_fp8(compute, products, is_autocast):
    assert product_format(compute) == products
    assert autocasts(compute) is is_autocast


def test_fp16_autocast_trains_fp32_parameters_and_freezes_fp16_ones():
    assert plain_formats("full", "amp-fp16") == ("fp32",)
    assert plain_formats("lora", "amp-fp16") == ("fp32", "fp16")


def test_only_adapters_allow_quantized_base_models():
    assert formats_for("full", "amp-bf16") == ("fp32", "bf16")
    assert formats_for("lora", "amp-bf16") == ("fp32", "bf16", "int8")
    assert formats_for("qlora", "amp-bf16") == ("nf4", "nf4-dq")
    assert formats_for("qlora", "fp32") == ()
    assert is_plain("bf16")
    assert not is_plain("int8")
