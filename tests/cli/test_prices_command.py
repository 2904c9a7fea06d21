"""`gpu-planner prices` as a person and a script use it."""

import csv
import io
import json

import pytest

from planner.cli.main import main
from planner.cost.price_feeds.store import PriceSnapshot, PriceStore, ProviderPrices
from planner.cost.renting.offer import Offer


@pytest.fixture
def home(tmp_path, monkeypatch):
    """Return the folder of prices of a person who has none yet."""
    monkeypatch.setenv("GPU_PLANNER_HOME", str(tmp_path))
    return tmp_path / "prices"


@pytest.fixture
def said(home, capsys):
    """Return a way to run the command and read what it printed."""

    def run(*words, code=0):
        assert main(["prices", *words]) == code
        printed = capsys.readouterr()
        return printed.err if code else printed.out

    return run


def mine(**changes) -> dict:
    return {
        "id": "my-rack",
        "provider": "My lab",
        "instance": "rack 1",
        "gpu": "rtx-4090",
        "gpu_count": 4,
        "on_demand_price_usd_per_hour": 1.0,
        "price_date": "2026-11-01",
        "source": "an invoice",
        **changes,
    }


def held(price: float = 98.32) -> PriceSnapshot:
    offer = Offer.model_validate(mine(id="fetched", provider="AWS", on_demand_price_usd_per_hour=price))
    part = ProviderPrices(
        provider="AWS",
        source="a list",
        url="https://example.org",
        fetched_at="2026-11-01T00:00:00+00:00",
        bytes=1,
        sha256="0" * 64,
        offers=(offer,),
    )
    return PriceSnapshot(taken_at="20261101T000000Z", parts=(part,))


def test_words_and_cards_find_offers_the_cheapest_first(said):
    records = json.loads(said("--gpu", "h100-sxm", "--json"))
    assert records
    assert all("h100-sxm5-80gb" in (record["gpu"], *record["candidates"]) for record in records)
    prices = [record["on_demand_price_usd_per_hour"] for record in records]
    each = [price / record["gpu_count"] for price, record in zip(prices, records, strict=True) if price]
    assert each == sorted(each)
    assert "RunPod" in said("runpod", "--limit", "3")
    assert "AWS" not in said("runpod", "h100")


def test_every_listed_record_reads_back(said):
    for record in json.loads(said("--json", "--history")):
        assert Offer.model_validate(record).price_date == record["price_date"]


def test_history_is_listed_on_request_only(said):
    usual, all_of_them = (json.loads(said("--json", *words)) for words in ((), ("--history",)))
    assert len(usual) < len(all_of_them)
    assert not any((record["price_date"] or "9") < "2025-01-01" for record in usual)
    assert "day old" in said("aws", "--limit", "2") or "days old" in said("aws", "--limit", "2")


def test_sorting_both_ways_puts_what_is_not_known_last(said):
    for field in ("spot", "-spot", "age", "-gpus"):
        assert said("--sort", field, "--limit", "3")
    spots = [record["spot_price_usd_per_hour"] for record in json.loads(said("--json", "--sort", "-spot"))]
    known = [price for price in spots if price is not None]
    assert spots[: len(known)] == known


def test_csv_has_date_and_source_of_every_price(said):
    rows = list(csv.DictReader(io.StringIO(said("nebius", "--csv"))))
    assert rows
    assert all(row["source"] and row["price_date"] for row in rows)


def test_nothing_found_is_no_error(said):
    assert "--history includes" in said("xyzzy")
    assert json.loads(said("xyzzy", "--json")) == []


def test_own_offers_come_and_go(said, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([mine()]))
    assert "my-rack" in said("--add", str(path))
    assert said("--add", str(path))
    assert "My lab" in said("my", "lab")
    assert "your own: my-rack" in said("--state")
    assert "Removed my-rack" in said("--remove", "my-rack")
    assert "your own" not in said("--state")


