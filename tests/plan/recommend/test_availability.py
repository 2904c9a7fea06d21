"""Which cards can be bought and placed, by their form, their place and the systems that contain them."""

import pytest

from planner.plan.recommend.availability import circuit_watts, ownership_obstacle


def obstacle(catalog, gpu: str, cards: int = 1, place: str = "lab") -> str | None:
    return ownership_obstacle(catalog.hardware.gpu(gpu), cards, place, catalog.hardware.systems)


@pytest.mark.parametrize(
    ("gpu", "cards", "place", "reason"),
    [
        ("rtx-4090", 2, "desk", None),
        ("rtx-4090", 8, "lab", None),
        ("rtx-pro-6000-blackwell-ws", 2, "desk", None),
        ("rtx-4090", 1, "data-centre", "its driver is not licensed for data centers"),
        ("rtx-4090", 1, "colocation", "its driver is not licensed for data centers"),
        ("rtx-a6000", 1, "data-centre", None),
        ("h100-sxm5-80gb", 8, "desk", "cannot be placed at a desk"),
        ("instinct-mi300x", 8, "desk", "cannot be placed at a desk"),
        ("l40s", 1, "desk", "cannot be placed at a desk"),
        ("h100-sxm5-80gb", 1, "lab", "only sold in whole servers"),
        ("h100-sxm5-80gb", 16, "lab", None),
        ("instinct-mi300x", 4, "data-centre", "only sold in whole servers"),
        ("gb200-186gb", 8, "data-centre", "only sold in whole servers"),
        ("gb200-186gb", 72, "data-centre", None),
        ("l40s", 1, "data-centre", None),
        ("jetson-agx-orin-64gb", 1, "desk", None),
        ("jetson-agx-orin-64gb", 8, "lab", "a whole computer, which cannot be combined with others"),
        ("apple-m3-ultra", 2, "desk", "a whole computer, which cannot be combined with others"),
        ("rtx-4090-laptop-gpu", 2, "lab", "a whole computer, which cannot be combined with others"),
        ("tpu-v5e", 1, "data-centre", "not for sale"),
        ("trainium2", 16, "lab", "not for sale"),
        ("rubin-288gb", 72, "data-centre", "not for sale"),
    ],
)
def test_a_card_can_be_had_and_placed_or_the_reason_is_said(catalog, gpu, cards, place, reason):
    assert obstacle(catalog, gpu, cards, place) == reason


@pytest.mark.parametrize(
    ("region", "watts"), [("US", 15 * 120), ("US-WA", 15 * 120), ("JP", 15 * 100), ("GB", 13 * 230), ("DE", 16 * 230)]
)
def test_a_circuit_is_that_of_the_region(catalog, region, watts):
    limit = circuit_watts(region, catalog.cost)
    assert limit.value == watts
    assert limit.source


def test_every_circuit_of_the_catalog_is_used(catalog):
    known = {constant.value for constant in catalog.cost.constants if constant.kind == "circuit"}
    assert known == {circuit_watts(region, catalog.cost).value for region in ("US", "CA", "MX", "JP", "GB", "FR")}
