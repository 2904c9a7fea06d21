"""Fetched prices on the disk: kept, replaced, damaged, taken back."""

import pytest
from price_samples import offer

from planner.cost.price_feeds.store import (
    PriceChoice,
    PriceSnapshot,
    PriceStore,
    ProviderPrices,
    StoredPrices,
    offers_in_use,
    read_offers,
)
from planner.errors import PriceError, SpecError


def part(provider: str = "AWS", price: float = 50.0, **changes: object) -> ProviderPrices:
    return ProviderPrices(
        provider=provider,
        source="a source",
        url="https://example.org",
        fetched_at="2026-11-01T00:00:00+00:00",
        bytes=10,
        sha256="0" * 64,
        offers=(offer(id="fetched", provider=provider, on_demand_price_usd_per_hour=price, **changes),),
    )


def snapshot(day: int = 1, *parts: ProviderPrices) -> PriceSnapshot:
    return PriceSnapshot(taken_at=f"202611{day:02}T000000Z", parts=parts or (part(),))


@pytest.fixture
def store(tmp_path) -> PriceStore:
    return PriceStore(tmp_path / "prices")


def test_an_empty_folder_holds_nothing(store):
    stored = store.read()
    assert stored.snapshot.parts == stored.held.parts == stored.own == stored.problems == ()
    assert not stored.use_bundled


def test_the_newest_of_three_is_used(store, tmp_path):
    for day in range(1, 6):
        store.take(snapshot(day, part(price=50.0 + day)))
    assert store.read().snapshot == snapshot(5, part(price=55.0))
    assert len(list((tmp_path / "prices").glob("snapshot-*"))) == 3


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema_version": 2}', b"\xff\xfe"])
def test_a_damaged_snapshot_is_passed_over_and_named(store, tmp_path, content):
    store.take(snapshot(1))
    store.take(snapshot(2))
    newest = tmp_path / "prices" / "snapshot-20261102T000000Z.json"
    newest.write_bytes(content)
    stored = store.read()
    assert stored.snapshot == snapshot(1)
    assert str(newest) in stored.problems[0].message
    assert "update prices" in stored.problems[0].hint


def test_a_snapshot_that_was_cut_off_is_passed_over(store, tmp_path):
    store.take(snapshot(1))
    whole = (tmp_path / "prices" / "snapshot-20261101T000000Z.json").read_bytes()
    (tmp_path / "prices" / "snapshot-20261102T000000Z.json").write_bytes(whole[: len(whole) // 2])
    assert store.read().snapshot == snapshot(1)


def test_a_folder_in_the_place_of_a_file_is_named(store, tmp_path):
    (tmp_path / "prices" / "own.json").mkdir(parents=True)
    assert "is a folder" in store.read().problems[0].message


def test_bundled_prices_come_back_by_choice_and_go_again(store):
    bundled = (offer(),)
    store.take(snapshot(1))
    assert [one.id for one in offers_in_use(bundled, store.read())] == ["fetched"]
    store.use_bundled(chosen=True)
    assert offers_in_use(bundled, store.read()) == bundled
    store.use_bundled(chosen=False)
    assert [one.id for one in offers_in_use(bundled, store.read())] == ["fetched"]
    store.use_bundled(chosen=True)
    store.take(snapshot(2))
    assert not store.read().use_bundled


def test_only_the_same_machine_is_replaced():
    others = (
        offer(id="other-region", region="us-west-2"),
        offer(id="other-size", gpu_count=4),
        offer(id="other-provider", provider="GCP"),
    )
    state = StoredPrices(snapshot(1), PriceSnapshot(taken_at="00000000T000000Z"), (), use_bundled=False, problems=())
    assert [one.id for one in offers_in_use((offer(), *others), state)] == [
        "fetched",
        "other-region",
        "other-size",
        "other-provider",
    ]


def test_bundled_commitments_stay_with_their_date(store):
    store.take(snapshot(1))
    bundled = (offer(reserved_1y_price_usd_per_hour=40.0, spot_price_usd_per_hour=20.0),)
    fetched, kept = offers_in_use(bundled, store.read())
    assert dict(fetched.prices) == {"on-demand": 50.0}
    assert dict(kept.prices) == {"reserved-1y": 40.0}
    assert kept.price_date == "2026-10-10"


def test_own_offers_come_first_and_stay_through_a_refresh(store):
    own = offer(id="mine", own=True)
    store.set_own([own])
    store.take(snapshot(1))
    assert offers_in_use((), store.read())[0] == own


def test_held_prices_wait_and_go(store):
    store.hold(snapshot(1))
    assert store.read().held == snapshot(1)
    store.hold(PriceSnapshot(taken_at="20261102T000000Z"))
    assert store.read().held.parts == ()
    store.hold(PriceSnapshot(taken_at="20261102T000000Z"))


def test_a_folder_that_cannot_be_written_to_is_named(tmp_path):
    (tmp_path / "prices").write_text("a file")
    with pytest.raises(PriceError, match="cannot be written"):
        PriceStore(tmp_path / "prices").take(snapshot(1))


def test_providers_keep_their_date_when_others_are_fetched_again():
    first = snapshot(1, part("AWS", 50.0), part("GCP", 60.0))
    second = first.with_parts((part("AWS", 55.0),), "20261102T000000Z")
    assert [(one.provider, one.offers[0].on_demand_price_usd_per_hour) for one in second.parts] == [
        ("AWS", 55.0),
        ("GCP", 60.0),
    ]
    assert second.part("GCP") == first.part("GCP")
    assert second.part("OCI") is None


def test_offers_of_a_file_of_ones_own(tmp_path):
    path = tmp_path / "own.json"
    path.write_text(f"[{offer().model_dump_json()}]")
    assert read_offers(path) == (offer(own=True),)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("[{}]", "0.id: is missing"),
        (f"[{offer().model_dump_json()}"[:-5], "JSON"),
        (f"[{offer().model_dump_json()}]".replace("55.04", "-55.04"), "is not between"),
        (f"[{offer().model_dump_json()}]".replace("55.04", "0.0"), "is not between"),
        (f"[{offer().model_dump_json()}]".replace('"USD"', '"ZZZ"'), "billed_currency"),
    ],
)
def test_a_file_of_ones_own_that_is_wrong_names_file_and_field(tmp_path, content, reason):
    path = tmp_path / "own.json"
    path.write_text(content)
    with pytest.raises(PriceError, match=reason) as caught:
        read_offers(path)
    assert str(path) in caught.value.message


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(PriceError, match="cannot be read"):
        read_offers(tmp_path / "none.json")


def test_a_folder_that_cannot_be_searched_is_named(tmp_path):
    read = PriceStore(tmp_path / ("a" * 300)).read()
    assert read.own == ()
    assert all("File name too long" in str(problem) for problem in read.problems)
    assert read.problems


def test_a_short_source_and_an_empty_file_can_be_kept():
    assert part().evolve(source="abc", bytes=0).bytes == 0
    with pytest.raises(SpecError, match="source"):
        part().evolve(source="ab")
    assert PriceChoice() == PriceChoice(use_bundled=False)
