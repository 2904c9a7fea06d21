"""A whole refresh against a server on this machine: what is taken, what is held, what fails."""

from datetime import UTC, datetime
from functools import partial

import pytest
from price_samples import AWS_ROWS, archive, feed, feed_offer, offer, table
from price_server import PriceServer, send

from planner.cost.price_feeds import gpu_price_feed as price_feed
from planner.cost.price_feeds import gpuhunt
from planner.cost.price_feeds.download import Fetcher
from planner.cost.price_feeds.refresh import Refresh, accept_held_back_prices, discard_held_back_prices, find_doubts
from planner.cost.price_feeds.registry import PriceSource
from planner.cost.price_feeds.store import PriceStore, offers_in_use
from planner.errors import PriceError
from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir

HARDWARE = load_hardware(catalog_dir())
NOW = datetime(2026, 11, 2, 12, tzinfo=UTC)
BUNDLED = (offer(), offer(id="old", instance="p3", price_date="2023-10-01", on_demand_price_usd_per_hour=20.0))


class Prices:
    """A store, a server and the sources that lie on it."""

    def __init__(self, server: PriceServer, store: PriceStore) -> None:
        self.server, self.store = server, store
        self.fetcher = Fetcher(frozenset({server.host}), schemes=frozenset({"http"}), answer_seconds=0.5)
        self.aws = PriceSource(
            "aws", "gpuhunt: AWS", server.host, partial(gpuhunt.fetch_gpuhunt, key="aws", base=server.base)
        )
        self.feed = PriceSource(
            "feed", "the feed", server.host, partial(price_feed.fetch_price_feed, url=f"{server.base}/feed")
        )

    def serve_aws(self, *rows: str, day: str = "20261101") -> None:
        self.server.files["/aws/version"] = f"{day}-1".encode()
        self.server.files[f"/aws/{day}-1/catalog.zip"] = archive("aws.csv", table(*rows))

    def refresh(self, *sources: PriceSource, bundled=BUNDLED, **options):
        return Refresh(self.store, HARDWARE, bundled, NOW).run(self.fetcher, sources or (self.aws,), **options)

    def price(self, instance: str = "p5.48xlarge") -> float:
        in_use = offers_in_use(BUNDLED, self.store.read())
        return next(one.on_demand_price_usd_per_hour for one in in_use if one.instance == instance)


@pytest.fixture
def live(prices, tmp_path) -> Prices:
    return Prices(prices, PriceStore(tmp_path / "prices"))


def test_new_prices_come_into_use(live):
    live.serve_aws(*AWS_ROWS)
    asked = []
    (outcome,) = live.refresh(progress=lambda *step: asked.append(step))
    assert (outcome.provider, outcome.status, outcome.offers, outcome.refused) == ("AWS", "new", 2, ())
    assert asked == [(0, 1, "gpuhunt: AWS"), (1, 1, "")]
    stored = live.store.read()
    assert stored.snapshot.taken_at == "20261102T120000Z"
    found = {one.instance: one for one in stored.snapshot.parts[0].offers}
    # The bundled offer says which H100 this instance type has.
    assert found["p5.48xlarge"].gpu == "h100-sxm5-80gb"
    assert found["p5.48xlarge"].spot_price_usd_per_hour == 22.5
    assert found["g6e.xlarge"].gpu == "l40s"
    assert f"{live.server.base}/aws/20261101-1/catalog.zip" in found["g6e.xlarge"].source


def test_the_same_prices_again_are_unchanged(live):
    live.serve_aws(*AWS_ROWS)
    live.refresh()
    assert [outcome.status for outcome in live.refresh()] == ["unchanged"]


def test_a_price_that_moves_too_far_is_held_until_somebody_says_so(live):
    live.serve_aws(AWS_ROWS[0].replace("55.04", "98.32"))
    (outcome,) = live.refresh()
    assert outcome.status == "held"
    assert outcome.doubts == (
        "p5.48xlarge in us-east-1, on-demand: 55.04 → 98.32 USD per hour, 1.79 times the previous price",
    )
    assert live.price() == 55.04
    assert accept_held_back_prices(live.store) == ("AWS",)
    assert live.price() == 98.32
    assert live.store.read().held.parts == ()


def test_held_prices_can_be_thrown_away(live):
    live.serve_aws(AWS_ROWS[0].replace("55.04", "98.32"))
    live.refresh()
    assert discard_held_back_prices(live.store, ["AWS"]) == ("AWS",)
    assert live.price() == 55.04
    with pytest.raises(PriceError, match="AWS: has no held-back prices") as caught:
        accept_held_back_prices(live.store, ["AWS"])
    assert caught.value.hint == "No prices are held back."


