"""Efficiency classes: families, fitted shares and their sources."""

import pytest

from planner.hardware.gpu import Gpu, Rate
from planner.performance.efficiency import (
    ISOLATED_MATRIX_SHARES,
    MEASURED_EFFICIENCY,
    TRAINING_SOURCES,
    attention_share,
    class_source,
    family_of,
    gpu_matrix_share,
    matrix_family,
    matrix_share,
)
from planner.plan.catalog import Catalog


@pytest.fixture(scope="session")
def cards(catalog: Catalog) -> dict[str, Gpu]:
    return {gpu.id: gpu for gpu in catalog.hardware.gpus}


def test_geforce_cards_accumulate_fp16_in_fp32_at_half_of_the_headline(cards: dict[str, Gpu]) -> None:
    """330 and 142 TFLOPS are with fp16 sums, which training does not take (NVIDIA Ada and GA102 whitepapers)."""
    assert _rate(cards["rtx-4090"], "fp16").ops_per_s == pytest.approx(165.2e12, rel=0.01)
    assert _rate(cards["rtx-3090"], "fp16").ops_per_s == pytest.approx(71e12, rel=0.01)
    assert _rate(cards["rtx-a6000"], "fp16").ops_per_s == pytest.approx(154.8e12, rel=0.01)


def _rate(gpu: Gpu, dtype: str) -> Rate:
    found = gpu.rate(dtype)
    assert found is not None
    return found


def test_unmeasured_families_take_the_middle_of_the_others(cards: dict[str, Gpu]) -> None:
    assert family_of(cards["radeon-rx-7900-xtx"]) == "Radeon"
    known = sorted(share for (_, size), share in MEASURED_EFFICIENCY.matrix_shares.items() if size == "16")
    assert known[0] < matrix_share(MEASURED_EFFICIENCY, "Radeon", "16") < known[-1]
    assert matrix_share(MEASURED_EFFICIENCY._replace(matrix_shares={}), "Radeon", "16") == 0.5


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("a100-sxm4-40gb", "A100"),
        ("rtx-a5000", "Ampere GDDR"),
        ("b200-sxm-180gb", "Blackwell data center"),
        ("gb300-288gb", "Blackwell data center"),
        ("rtx-pro-6000-blackwell-ws", "Blackwell GDDR"),
        ("h100-pcie-80gb", "Hopper PCIe"),
        ("gh200-96gb", "Hopper SXM"),
        ("instinct-mi350x", "Instinct"),
        ("tpu-v5e", "TPU"),
        ("gaudi2", "Intel"),
    ],
)
def test_a_card_belongs_to_a_family(name: str, family: str, cards: dict[str, Gpu]) -> None:
    assert family_of(cards[name]) == family


def test_every_class_names_whose_measurements_it_is_fitted_to() -> None:
    assert set(TRAINING_SOURCES) == set(MEASURED_EFFICIENCY.matrix_shares)
    assert class_source("Radeon", "16").startswith("no measurement of this GPU family")
    assert class_source("Instinct", "16").startswith("isolated products")


def test_products_alone_speak_for_families_that_nobody_trained_on() -> None:
    assert matrix_share(MEASURED_EFFICIENCY, "Instinct", "16") == pytest.approx(0.75 * 0.60)
    assert matrix_share(MEASURED_EFFICIENCY, "Blackwell GDDR", "16") == MEASURED_EFFICIENCY.matrix_shares["Ada", "16"]
    assert class_source("Blackwell GDDR", "16") == ", ".join(TRAINING_SOURCES["Ada", "16"])


@pytest.mark.parametrize(
    ("name", "family"),
    [
        ("rtx-4090", "Ada"),
        ("l40s", "Ada full rate"),
        ("l40", "Ada"),
        ("rtx-a5000", "Ampere full rate"),
        ("rtx-3090", "Ampere GDDR"),
        ("rtx-5090", "Blackwell GDDR"),
        ("rtx-pro-6000-blackwell-ws", "Blackwell full rate"),
        ("rtx-2080-ti", "Turing half rate"),
        ("titan-rtx", "Turing"),
        ("quadro-rtx-8000", "Turing"),
        ("h100-sxm5-80gb", "Hopper SXM"),
        ("a10g", "Ampere GDDR"),
    ],
)
def test_the_same_chips_add_up_at_two_rates(name: str, family: str, cards: dict[str, Gpu]) -> None:
    assert matrix_family(cards[name]) == family


def test_cards_of_a_family_differ_as_their_products_alone_do(cards: dict[str, Gpu]) -> None:
    old, new = cards["instinct-mi300x"], cards["instinct-mi355x"]
    assert gpu_matrix_share(MEASURED_EFFICIENCY, old, "8") == pytest.approx(0.39 * 0.514 / 0.64)
    assert gpu_matrix_share(MEASURED_EFFICIENCY, new, "8") == pytest.approx(0.39 * 0.68 / 0.64)
    assert gpu_matrix_share(MEASURED_EFFICIENCY, old, "16") == pytest.approx(0.75 * 0.514)
    assert (
        gpu_matrix_share(MEASURED_EFFICIENCY, cards["h100-sxm5-80gb"], "16")
        == MEASURED_EFFICIENCY.matrix_shares["Hopper SXM", "16"]
    )


def test_attention_that_was_never_measured_follows_the_products_alone(cards: dict[str, Gpu]) -> None:
    # 0.34 of 0.87 on A100, 0.21 of 0.80 on Hopper and 0.57 of 0.78 on Blackwell: A100 is in the middle.
    assert attention_share(MEASURED_EFFICIENCY, cards["instinct-mi300x"]) == pytest.approx(0.514 * 0.34 / 0.87)
    assert attention_share(MEASURED_EFFICIENCY, cards["a100-sxm4-80gb"]) == 0.34
    assert attention_share(MEASURED_EFFICIENCY, cards["tpu-v5e"]) == 0.34


def test_no_product_is_faster_than_the_rate_of_its_card() -> None:
    assert all(0.4 < share < 0.9 for share in ISOLATED_MATRIX_SHARES.values())
