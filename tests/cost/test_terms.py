"""Cost terms: validation, sources of defaults, and JSON."""

import pytest

from planner.cost.terms import DEFAULT_SOURCES, BuyTerms, CostTerms, DailyHours, RentTerms, Run, Service
from planner.errors import SpecError


@pytest.mark.parametrize(
    ("field", "terms"),
    [
        ("horizon_years", {"horizon_years": 0}),
        ("discount_rate", {"discount_rate": 1.0}),
        ("discount_rate", {"discount_rate": -0.1}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": -100}}),
        ("buy.card_price_usd", {"buy": {"card_price_usd": 1e12}}),
        ("buy.pue", {"buy": {"pue": 0.5}}),
        ("buy.server_power_factor", {"buy": {"server_power_factor": 10.5}}),
        ("rent.mean_hours_between_interruptions", {"rent": {"mean_hours_between_interruptions": 1.5e6}}),
        ("buy", {"buy": {"colocation_usd_per_kw_month": 150}}),
        ("rent.storage_usd_per_gb_month", {"rent": {"storage_usd_per_gb_month": -1}}),
        ("rent.price_drift_per_year", {"rent": {"price_drift_per_year": -1}}),
        ("job.run.amount", {"job": {"kind": "run", "amount": 0}}),
        ("job.daily-hours.hours_per_day", {"job": {"kind": "daily-hours", "hours_per_day": 25}}),
        ("job.service.peak_factor", {"job": {"kind": "service", "requests_per_day": 1, "peak_factor": 0.5}}),
    ],
)
def test_absurd_terms_are_refused_by_field(field: str, terms: dict[str, object]) -> None:
    from pydantic import ValidationError

    with pytest.raises(ValidationError) as caught:
        CostTerms.model_validate(terms)
    assert SpecError.from_validation(caught.value).field == field


def test_each_default_that_has_a_source_is_a_field() -> None:
    kinds = {"job": (Run, Service, DailyHours), "rent": (RentTerms,), "buy": (BuyTerms,)}
    for name, source in DEFAULT_SOURCES.items():
        part, _, field = name.rpartition(".")
        assert source
        assert any(field in kind.model_fields for kind in kinds.get(part, (CostTerms,)))


def test_terms_round_trip() -> None:
    terms = CostTerms(job=Service(requests_per_day=10), buy=BuyTerms(place="desk", pue=1.1))
    assert CostTerms.model_validate_json(terms.model_dump_json()) == terms


@pytest.mark.parametrize("shares", [[1.0] * 23, [-1.0] + [1.0] * 23, [0.0] * 24])
def test_absurd_hours_of_a_day_are_refused(shares: list[float]) -> None:
    with pytest.raises(SpecError, match="hourly_shares needs 24 non-negative numbers"):
        Service(requests_per_day=1, hourly_shares=tuple(shares))


@pytest.mark.parametrize("change", [{"hours_per_day": 24}, {"hours_per_day": 1e-3}, {"days_per_week": 7}])
def test_hours_up_to_a_whole_week_are_allowed(change: dict[str, float]) -> None:
    DailyHours(**({"hours_per_day": 8} | change))


@pytest.mark.parametrize(
    "change", [{"hours_per_day": 24.5}, {"hours_per_day": 0}, {"days_per_week": 7.5}, {"days_per_week": 0}]
)
def test_hours_that_no_week_has_are_refused(change: dict[str, float]) -> None:
    with pytest.raises(SpecError):
        DailyHours(**({"hours_per_day": 8} | change))


def test_an_hour_is_at_most_wholly_busy() -> None:
    assert Service(requests_per_day=1, busy_fraction=1).busy_fraction == 1
    with pytest.raises(SpecError, match="busy_fraction"):
        Service(requests_per_day=1, busy_fraction=1.5)


def test_requests_may_be_as_short_and_targets_as_strict_as_one_likes() -> None:
    small = {"prompt_tokens": 0.0, "output_tokens": 0.5, "ttft_seconds": 0.5, "tpot_seconds": 0.5, "e2e_seconds": 0.5}
    service = Service(requests_per_day=0.5, burstiness=0.5, **small)
    assert service.evolve(**small) == service
    for field in ("output_tokens", "ttft_seconds", "tpot_seconds", "e2e_seconds", "burstiness"):
        with pytest.raises(SpecError, match=field):
            Service(requests_per_day=1, **{field: 0})
