"""From listings to offers: cards named, prices put together, mistakes refused."""

import pytest
from price_samples import offer

from planner.cost.price_feeds.offers import CardMatcher, Listing, RejectedRow, merge_listings
from planner.cost.price_feeds.refresh import find_doubts
from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir

HARDWARE = load_hardware(catalog_dir())


def listing(**changes: object) -> Listing:
    values = {
        "provider": "AWS",
        "instance": "p5.48xlarge",
        "card": "H100 SXM",
        "card_memory_gb": 80.0,
        "count": 8,
        "region": "us-east-1",
        "price_usd_per_hour": 55.04,
        "is_spot": False,
        "date": "2026-11-01",
    }
    return Listing(**{**values, **changes})


def made(*rows: Listing | RejectedRow, known: dict | None = None):
    return merge_listings(rows, CardMatcher(HARDWARE, known or {}), "a list")


@pytest.mark.parametrize(
    ("card", "memory", "gpu"),
    [
        ("H100 SXM", 80.0, "h100-sxm5-80gb"),
        ("H100 NVL", 94.0, "h100-nvl-94gb"),
        ("A100 SXM", 40.0, "a100-sxm4-40gb"),
        ("A100 SXM", 80.0, "a100-sxm4-80gb"),
        ("RTX4090", 24.0, "rtx-4090"),
        ("RTX6000 Ada", 48.0, "rtx-6000-ada"),
        ("L40S", None, "l40s"),
        ("L40S", 45.0, "l40s"),
        ("MI300X", 192.0, "instinct-mi300x"),
        ("MI308X", 192.0, "instinct-mi308x"),
        ("Gaudi", 32.0, "gaudi1"),
        ("A800 SXM", 40.0, "a800-sxm4-40gb"),
    ],
)
def test_a_card_is_named_by_its_spelling_and_memory(card, memory, gpu):
    found = CardMatcher(HARDWARE, {}).match(listing(instance="x", card=card, card_memory_gb=memory))
    assert found.gpu == gpu


@pytest.mark.parametrize(("count", "cards"), [(1, 0.25), (4, 1), (16, 4)])
def test_devices_of_a_card_that_are_listed_singly_are_parts_of_the_card(count, cards):
    row = listing(instance="vcg-a16", card="A16", card_memory_gb=16.0, count=count, price_usd_per_hour=0.47 * count)
    (offer_of_devices,), refused = made(row)
    assert not refused
    assert (offer_of_devices.gpu, offer_of_devices.gpu_count) == ("a16", cards)


def test_a_memory_size_that_neither_the_card_nor_a_device_of_it_has_is_refused():
    offers, (refused,) = made(listing(card="A16", card_memory_gb=24.0))
    assert not offers
    assert "no GPU called 'A16' with 24 GB" in refused.reason


def test_what_cannot_be_told_apart_has_candidates():
    found = CardMatcher(HARDWARE, {}).match(listing(card="A100", card_memory_gb=80.0))
    assert found.gpu is None
    assert {"a100-sxm4-80gb", "a100-pcie-80gb"} <= set(found.candidates)
    assert not any("40gb" in gpu for gpu in found.candidates)


def test_a_known_instance_type_names_its_card():
    matcher = CardMatcher(HARDWARE, {("AWS", "p5.48xlarge"): "h100-sxm5-80gb"})
    assert matcher.match(listing(card="H100")).gpu == "h100-sxm5-80gb"
    assert matcher.match(listing(card="H200", card_memory_gb=141.0)).gpu != "h100-sxm5-80gb"


def test_prices_of_one_machine_become_one_offer():
    offers, refused = made(listing(), listing(is_spot=True, price_usd_per_hour=22.5, date="2026-10-31"))
    assert refused == []
    assert [dict(one.prices) for one in offers] == [{"on-demand": 55.04, "spot": 22.5}]
    assert (offers[0].price_date, offers[0].source, offers[0].gpu) == ("2026-10-31", "a list", "h100-sxm5-80gb")
    assert offers[0].id == "fetched-aws-p5.48xlarge-us-east-1-8x"


def test_a_marketplace_has_the_middle_of_its_listings():
    offers, _ = made(*(listing(provider="Vast.ai", price_usd_per_hour=price) for price in (16.0, 40.0, 20.0)))
    assert offers[0].on_demand_price_usd_per_hour == 20.0
    assert offers[0].notes == ("the median of 3 listings, 16 – 40 USD per hour",)


