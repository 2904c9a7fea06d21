"""The worked examples of published calculators and papers, to the cent: where each comes from is in its name."""

import pytest

from planner.cost.demand import Throughput, usd_per_million_tokens
from planner.cost.owning.accounting import (
    OwnedServers,
    break_even_utilization,
    owned_month,
    payback_month,
    value_lost_per_hour,
    yearly_depreciation,
)
from planner.cost.owning.costs import FIGURES, ServerSetup, energy_use, upfront_costs
from planner.cost.rent_or_buy.cash_flows import hours_to_pay_back
from planner.cost.renting.quote import best_checkpoint_interval, commitment_share, interruption_overhead
from planner.cost.terms import RentMode
from planner.plan.catalog import Catalog

CENT = 0.005


def figures(**given: float) -> dict[str, float]:
    """Every figure of owning: neutral ones, but for those given."""
    neutral = dict.fromkeys(FIGURES, 0.0) | {"host_factor": 1.0, "server_power_factor": 1.0, "pue": 1.0}
    return neutral | {"active_power_fraction": 1.0} | given


def setup(**given: object) -> ServerSetup:
    return ServerSetup.model_validate({"groups": 1, "gpus_per_server": 8, "colocation_power": "metered", **given})


def owned(capex: float, kilowatts: float, gpus: int, idle: float = 0.35) -> OwnedServers:
    servers = -(-gpus // 8)
    return OwnedServers(
        capex_usd=capex * servers,
        servers=servers,
        gpus=gpus,
        server_kilowatts=kilowatts,
        years=5,
        capital_rate=0.08,
        pue=1.3,
        tariff_usd_per_kwh=0.08,
        colocation_usd_per_kw_month=150,
        operations_fraction_per_year=0.08,
        idle_power_fraction=idle,
    )


GPU_PRICE_INDEX = [
    ("H100", owned(250_000, 10.2, 64), 0.70, 3.82, 2.1575, 70_560.37, 124_929.28, 0.3883, 23, 3_262_134.82),
    ("B200", owned(450_000, 14.3, 8), 0.35, 6.81, 7.2270, 14_771.97, 13_919.64, 0.3718, None, -51_139.58),
    ("L40S", owned(70_000, 4.5, 3, 0.5), 0.20, 2.70, 6.2709, 2_746.65, 1_182.60, 0.4724, None, -93_843.04),
]


@pytest.mark.parametrize(
    ("name", "servers", "used", "rent", "hourly", "monthly", "rented", "break_even", "payback", "saving"),
    GPU_PRICE_INDEX,
    ids=[case[0] for case in GPU_PRICE_INDEX],
)
def test_gpu_price_index_tco_cases(
    name: str,
    servers: OwnedServers,
    used: float,
    rent: float,
    hourly: float,
    monthly: float,
    rented: float,
    break_even: float,
    payback: int | None,
    saving: float,
) -> None:
    month = owned_month(servers, used)
    rented_usd = rent * month.useful_gpu_hours
    assert month.usd == pytest.approx(monthly, abs=CENT)
    assert month.usd_per_gpu_hour == pytest.approx(hourly, abs=5e-5)
    assert rented_usd == pytest.approx(rented, abs=CENT)
    assert break_even_utilization(servers, rent) == pytest.approx(break_even, abs=5e-5)
    assert payback_month(servers, used, rent) == payback
    assert (rented_usd - month.usd) * 60 == pytest.approx(saving, abs=CENT)


def test_gpu_price_index_monthly_parts_of_the_h100() -> None:
    month = owned_month(GPU_PRICE_INDEX[0][1], 0.70)
    parts = (month.depreciation_usd, month.capital_usd, month.colocation_usd, month.operations_usd, month.energy_usd)
    assert parts == pytest.approx((33_333.33, 6_666.67, 12_240.00, 13_333.33, 4_987.03), abs=CENT)
    assert month.cash_usd == pytest.approx(70_560.37 - 33_333.33, abs=2 * CENT)


@pytest.mark.parametrize(("cloud", "hours", "months"), [(98.32, 8_556.2, 11.88), (55.04, 15_392.4, 21.38)])
def test_lenovo_lp2225_break_even(cloud: float, hours: float, months: float) -> None:
    found = hours_to_pay_back(833_806, cloud, 0.87)
    assert found == pytest.approx(hours, abs=0.05)
    assert found / 720 == pytest.approx(months, abs=CENT)


@pytest.mark.parametrize(("daily", "years"), [(4, 5.9), (8, 2.9), (12, 1.96), (16, 1.47)])
def test_lenovo_lp2225_years_of_daily_hours(daily: int, years: float) -> None:
    found = hours_to_pay_back(833_806, 98.32, 0.87)
    assert found is not None
    assert found / (daily * 365) == pytest.approx(years, abs=0.05)


def test_lenovo_lp2225_five_years() -> None:
    assert pytest.approx(4_306_416, abs=CENT) == 98.32 * 24 * 365 * 5
    assert pytest.approx(871_912, abs=CENT) == 833_806 + 0.87 * 24 * 365 * 5


@pytest.mark.parametrize(
    ("price", "watts", "petaflops", "millions", "power_millions", "total_millions", "usd_per_pflop_year"),
    [
        (30_000, 700, 0.989, 30.72, 2.11, 32.83, 9_262),
        (35_000, 700, 0.989, 35.84, 2.11, 37.95, 10_706),
        (40_000, 1_000, 2.25, 40.96, 3.01, 43.97, 5_453),
    ],
    ids=["H100", "H200", "B200"],
)
def test_aiinframap_tco(
    price: float,
    watts: float,
    petaflops: float,
    millions: float,
    power_millions: float,
    total_millions: float,
    usd_per_pflop_year: float,
) -> None:
    """It scales the cards' power by utilisation, without idle power, hosts and networks."""
    values = figures(card_price_usd=price, card_power_watts=watts, pue=1.2, tariff_usd_per_kwh=0.08)
    cards = setup(count=1_024)
    acquisition = upfront_costs(values, cards).usd
    power = energy_use(values, cards).busy_hour * 8_760 * 5 * 0.7 * 0.08
    assert acquisition / 1e6 == pytest.approx(millions, abs=CENT)
    assert power / 1e6 == pytest.approx(power_millions, abs=CENT)
    assert (acquisition + power) / 1e6 == pytest.approx(total_millions, abs=CENT)
    effective = petaflops * 1_024 * 0.7 * 5
    assert (acquisition + power) / effective == pytest.approx(usd_per_pflop_year, abs=0.5)


def test_juliensimon_cloud_year() -> None:
    rent = 2.69 * 24 * 365
    assert rent == pytest.approx(23_564.40, abs=CENT)
    assert rent + 2_000 + 3_000 == pytest.approx(28_564.40, abs=CENT)
    assert (rent + 5_000) / 12 == pytest.approx(2_380.37, abs=CENT)
    pace = Throughput(tokens_per_second=2_555e6 / (24 * 365 * 3_600))
    assert usd_per_million_tokens(2.69, pace) == pytest.approx(9.2229, abs=5e-5)


def test_juliensimon_capacity_of_a_day() -> None:
    per_million = usd_per_million_tokens(1.0, Throughput(tokens_per_second=2_300))
    assert per_million is not None
    assert 1e6 / per_million * 24 * 0.7 == pytest.approx(139_104_000)


def test_juliensimon_local_year() -> None:
    values = figures(card_power_watts=575.0)
    energy = energy_use(values, setup(count=1)).busy_hour * 24 * 365 * 0.12
    (straight, *_) = yearly_depreciation(1_999, "straight-line", 3, 1)
    assert straight == pytest.approx(666.33, abs=CENT)
    assert energy == pytest.approx(604.44, abs=CENT)
    assert straight + energy + 5_000 + 500 == pytest.approx(6_770.77, abs=CENT)


@pytest.mark.parametrize(
    ("nodes", "network_usd", "total", "per_gpu"),
    [(128, 48 * 36_000 + 2_621_440, 50_429_440, 49_248), (64, 963_840, 24_003_840, 46_883)],
)
def test_cluster_capex_spreadsheet_of_august_2024(nodes: int, network_usd: float, total: float, per_gpu: float) -> None:
    """The sheet's second cluster is of 512 cards, that is 64 nodes: 46,883 USD a card is 24,003,840 over 512."""
    cluster = setup(count=nodes * 8, network_usd=float(network_usd))
    purchase = upfront_costs(figures(server_price_usd=310_000.0, rack_usd_per_server=50_000.0), cluster)
    assert purchase.usd == pytest.approx(total, abs=CENT)
    assert purchase.usd / (nodes * 8) == pytest.approx(per_gpu, abs=0.5)


def test_cluster_capex_spreadsheet_parts() -> None:
    purchase = upfront_costs(
        figures(server_price_usd=310_000.0, rack_usd_per_server=50_000.0),
        setup(count=1_024, network_usd=48 * 36_000 + 2_621_440.0),
    )
    assert (purchase.rack, purchase.cards + purchase.host) == (6_400_000, 39_680_000)
    assert purchase.usd / 128 == pytest.approx(393_980, abs=0.5)


def test_amortised_chip_hour_of_an_a100() -> None:
    assert value_lost_per_hour(17_500 * 1.66) == pytest.approx(1.0683, abs=5e-5)
    assert value_lost_per_hour(17_500 * 1.66, 0.19) == pytest.approx(1.3189, abs=5e-5)


def test_spot_waste_of_an_hourly_checkpoint() -> None:
    found = interruption_overhead(checkpoint_hours=0.05, restart_hours=0.25, mean_hours=24, interval_hours=1)
    assert found.total_fraction == pytest.approx(0.08125)
    assert 19.66 * (1 + found.total_fraction) == pytest.approx(21.2574, abs=5e-5)
    assert 19.66 * (1 + found.total_fraction) / 98.32 == pytest.approx(0.216, abs=5e-4)
    assert best_checkpoint_interval(0.05, 24) == pytest.approx(1.549, abs=5e-4)


def test_published_spot_example_sums_to_more_than_it_says() -> None:
    assert pytest.approx(0.858) == 0.78 * 1.05 + 0.05 * 0.78


@pytest.mark.parametrize(("mode", "share"), [("reserved-1y", 0.69), ("reserved-3y", 0.44)])
def test_gcp_commitment_break_even(catalog: Catalog, mode: RentMode, share: float) -> None:
    offer = catalog.cost.offer("gcp-a3-highgpu-8g-us-central1-2026-08-20")
    assert commitment_share(offer, mode) == pytest.approx(share, abs=0.005)