def test_held_prices_are_named_accepted_or_thrown_away(said, home):
    PriceStore(home).hold(held())
    assert "Prices held until you accept or discard them: AWS" in said("--limit", "1")
    assert "held until you accept or discard them: AWS: 1 offer" in said("--state")
    assert said("--accept") == "Now in use: AWS.\n"
    assert "Fetched prices are in use" in said("--state")
    assert said("--accept") == "No prices are held back.\n"
    PriceStore(home).hold(held())
    assert said("--discard", "AWS") == "Discarded: AWS.\n"
    assert "has no held-back prices" in said("--discard", "GCP", code=2)


def test_back_to_bundled_and_forth(said, home):
    PriceStore(home).take(held(4.0))
    assert "rack 1" in said("rack")
    said("--bundled")
    assert "rack 1" not in said("rack")
    assert "as you chose" in said("--state")
    said("--fetched")
    assert "rack 1" in said("rack")


def test_a_damaged_file_is_passed_over_and_named(said, home):
    PriceStore(home).take(held(4.0))
    next(home.glob("snapshot-*")).write_text("{")
    assert "Skipped" in said("h100", "--limit", "1")
    assert "skipped" in said("--state")


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--gpu", "GTX 9999"], "no accelerator is called 'GTX 9999'", "gpus WORDS"),
        (["--sort", "colour"], "--sort: unknown field 'colour'", "Fields: provider"),
        (["--limit", "0"], "--limit: '0' is too small", ""),
        (["--limit", "x"], "--limit: 'x' is not a whole number", "--help"),
        (["--refresh", "nowhere"], "--refresh: unknown source 'nowhere'", "Sources: aws"),
        (["--remove", "x"], "--remove: you have no offer of your own called 'x'", ""),
        (["--add", "/none.json"], "/none.json: cannot be read", "Check the path"),
        (["--accept", "AWS"], "AWS: has no held-back prices", "No prices are held"),
        (["--bundled", "--fetched"], "not allowed with", "--help"),
    ],
)
def test_wrong_input_is_told_with_what_to_do(said, words, message, hint):
    printed = said(*words, code=2)
    assert message in printed
    assert hint in printed


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"on_demand_price_usd_per_hour": 0.0}, "is not between"),
        ({"on_demand_price_usd_per_hour": -1.0}, "is not between"),
        ({"on_demand_price_usd_per_hour": 5_000.0}, "is not between"),
        ({"billed_currency": "ZZZ"}, "billed_currency"),
        ({"gpu": None}, "needs "),
    ],
)
def test_own_offers_that_cannot_be_are_refused(said, tmp_path, changes, reason):
    path = tmp_path / "mine.json"
    path.write_text(json.dumps([mine(**changes)]))
    printed = said("--add", str(path), code=2)
    assert reason in printed
    assert str(path) in printed


def test_without_a_network_everything_stays_as_it_is(said, home, monkeypatch):
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    assert "cannot be reached" in said("--refresh", "aws", code=3)
    assert "no prices could be fetched" in said("--refresh", "aws", "gcp", code=3)
    assert not list(home.glob("snapshot-*"))


def test_help_names_every_source(said):
    printed = said("--help")
    assert "gpuhunt: AWS" in printed
    assert "gpu-price-feed" in printed


@pytest.mark.parametrize("width", [80, 100, 120])
def test_a_narrow_terminal_keeps_names_of_gpus_together(said, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    lines = said("--gpu", "h100-sxm").splitlines()
    rows = lines[2 : next(at for at, line in enumerate(lines) if line.startswith("Left out in this width: "))]
    offers = int(lines[-1].split()[0])
    assert max(map(len, lines)) <= width
    assert len(rows) <= 2 * offers + 2
    assert "Reserved 3 y" in lines[-3]
    assert "Reserved 3 y" not in said("--gpu", "h100-sxm", "--sort", "reserved-3y").splitlines()[-3]
