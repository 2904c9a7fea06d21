"""Time of a micro-batch, with the arithmetic."""

import pytest
from small_models import bundled, llama
from timed_steps import PERFECT, step

from planner.hardware.gpu import Gpu
from planner.performance.efficiency import (
    MEASURED,
)
from planner.performance.flops import MatrixProduct
from planner.performance.setting import TimeSetting
from planner.performance.training.compute import card_rates, fp8_cast_bytes, product_seconds, rows_share, wide_format

PLAIN = TimeSetting()


def test_full_checkpoints_compute_the_layers_again(h100: Gpu) -> None:
    plain, again = step(llama(), h100), step(llama(), h100, activation_checkpointing="full")
    assert again.passes.recomputed == pytest.approx(plain.passes.products_forward + plain.passes.attention_forward)
    selective = step(llama(), h100, activation_checkpointing="selective")
    assert selective.passes.recomputed == pytest.approx(plain.passes.attention_forward)


def test_a_recomputation_costs_less_than_theory_says(h100: Gpu) -> None:
    """× 1.15 to × 1.27 was measured where a whole pass more were × 1.33 (torchtitan, torchtune)."""
    plain = step(llama(), h100, classes=MEASURED, micro_batch=2)
    again = step(llama(), h100, classes=MEASURED, micro_batch=2, activation_checkpointing="full")
    assert 1.15 < again.passes.seconds / plain.passes.seconds < 1.27


def test_nf4_is_unpacked_twice_and_once_more_where_layers_are_computed_again(h100: Gpu) -> None:
    packed = step(llama(), h100, method="qlora", compute="amp-bf16")
    again = step(llama(), h100, method="qlora", compute="amp-bf16", activation_checkpointing="full")
    matrices = 32 * (4 * 4096**2 + 3 * 4096 * 11_008)
    assert packed.batch.whole_bytes == 2 * matrices
    unpacked = 2 * (packed.batch.quantised_bytes + 2 * matrices) / (3.35e12 * 0.25)
    assert packed.passes.dequantised == pytest.approx(unpacked)
    assert again.passes.dequantised == pytest.approx(1.5 * unpacked)


def test_fp8_quickens_the_layers_alone(h100: Gpu) -> None:
    wide, narrow = (
        step(llama(), h100, micro_batch=8),
        step(llama(), h100, micro_batch=8, setting=TimeSetting(matrix_format="fp8")),
    )
    assert narrow.passes.products_forward == pytest.approx(wide.passes.products_forward / 2, rel=0.01)
    assert narrow.passes.head == wide.passes.head
    assert narrow.passes.attention_forward == wide.passes.attention_forward
    assert step(llama(), h100, compute="fp8").rates.narrow == 1979e12


def test_a_compiled_network_moves_less_and_launches_less(h100: Gpu) -> None:
    eager, compiled = (
        step(llama(), h100, classes=MEASURED),
        step(llama(), h100, classes=MEASURED, setting=TimeSetting(compiled=True)),
    )
    assert compiled.passes.elements_forward < eager.passes.elements_forward
    assert compiled.passes.host < eager.passes.host


def test_few_rows_leave_the_card_idle() -> None:
    assert rows_share(200, 200) == pytest.approx(0.632, abs=1e-3)
    assert rows_share(4096, 200) == pytest.approx(1, abs=1e-6)
    assert rows_share(0, 200) > 0


def test_a_narrow_product_is_bound_by_its_bytes(h100: Gpu) -> None:
    rates = card_rates(h100, "bf16", None, PERFECT)
    assert not isinstance(rates, str)
    product = MatrixProduct(rows=1, inputs=4096, outputs=4096, number=1, expert=False)
    assert product_seconds(product, rates) == pytest.approx(2 * (4096**2 + 2 * 4096) / 3.35e12)


def test_cards_without_a_figure_say_which(cards: dict[str, Gpu]) -> None:
    bare = cards["rtx-4090-laptop-gpu"]
    rates = card_rates(bare, "bf16", None, MEASURED)
    assert rates == f"The catalog has no dense rate for the {bare.name} in bf16."
    unknown = cards["rtx-4090"].evolve(bandwidth_bytes_per_s=None)
    assert (
        card_rates(unknown, "bf16", None, MEASURED) == "The catalog has no memory bandwidth for the GeForce RTX 4090."
    )
    turing = cards["quadro-rtx-8000"]
    assert "in fp8" in str(card_rates(turing, "fp16", "fp8", MEASURED))


def test_older_cards_compute_bf16_and_tf32_in_fp32(cards: dict[str, Gpu]) -> None:
    turing, ampere = cards["quadro-rtx-8000"], cards["rtx-3090"]
    assert wide_format(turing, "bf16") == wide_format(turing, "tf32") == wide_format(turing, "fp32") == "fp32"
    assert wide_format(turing, "amp-fp16") == "fp16"
    assert (wide_format(ampere, "amp-bf16"), wide_format(ampere, "tf32")) == ("bf16", "tf32")


def test_a_cast_to_fp8_reads_twice_and_writes_once() -> None:
    product = MatrixProduct(rows=2, inputs=3, outputs=5, number=7, expert=False)
    inputs, weights, derivatives = 2 * 3, 3 * 5, 2 * 5
    forward, backward = fp8_cast_bytes(product)
    assert forward == 7 * 5 * (inputs + weights)
    assert backward == 7 * (5 * (inputs + weights + derivatives) + 2 * (inputs + derivatives))


def test_casts_apart_lengthen_a_step_of_fp8(h100: Gpu) -> None:
    narrow, plain = step(llama(), h100, compute="fp8"), step(llama(), h100)
    moved = sum(sum(fp8_cast_bytes(product)) for product in narrow.batch.forward.products)
    assert narrow.passes.narrowed_bytes == moved > 0 == plain.passes.narrowed_bytes


def test_pascal_trains_16_bits_in_fp32() -> None:
    cards = bundled().hardware
    assert wide_format(cards.gpu("tesla-p40"), "amp-fp16") == "fp32"
    assert wide_format(cards.gpu("tesla-p100-sxm2-16gb"), "amp-fp16") == "fp16"