def test_what_is_held_of_others_stays_held(live):
    live.serve_aws(AWS_ROWS[0].replace("55.04", "98.32"))
    live.refresh()
    live.server.files["/feed"] = feed(feed_offer())
    live.refresh(live.feed)
    assert [part.provider for part in live.store.read().held.parts] == ["AWS"]
    with pytest.raises(PriceError, match="Verda") as caught:
        discard_held_back_prices(live.store, ["Verda"])
    assert caught.value.hint == "Prices are held back for AWS."


def test_of_several_held_providers_only_the_named_one_is_accepted(live):
    live.server.files["/feed"] = feed(feed_offer())
    live.refresh(live.feed)
    live.server.files["/feed"] = feed(feed_offer(price_total_hr_usd=9.0))
    live.serve_aws(AWS_ROWS[0].replace("55.04", "98.32"))
    live.refresh(live.aws, live.feed)
    assert accept_held_back_prices(live.store, ["AWS"]) == ("AWS",)
    assert [part.provider for part in live.store.read().held.parts] == ["Verda"]


def test_the_most_implausible_price_is_named_first():
    machines = [(f"m{factor}", factor) for factor in (2, 9, 4)]
    before = [offer(instance=name, on_demand_price_usd_per_hour=1) for name, _ in machines]
    after = [offer(instance=name, on_demand_price_usd_per_hour=factor) for name, factor in machines]
    assert [doubt.split()[0] for doubt in find_doubts(before, after)] == ["m9", "m4", "m2"]


def test_believable_prices_replace_held_ones(live):
    live.serve_aws(AWS_ROWS[0].replace("55.04", "98.32"))
    live.refresh()
    live.serve_aws(AWS_ROWS[0], day="20261102")
    live.refresh()
    assert live.store.read().held.parts == ()


def test_old_bundled_prices_raise_no_doubt(live):
    live.serve_aws("p3,us-east-1,90.0,1,1,8,V100,16,False,,nvidia,,x86,{}")
    (outcome,) = live.refresh()
    assert outcome.status == "new"


def test_a_source_that_fails_leaves_the_others_and_the_last_prices(live):
    live.serve_aws(*AWS_ROWS)
    live.refresh()
    live.server.files["/aws/version"] = b"oops"
    live.server.files["/feed"] = feed(feed_offer())
    new, failed = live.refresh(live.aws, live.feed)
    assert (failed.provider, failed.status) == ("gpuhunt: AWS", "failed")
    assert "is not a date" in failed.error.message
    assert (new.provider, new.status) == ("Verda", "new")
    assert {part.provider for part in live.store.read().snapshot.parts} == {"AWS", "Verda"}


def test_when_everything_fails_nothing_is_written(live, tmp_path):
    (outcome,) = live.refresh()
    assert outcome.status == "failed"
    assert list((tmp_path / "prices").glob("snapshot-*")) == []


def test_of_two_sources_the_newer_prices_count(live):
    live.server.files["/feed"] = feed(feed_offer())
    newer = feed(feed_offer(price_total_hr_usd=3.5), collected_at="2026-10-23T07:00:36+00:00")
    live.server.files["/newer"] = newer
    other = PriceSource(
        "newer", "newer", live.server.host, partial(price_feed.fetch_price_feed, url=f"{live.server.base}/newer")
    )
    for order in ((live.feed, other), (other, live.feed)):
        assert [outcome.source for outcome in live.refresh(*order)] == ["newer"]
    assert [outcome.source for outcome in live.refresh(live.feed, live.feed)] == ["the feed"]


def test_prices_of_tomorrow_are_refused(live):
    live.serve_aws(*AWS_ROWS, day="20261201")
    (outcome,) = live.refresh()
    assert outcome.status == "failed"
    assert "in the future" in outcome.error.message


def test_refused_rows_are_told_with_their_provider(live):
    live.server.files["/feed"] = feed(
        feed_offer(),
        feed_offer(gpu_recognised=False, gpu_model_raw="Riva 128"),
        feed_offer(provider="vultr", gpu_recognised=False, gpu_model_raw="Voodoo 2"),
        feed_offer(provider="vultr"),
    )
    found = {outcome.provider: outcome for outcome in live.refresh(live.feed)}
    assert [row.name for row in found["Verda"].refused] == ["Verda Riva 128"]
    assert [row.name for row in found["Vultr"].refused] == ["Vultr Voodoo 2"]


def test_a_list_without_any_use_is_a_failure(live):
    live.serve_aws(AWS_ROWS[3])
    (outcome,) = live.refresh()
    assert "contains no usable offer" in outcome.error.message


def test_a_server_that_misbehaves_costs_nothing(live):
    live.serve_aws(*AWS_ROWS)
    live.refresh()
    for answer in (lambda handler: send(handler, b"", 500), b"<html>", b"PK\x03\x04"):
        live.server.files["/aws/20261101-1/catalog.zip"] = answer
        (outcome,) = live.refresh()
        assert outcome.status == "failed"
        assert live.price("g6e.xlarge") == 1.861
