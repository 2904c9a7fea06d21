"""Upfront and running costs of owned cards, computed by hand."""

import pytest

from planner.cost.owning.costs import (
    FIGURES,
    ServerSetup,
    energy_use,
    financed_usd,
    full_power_watts,
    place_of,
    running_costs,
    upfront_costs,
)
from planner.cost.terms import BuyTerms
from planner.plan.catalog import Catalog


def figures(**given: float) -> dict[str, float]:
    neutral = dict.fromkeys(FIGURES, 0.0) | {"host_factor": 1.6, "server_power_factor": 1.5, "pue": 1.2}
    named = {
        "card_price_usd": 10_000.0,
        "card_power_watts": 500.0,
        "tariff_usd_per_kwh": 0.2,
        "active_power_fraction": 0.8,
    }
    return neutral | named | {"idle_power_fraction": 0.3} | given


SHAPE = ServerSetup(count=8, groups=2, gpus_per_server=8, colocation_power="metered")
LINKED = SHAPE.evolve(count=16, groups=1)


def test_what_is_bought_sums_up() -> None:
    purchase = upfront_costs(figures(network_share=0.2, tax_fraction=0.1, shipping_usd=500, install_usd=700), LINKED)
    assert (purchase.cards, purchase.host) == pytest.approx((160_000, 96_000))
    assert purchase.network == pytest.approx(64_000)
    assert purchase.tax == pytest.approx(32_000)
    assert purchase.usd == pytest.approx(160_000 + 96_000 + 64_000 + 32_000 + 1_200)


def test_one_server_needs_no_network() -> None:
    assert upfront_costs(figures(network_share=0.2), SHAPE.evolve(groups=1)).network == 0


def test_replicas_on_several_servers_need_no_network() -> None:
    assert upfront_costs(figures(network_share=0.2), SHAPE).network == 0
    assert upfront_costs(figures(network_share=0.2), LINKED.evolve(linked_cards=4)).network == 0
    assert upfront_costs(figures(network_share=0.2), LINKED).network == pytest.approx(64_000)


def test_full_servers_are_bought_at_the_price_of_servers() -> None:
    values = figures(server_price_usd=100_000)
    whole = upfront_costs(values, LINKED)
    assert (whole.cards, whole.host) == pytest.approx((125_000, 75_000))
    # Four cards with their share of a host cost 64,000 USD, seven 112,000: more than a server.
    four, seven = (upfront_costs(values, SHAPE.evolve(count=count, groups=1)).usd for count in (4, 7))
    assert (four, seven) == pytest.approx((64_000, 100_000))
    alone = SHAPE.evolve(count=1, groups=1, whole_servers=True)
    assert upfront_costs(values, alone).usd == pytest.approx(100_000)


def test_cards_and_half_of_hosts_and_network_can_be_sold_again() -> None:
    purchase = upfront_costs(figures(network_share=0.2, tax_fraction=0.1, shipping_usd=500), LINKED)
    assert purchase.resale_base == pytest.approx(160_000 + (96_000 + 64_000) / 2)


def test_power_is_drawn_at_work_and_at_rest() -> None:
    assert full_power_watts(figures(), SHAPE) == 16 * 500 * 1.5
    assert full_power_watts(figures(), SHAPE.evolve(server_power_watts=7_000.0)) == 14_000
    rest = energy_use(figures(), SHAPE).idle_year
    assert rest == pytest.approx(12 * 1.2 * 8_766 * 0.3)
    # Both groups at work the whole year.
    use = energy_use(figures(), SHAPE)
    assert use.idle_year + use.busy_hour * 2 * 8_766 == pytest.approx(12 * 1.2 * 8_766 * 0.8)
    assert energy_use(figures(), SHAPE.evolve(switched_off_when_idle=True)).idle_year == 0


def test_electricity_is_paid_once() -> None:
    values = figures(colocation_usd_per_kw_month=150.0)
    purchase = upfront_costs(values, SHAPE)
    metered, included = (
        running_costs(values, SHAPE.evolve(colocation_power=power), purchase) for power in ("metered", "included")
    )
    assert metered.colocation == included.colocation == 12 * 150 * 12
    assert metered.idle_energy > 0
    assert (included.idle_energy, included.usd_per_busy_hour) == (0, 0)


def test_yearly_costs_sum_up() -> None:
    values = figures(
        operations_fraction_per_year=0.08,
        support_fraction_per_year=0.02,
        spares_fraction_per_year=0.05,
        insurance_fraction_per_year=0.01,
        staff_usd_per_year=9_000,
        licence_usd_per_gpu_year=4_500,
        tariff_usd_per_kwh=0,
    )
    purchase = upfront_costs(values, SHAPE)
    yearly = running_costs(values, SHAPE, purchase)
    assert yearly.usd_per_year == pytest.approx(purchase.usd * 0.11 + 160_000 * 0.05 + 9_000 + 16 * 4_500)


def test_a_purchase_without_a_loan_is_paid_at_once() -> None:
    assert financed_usd(1_000, SHAPE, 0.08, 3) == 1_000
    borrowed = SHAPE.evolve(loan_fraction=0.5, loan_rate=0.0, loan_years=4.0)
    assert financed_usd(1_000, borrowed, 0.08, 10) < 1_000


@pytest.mark.parametrize(
    ("gpu", "terms", "place"),
    [
        ("rtx-4090", BuyTerms(owned=True), "desk"),
        ("rtx-4090", BuyTerms(owned=True, place="lab"), "lab"),
        ("rtx-4090", BuyTerms(), "lab"),
        ("h100-sxm5-80gb", BuyTerms(owned=True), "lab"),
    ],
)
def test_own_cards_are_at_a_desk_unless_they_are_made_for_servers(
    catalog: Catalog, gpu: str, terms: BuyTerms, place: str
):
    assert place_of(terms, catalog.hardware.gpu(gpu)) == place


def test_without_a_card_the_machines_are_in_a_lab():
    assert place_of(BuyTerms(owned=True), None) == "lab"
