"""Every offer, purchase, region and constant of the catalog: complete, sourced, dated and plausible."""

from collections import Counter

import pytest
from each_record import for_each

from planner.cost.catalog import CostCatalog
from planner.cost.figure import Constant, Figure
from planner.cost.owning.costs import Ownership
from planner.cost.owning.purchase import Purchase
from planner.cost.renting.offer import Offer
from planner.hardware.catalog import load_hardware
from planner.paths import catalog_dir

pytestmark = pytest.mark.sweep

COST = CostCatalog(catalog_dir())
HARDWARE = load_hardware(catalog_dir())
GPUS = {gpu.id: gpu for gpu in HARDWARE.gpus}
SYSTEMS = {system.id for system in HARDWARE.systems}
COLLECTED = "2026-11-21"
SOURCES_WITHOUT_A_DAY = ("Crusoe",)


def test_the_catalog_holds_everything_that_was_collected() -> None:
    assert len(COST.offers) == 611
    assert len({offer.provider for offer in COST.offers}) == 37
    assert len(COST.purchases) == 117
    assert Counter(record.level for record in COST.energy) == {
        "country": 83,
        "group": 8,
        "state": 47,
        "cloud-region": 40,
    }
    assert len(COST.constants) == 87


@for_each("offer", COST.offers)
def test_offer_is_sourced_dated_and_plausible(offer: Offer) -> None:
    assert offer.source.strip()
    assert offer.cards
    assert all(card in GPUS for card in offer.cards)
    assert offer.system is None or offer.system in SYSTEMS
    assert "2023-01-01" <= (offer.price_date or COLLECTED) <= COLLECTED
    prices = dict(offer.prices)
    assert prices
    for mode in ("reserved-1y", "reserved-3y"):
        assert prices.get(mode, 0.0) <= prices.get("on-demand", 1e9)
    assert offer.price_date or offer.provider in SOURCES_WITHOUT_A_DAY
    if offer.gpu_memory_gb and offer.gpu_count >= 1 and offer.gpu != "b300-sxm-288gb":  # has 288 GB, 270 are enabled
        assert {GPUS[card].memory_label for card in offer.cards} == {f"{offer.gpu_memory_gb:g} GB"} or offer.ambiguous
    assert offer.sample_size is None or offer.price_kind == "median"


def test_offers_whose_card_is_not_stated_name_all_it_may_be() -> None:
    ambiguous = [offer for offer in COST.offers if offer.ambiguous]
    assert len(ambiguous) == 123
    assert all(len(offer.candidates) >= 2 for offer in ambiguous)
    assert all(len({GPUS[card].vendor for card in offer.candidates}) == 1 for offer in ambiguous)


def test_undated_offers_stay_undated() -> None:
    assert Counter(offer.provider for offer in COST.offers if offer.price_date is None) == {"Crusoe": 8}


def test_other_currencies_keep_their_rate_and_its_date() -> None:
    foreign = [offer for offer in COST.offers if offer.billed_currency != "USD"]
    assert Counter(offer.billed_currency for offer in foreign) == {"EUR": 19, None: 1}
    for offer in foreign:
        if offer.exchange_rate:
            assert (offer.exchange_rate.usd_per_unit, offer.exchange_rate.date) == (1.1699, "2026-08-21")
        else:
            assert offer.provider == "Seeweb"


def test_odd_prices_say_that_they_were_checked() -> None:
    checked = [offer for offer in COST.offers if any(note.startswith("checked ") for note in offer.notes)]
    assert len(checked) > 50
    (sao_paulo,) = (
        offer for offer in COST.offers if offer.instance == "p6-b300.48xlarge" and offer.region == "sa-east-1"
    )
    assert any("times the median" in note for note in sao_paulo.notes)


def test_prices_that_leave_something_out_say_so() -> None:
    incomplete = Counter(offer.provider for offer in COST.offers if offer.incomplete)
    assert set(incomplete) == {"AWS", "Hikube", "Modal", "Nebius", "Paperspace", "Replicate"}
    assert incomplete["Hikube"] == 6


def test_prices_of_marketplaces_are_told_apart() -> None:
    assert Counter(offer.price_kind for offer in COST.offers) == {"list": 569, "from": 31, "median": 11}