def test_a_note_of_the_source_stays():
    offers, _ = made(listing(note="secure cloud"), listing(note="interruptible", is_spot=True))
    assert offers[0].notes == ("secure cloud", "spot: interruptible")


def test_another_currency_keeps_its_rate_and_day():
    offers, _ = made(listing(billed_currency="EUR", usd_per_billed=1.17, rate_date="2026-10-30"))
    assert offers[0].billed_currency == "EUR"
    assert offers[0].exchange_rate.usd_per_unit == 1.17
    assert offers[0].exchange_rate.date == "2026-10-30"


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"price_usd_per_hour": 0.0}, "is not between"),
        ({"price_usd_per_hour": 0.08}, "is not between"),
        ({"price_usd_per_hour": 8_000.0}, "is not between"),
        ({"price_usd_per_hour": float("nan")}, "is not between"),
        ({"price_usd_per_hour": -3.0}, "is not between"),
        ({"count": 500}, "must be at most 72"),
        ({"count": -1}, "must be more than 0"),
        ({"card": "Riva 128"}, "has no GPU called 'Riva 128' with 80 GB"),
        ({"card": "H100 SXM", "card_memory_gb": 7.0}, "has no GPU called"),
        ({"card": "", "card_memory_gb": None}, "has no GPU called ''"),
        ({"date": "soon"}, "price_date"),
        ({"billed_currency": "XXX"}, "billed_currency"),
    ],
)
def test_what_cannot_be_is_refused_and_named(changes, reason):
    offers, refused = made(listing(**changes))
    assert offers == []
    assert refused[0].name == "AWS p5.48xlarge us-east-1"
    assert reason in refused[0].reason


def test_spot_above_on_demand_is_refused():
    _, refused = made(listing(), listing(is_spot=True, price_usd_per_hour=60.0))
    assert "above the on-demand price" in refused[0].reason


def test_what_was_refused_before_stays_refused():
    assert made(RejectedRow("x", "y"))[1] == [RejectedRow("x", "y")]


def test_names_that_differ_only_in_signs_are_one_offer():
    offers, refused = made(listing(region="us east"), listing(region="us-east"))
    assert len(offers) == len(refused) == 1


def priced(*prices: float, provider: str = "AWS"):
    return [
        offer(id=f"o{at}", instance=f"i{at}", provider=provider, on_demand_price_usd_per_hour=price)
        for at, price in enumerate(prices)
    ]


def test_prices_that_stay_raise_no_doubt():
    assert find_doubts(priced(10, 20, 30), priced(11, 19, 33)) == ()
    assert find_doubts([], priced(10)) == ()


def test_a_price_that_moves_too_far_is_doubtful():
    assert find_doubts(priced(10, 20), priced(16, 20)) == (
        "i0 in us-east-1, on-demand: 10 → 16 USD per hour, 1.60 times the previous price",
    )
    assert len(find_doubts(priced(10, 20), priced(10, 9))) == 1
    # A marketplace may move further.
    assert find_doubts(priced(10, 20, provider="Vast.ai"), priced(30, 9, provider="Vast.ai")) == ()
    assert find_doubts(priced(10, provider="Vast.ai"), priced(60, provider="Vast.ai"))


def test_only_the_worst_are_named():
    found = find_doubts(priced(*[10] * 9), priced(*[30] * 9))
    assert len(found) == 7
    assert found[-2:] == ("4 more prices changed by implausible factors", "the median change of all prices is +200%")


def test_offers_that_vanish_are_doubtful():
    assert find_doubts(priced(*[10] * 10), priced(*[10] * 7)) == ("7 offers instead of 10",)
    assert find_doubts(priced(*[10] * 5), priced(10)) == ("1 offers instead of 5",)
    assert find_doubts(priced(*[10] * 4), priced(10)) == ()


def test_all_prices_at_once_are_doubtful():
    assert find_doubts(priced(*[10] * 5), priced(*[13] * 5)) == ("the median change of all prices is +30%",)


def test_the_newest_of_several_old_prices_counts():
    old = [
        offer(id="a", price_date="2026-10-10"),
        offer(id="b", price_date="2025-12-10", on_demand_price_usd_per_hour=98.3),
    ]
    assert find_doubts(old, [offer()]) == ()
