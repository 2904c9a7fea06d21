"""The prices of one card by kind: never mixed, with range, age, history, and what is left out."""

from datetime import date

import pytest

from planner.cost.card_prices import (
    CardPrices,
    PricePoint,
    PriceSpread,
    card_prices,
    rents_of_machine,
)
from planner.cost.catalog import CostCatalog
from planner.cost.owning.purchase import Purchase
from planner.cost.renting.offer import Offer
from planner.cost.terms import days_since
from planner.paths import catalog_dir

TODAY = date(2026, 11, 22)
LAUNCH = PricePoint(1_500.0, "2020-09", days_since("2020-09", TODAY), "the maker", seller="list price")


def _bought(number: int, usd: float, price_kind: str, day: str | None, **more: object) -> Purchase:
    fields = {"gpu": "rtx-3090", "gpu_count": 1, "includes": "card", "kind": "gpu"} | more
    return Purchase.model_validate(
        {
            "id": f"p{number}",
            "item": "a GPU",
            "price_usd": usd,
            "price_kind": price_kind,
            "price_date": day,
            "source": "shop",
        }
        | fields
    )


def _offer(number: int, usd: float, day: str | None, **more: object) -> Offer:
    fields = {"gpu": "rtx-3090", "gpu_count": 1, "on_demand_price_usd_per_hour": usd, "price_date": day}
    return Offer.model_validate(
        {"id": f"o{number}", "provider": f"cloud {number}", "instance": "x", "source": "list"} | fields | more
    )


def _prices(purchases: list[Purchase] | None = None, offers: list[Offer] | None = None) -> CardPrices:
    return card_prices("rtx-3090", LAUNCH, purchases or [], offers or [], TODAY)


def test_kinds_are_never_mixed_and_the_launch_price_is_a_list_price() -> None:
    prices = _prices(
        [
            _bought(1, 2_000, "street", "2026-10-01"),
            _bought(2, 700, "used", "2026-10-01"),
            _bought(3, 1_400, "msrp", "2026-01-05"),
            _bought(4, 900, "used", "2026-09-01"),
            _bought(5, 1_700, "partner", "2026-10-01"),
        ]
    )
    assert {kind: [point.price_usd for point in spread.points] for kind, spread in prices.bought.items()} == {
        "list": [1_400, 1_500],
        "partner": [1_700],
        "street": [2_000],
        "used": [700, 900],
    }
    assert prices.bought
    assert prices.bought["used"].low.price_usd == 700
    assert prices.bought["used"].high.price_usd == 900
    assert prices.bought["used"].median_usd == 800
    assert prices.bought["list"].latest.price_date == "2026-01-05"


def _told(spread: PriceSpread) -> list[list[tuple[str, float]]]:
    return [[(point.day, point.price_usd) for point in series] for series in spread.histories]


def test_a_history_is_the_lowest_price_of_each_day_of_one_seller() -> None:
    one = {"provider": "Cloud", "region": "eu"}
    offers = [
        _offer(1, 0.5, "2026-09-01", **one),
        _offer(2, 0.4, "2026-09-01", **one),
        _offer(3, 0.3, "2026-10-01", **one),
        _offer(4, 1, None, **one),
        _offer(5, 0.2, "2025-01-01", provider="Another", region="eu"),
    ]
    assert _told(_prices(offers=offers).rented["on-demand"]) == [[("2026-09-01", 0.4), ("2026-10-01", 0.3)]]


@pytest.mark.parametrize(
    "other", [{"provider": "Another"}, {"region": "us"}, {"gpu_count": 8}], ids=["seller", "region", "number of GPUs"]
)
def test_what_is_not_alike_has_no_history(other: dict[str, object]) -> None:
    one = {"provider": "Cloud", "region": "eu"}
    offers = [_offer(1, 0.5, "2026-09-01", **one), _offer(2, 4.0, "2026-10-01", **one | other)]
    spread = _prices(offers=offers).rented["on-demand"]
    assert spread.histories == ()
    assert [point.cards for point in spread.points] == [other.get("gpu_count", 1), 1]


def test_of_several_numbers_of_cards_the_lowest_has_the_history_and_the_latest_seller_comes_first() -> None:
    offers = [
        _offer(1, 1.0, "2025-01-01", provider="Early"),
        _offer(2, 1.1, "2025-02-01", provider="Early"),
        _offer(3, 16.0, "2026-01-01", provider="Late", gpu_count=8),
        _offer(4, 24.0, "2026-02-01", provider="Late", gpu_count=8),
        _offer(5, 4.0, "2026-01-01", provider="Late", gpu_count=2),
        _offer(6, 6.0, "2026-02-01", provider="Late", gpu_count=2),
    ]
    spread = _prices(offers=offers).rented["on-demand"]
    assert [(series[0].seller, series[0].cards) for series in spread.histories] == [("Late", 2), ("Early", 1)]


def test_bought_cards_have_a_history_of_list_prices_only() -> None:
    days = ("2026-09-01", "2026-10-01")
    purchases = [_bought(n, 900 + n, kind, day) for kind in ("list", "street", "used") for n, day in enumerate(days)]
    prices = _prices(purchases)
    assert _told(prices.bought["list"]) == [[("2020-09", 1_500), ("2026-09-01", 900), ("2026-10-01", 901)]]
    assert prices.bought["street"].histories == prices.bought["used"].histories == ()


