"""Prices of cards from the bundled catalog, and the words that queries know them by."""

from datetime import date

from planner.cost.owning.purchase import card_price
from planner.plan.catalog import Catalog
from planner.plan.prices import buying_prices, price_words, prices_by_card, prices_of, rents_of

TODAY = date(2026, 11, 22)


def test_prices_of_all_cards_equal_those_of_single_cards(catalog: Catalog) -> None:
    together = prices_by_card(catalog, TODAY)
    for gpu in catalog.hardware.gpus:
        assert together[gpu.id] == prices_of(gpu, catalog, TODAY)


def test_query_fields_are_median_prices_and_the_lowest_rent(catalog: Catalog) -> None:
    prices = prices_by_card(catalog, TODAY)
    words = price_words(prices)
    assert words["rtx-4090"]["used"] == prices["rtx-4090"].bought["used"].median_usd
    assert words["h100-sxm5-80gb"]["rent"] == prices["h100-sxm5-80gb"].rented["on-demand"].low.price_usd
    assert words["tpu-8i"].keys() <= {"rent"}
    buying = buying_prices(catalog, TODAY)
    asked = price_words(prices, buying)
    assert asked["rtx-4090"]["price"] == buying["rtx-4090"].value
    assert "price" not in asked["tpu-8i"]


def test_a_launch_price_is_dated_by_the_release(catalog: Catalog) -> None:
    gpu = catalog.hardware.gpu("rtx-3090")
    asked = [(point.price_usd, point.price_date) for point in prices_of(gpu, catalog, TODAY).bought["list"].points]
    assert (gpu.launch_price_usd, gpu.released) in asked
    unpriced = catalog.hardware.gpu("h100-sxm5-80gb")
    assert "list" not in prices_of(unpriced, catalog, TODAY).bought


def test_software_and_speeds_are_read_with_the_catalog(catalog: Catalog) -> None:
    assert catalog.software
    assert catalog.speeds


def test_a_system_is_rented_as_a_whole(catalog: Catalog) -> None:
    card = catalog.hardware.gpu("h100-sxm5-80gb")
    each = prices_of(card, catalog, TODAY).rented["on-demand"].low.price_usd
    rented = rents_of(catalog.hardware.system("dgx-h100"), catalog, TODAY)["on-demand"]
    assert rented.low.price_usd >= 8 * each
    assert rents_of(catalog.hardware.system("dgx-station-v100"), catalog, TODAY) == {}
    pod = rents_of(catalog.hardware.system("tpu-v4-pod"), catalog, TODAY)["on-demand"]
    assert pod.low.price_usd == 4096 * 3.22


def test_what_a_card_costs_is_what_cost_estimates_assume(catalog: Catalog) -> None:
    prices = buying_prices(catalog, TODAY)
    gpu = catalog.hardware.gpu("rtx-3090")
    assert prices[gpu.id] == card_price(catalog.cost.purchases, gpu.id, gpu.launch_price_usd, TODAY, gpu.released)
    assert prices["rtx-3090"].value == prices_of(gpu, catalog, TODAY).bought["used"].median_usd
    assert "tpu-8i" not in prices
