"""What two sources publish, read row by row; and what is wrong with it, told."""

import pytest
from price_samples import feed, feed_offer
from price_server import PriceServer

from planner.cost.price_feeds.download import Fetcher
from planner.cost.price_feeds.gpu_price_feed import fetch_price_feed, read_feed
from planner.cost.price_feeds.offers import Listing, RejectedRow
from planner.errors import PriceError

HTTP = frozenset({"http"})


def fetcher(prices: PriceServer) -> Fetcher:
    return Fetcher(frozenset({prices.host}), schemes=HTTP)


def test_the_feed_keeps_form_currency_and_cloud(prices):
    prices.files["/prices.json"] = feed(
        feed_offer(),
        feed_offer(provider="runpod", notes="secure cloud; stock Low", gpu_model_raw="NVIDIA H100 80GB HBM3"),
        feed_offer(provider="runpod", notes="community cloud, interruptible", pricing_type="spot"),
        feed_offer(provider="scaleway", currency="EUR", price_total_hr=3.0, price_total_hr_usd=3.51),
        feed_offer(gpu_form_source="single-form-part", gpu_family="L40S", gpu_form="PCIe", vram_gb=48),
        feed_offer(gpu_recognised=False, gpu_model_raw="Something new", vram_gb=None, vcpu=None),
    )
    _, rows = fetch_price_feed(fetcher(prices), f"{prices.base}/prices.json")
    assert [row.provider for row in rows] == [
        "Verda", "RunPod Secure", "RunPod Community", "Scaleway", "Verda", "Verda"
    ]  # fmt: skip
    assert [row.card for row in rows] == ["H100 SXM", "H100 SXM", "H100 SXM", "H100 SXM", "L40S", "Something new"]
    assert {row.date for row in rows} == {"2026-08-23"}
    assert rows[2].is_spot
    euros = rows[3]
    assert (euros.billed_currency, euros.usd_per_billed) == ("EUR", 1.1699)
    assert (euros.rate_date, euros.price_usd_per_hour) == ("2026-08-21", 3.51)
    assert (rows[0].vcpus, rows[0].ram_gb, rows[0].storage_gb) == (30, 120, 237)
    assert rows[5].card_memory_gb is rows[5].vcpus is None


@pytest.mark.parametrize(
    "changes", [{"pricing_type": "reserved-12mo"}, {"gpu_partition": "1g.24gb"}, {"price_per_gpu_hr": None}]
)
def test_commitments_and_shares_of_a_card_are_left_out(changes):
    assert list(read_feed(feed(feed_offer(**changes)))) == []


@pytest.mark.parametrize(
    ("offer", "reason"),
    [
        (feed_offer(provider="somebody"), "is unknown"),
        (feed_offer(price_total_hr_usd=None), "is invalid"),
        (feed_offer(currency="GBP"), "is invalid"),
        ({"provider": "vastai"}, "is invalid"),
        (None, "is invalid"),
        ("text", "is invalid"),
    ],
)
def test_an_offer_without_sense_is_named_and_the_others_stay(offer, reason):
    found = list(read_feed(feed(offer, feed_offer())))
    assert isinstance(found[0], RejectedRow)
    assert reason in found[0].reason
    assert isinstance(found[1], Listing)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<html>",
        b"[]",
        b"null",
        b'{"offers": []}',
        feed()[:-20],
        feed(collected_at="yesterday"),
        feed(offers={}),
        feed(fx=[1]),
        b"[" * 100_000,
    ],
)
def test_a_file_of_another_form_is_refused(content):
    reason = "gpu-price-feed: the file (has an unknown structure|is not JSON|is nested too deep)"
    with pytest.raises(PriceError, match=reason) as refused:
        list(read_feed(content))
    assert "prices in use stay" in refused.value.hint