@for_each("purchase", COST.purchases)
def test_purchase_is_sourced_dated_and_plausible(purchase: Purchase) -> None:
    assert purchase.source.strip()
    cards = (purchase.gpu,) if purchase.gpu else purchase.candidates
    assert all(card in GPUS for card in cards)
    assert "2016-01-01" <= (purchase.price_date or COLLECTED) <= COLLECTED
    if purchase.gpu_count:
        assert 300 <= purchase.price_usd / purchase.gpu_count <= 110_000


def _is_before(day: str, released: str) -> bool:
    digits = min(len(day), len(released))
    return day[:digits] < released[:digits]


@for_each("record", [*COST.offers, *COST.purchases])
def test_no_price_is_older_than_its_card(record: Offer | Purchase) -> None:
    """One that is says that it was checked."""
    cards = record.cards if isinstance(record, Offer) else (record.gpu,) if record.gpu else record.candidates
    released = [day for card in cards if (day := GPUS[card].released)]
    if record.price_date and any(_is_before(record.price_date, day) for day in released):
        assert any(note.startswith("checked ") for note in record.notes)


def test_a_price_of_a_94_gb_card_is_of_the_nvl() -> None:
    (purchase,) = (each for each in COST.purchases if each.gpu == "h100-nvl-94gb" and each.kind == "gpu")
    assert purchase.price_usd == 35_098.15


@for_each("constant", COST.constants)
def test_constant_is_sourced(constant: Constant) -> None:
    assert constant.figure.source == constant.source
    assert constant.figure.date == constant.date
    assert constant.value >= 0


def test_constants_stand_in_order() -> None:
    values = {constant.id: constant.value for constant in COST.constants}
    for year in range(1, 6):
        assert values[f"residual-h100-after-{year}-yr-low"] < values[f"residual-h100-after-{year}-yr-high"]
    assert sum(value for name, value in values.items() if name.startswith("macrs")) == pytest.approx(1)
    assert all(1 <= value <= 1.6 for name, value in values.items() if name.startswith("pue"))


@pytest.mark.parametrize("place", COST.ownerships, ids=lambda place: place.id)
def test_each_figure_of_a_place_is_sourced(place: Ownership) -> None:
    figures = {name: getattr(place, name) for name in type(place).model_fields}
    found = [figure for figure in figures.values() if isinstance(figure, Figure)]
    assert len(found) == 17
    for figure in found:
        assert len(figure.source) > 10
        assert figure.date or figure.certainty == "assumed"


def test_figures_of_places_are_those_of_the_constants() -> None:
    values = {constant.id: constant.value for constant in COST.constants}
    lab, colocation = COST.ownership("lab"), COST.ownership("colocation")
    assert lab.host_factor.value == values["server-cost-factor-other"]
    assert lab.network_share.value == values["interconnect-share-cluster-network"]
    assert lab.server_power_factor.value == values["server-power-factor-other-gpu"]
    assert lab.active_power_fraction.value == values["training-power-fraction-gpu-server"]
    assert lab.idle_power_fraction.value == values["idle-power-gpu-server-idle-share"]
    assert lab.operations_fraction_per_year.value == values["ops-operations-support-spares-network-staff"]
    assert lab.pue.value == values["pue-uptime-2024"]
    assert colocation.pue.value == values["pue-equinix-2023"]
    assert colocation.colocation_usd_per_kw_month.value == values["colo-model-default"]
    assert COST.ownership("desk").pue.value == values["pue-home"]
    assert COST.ownership("data-centre").pue.value == values["pue-hyperscaler-model-default"]


def test_egress_is_paid_by_tiers() -> None:
    aws = COST.egress["AWS"]
    assert aws.usd(100) == 0
    assert aws.usd(20_000) == pytest.approx(9_900 * 0.09 + 10_000 * 0.085)
    assert aws.usd(200_000) == pytest.approx(9_900 * 0.09 + 40_000 * 0.085 + 100_000 * 0.07 + 50_000 * 0.05)
    assert COST.egress["OCI"].usd(10_001) == pytest.approx(0.0085)
    assert COST.egress["GCP"].usd(0) == 0