def test_prices_are_counted_by_what_the_range_is_of() -> None:
    old, new, undated = _offer(1, 0.1, "2024-01-01"), _offer(2, 0.6, "2026-10-01"), _offer(3, 0.2, None)
    spread = _prices(offers=[old, new, undated]).rented["on-demand"]
    assert [[point.price_usd for point in part] for part in (spread.current, spread.older, spread.undated)] == [
        [0.6],
        [0.1],
        [0.2],
    ]
    assert (spread.low.price_usd, spread.high.price_usd, spread.median_usd) == (0.6, 0.6, 0.6)
    assert [point.price_usd for point in spread.by_seller] == [0.6]


@pytest.mark.parametrize(("day", "usd"), [("2024-01-01", 0.1), (None, 0.2)])
def test_older_prices_and_then_undated_ones_count_where_there_is_nothing_else(day: str | None, usd: float) -> None:
    offers = [_offer(1, 0.1, "2024-01-01")] * bool(day) + [_offer(2, 0.2, None)]
    spread = _prices(offers=offers).rented["on-demand"]
    assert spread.low.price_usd == spread.median_usd == usd
    assert spread.older == ()
    assert len(spread.current) == 1


def test_the_rtx_5090_has_board_partners_beside_its_list_price() -> None:
    cost = CostCatalog(catalog_dir())
    bought = card_prices("rtx-5090", None, cost.purchases, (), TODAY).bought
    assert bought["list"].high.price_usd == 1_999
    assert (bought["partner"].low.price_usd, bought["partner"].high.price_usd) == (3_059, 3_699)
    assert all("low-trust" in point.remarks[0] for point in bought["street"].points)


def test_what_is_doubtful_or_a_whole_server_is_kept_apart() -> None:
    prices = _prices(
        [
            _bought(1, 500, "used", "2026-10-01", gpu=None, candidates=("rtx-3090", "rtx-3090-ti")),
            _bought(2, 8_000, "street", "2026-10-01", kind="server", includes="server", gpu_count=4),
            _bought(3, 99, "street", None, gpu="rtx-4090"),
            _bought(4, 300, "street", "2026-10-01", doubt="of a bare chip"),
        ],
        [
            _offer(1, 0.2, "2026-10-01", gpu=None, candidates=("rtx-3090", "rtx-3090-ti")),
            _offer(2, 0.2, "2026-10-01", price_kind="from"),
            _offer(3, 0.2, "2026-10-01", incomplete="without the processor"),
            _offer(4, 0.2, "2026-10-01", billed_currency=None, notes=("of unknown currency",)),
        ],
    )
    assert list(prices.bought) == ["list"]
    assert prices.rented == {}
    assert len(prices.doubtful) == 6
    assert prices.doubtful[1].remarks == ("of a bare chip",)
    assert [point.price_usd for point in prices.servers] == [2_000]
    assert prices.servers[0].remarks == ("8,000 USD for 4 (a GPU)",)


def test_each_doubt_has_its_reason() -> None:
    doubtful = _offer(1, 0.2, None, price_kind="from", incomplete="without storage")
    assert doubtful.doubts == ("the lowest price of a marketplace, rarely available", "without storage")
    assert _offer(2, 0.2, None).doubts == ()


def test_medians_and_shares_of_cards_say_so() -> None:
    offers = [_offer(1, 0.4, "2026-10-01", price_kind="median"), _offer(2, 0.1, "2026-10-01", gpu_count=0.5)]
    points = {point.cards: point for point in _prices(offers=offers).rented["on-demand"].points}
    assert points[1].remarks == ("the median of a marketplace's offers",)
    assert (points[0.5].price_usd, points[0.5].remarks) == (0.2, ("only 0.5 of a GPU",))


def test_a_card_without_any_price() -> None:
    prices = card_prices("rtx-3090", None, [], [], TODAY)
    assert not prices.bought
    assert not prices.rented


@pytest.mark.parametrize(("day", "days"), [("2026-11-21", 1), ("2026-11", 21), ("2026", 325), (None, None)])
def test_ages_of_days_months_and_years(day: str | None, days: int | None) -> None:
    assert days_since(day, TODAY) == days


def test_a_machine_is_rented_as_a_whole_or_as_many_of_its_cards() -> None:
    offers = [
        _offer(1, 16.0, "2026-11-01", gpu_count=8),
        _offer(2, 2.5, "2026-11-01", gpu_count=1),
        _offer(3, 3.0, "2026-11-02", gpu_count=1, system="box"),
        _offer(4, 8.0, "2026-11-01", gpu_count=8, price_kind="from"),
        _offer(5, 9.0, "2026-11-01", gpu_count=8, gpu="rtx-4090"),
    ]
    (spread,) = rents_of_machine("rtx-3090", 8, "box", offers, TODAY).values()
    assert [(point.price_usd, point.seller) for point in spread.points] == [(24.0, "cloud 3"), (16.0, "cloud 1")]
    assert rents_of_machine("rtx-3090", 4, "other", offers, TODAY) == {}
