"""Electricity prices and carbon intensity by region."""

from collections.abc import Mapping
from typing import Literal, Self

from pydantic import Field, model_validator

from planner.base import Spec
from planner.cost.figure import DATE, Figure
from planner.cost.renting.offer import Currency
from planner.errors import SpecError

EnergyLevel = Literal["country", "group", "state", "cloud-region"]
TariffKind = Literal["household", "industrial"]


class EnergyRecord(Spec):
    """Electricity data for one region from one source; prices in other currencies are not converted."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    code: str = Field(min_length=2, description="DE, US-WA, or gcp:europe-west4")
    name: str = Field(min_length=2)
    level: EnergyLevel
    currency: Currency | None = None
    household_usd_per_kwh: float | None = Field(default=None, gt=0, le=2)
    industrial_usd_per_kwh: float | None = Field(default=None, gt=0, le=2)
    household_local_per_kwh: float | None = Field(default=None, gt=0)
    industrial_local_per_kwh: float | None = Field(default=None, gt=0)
    price_date: str | None = Field(default=None, pattern=DATE)
    price_source: str | None = Field(default=None, min_length=3)
    carbon_grams_per_kwh: float | None = Field(default=None, ge=0, le=2_000)
    carbon_year: int | None = Field(default=None, ge=2000, le=2100, description="none: not stated")
    carbon_source: str | None = Field(default=None, min_length=3)
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _is_sourced(self) -> Self:
        local = self.household_local_per_kwh is not None or self.industrial_local_per_kwh is not None
        dollars = self.household_usd_per_kwh is not None or self.industrial_usd_per_kwh is not None
        if (local or dollars) and not (self.price_source and self.price_date and self.currency):
            raise ValueError("a price needs its currency, source and date")
        if local and self.currency == "USD":
            raise ValueError("a price in US dollars is not a local price")
        if self.carbon_grams_per_kwh is not None and not self.carbon_source:
            raise ValueError("a carbon intensity needs its source")
        return self

    def tariff(self, kind: TariffKind) -> float | None:
        """Return the price in USD per kWh, or None if this source has none."""
        return self.household_usd_per_kwh if kind == "household" else self.industrial_usd_per_kwh

    def local_tariff(self, kind: TariffKind) -> float | None:
        """Return the price per kWh in the local currency, or None if that is the US dollar."""
        return self.household_local_per_kwh if kind == "household" else self.industrial_local_per_kwh


class Region(Spec):
    """Electricity prices and carbon intensity of one region, each from the newest source."""

    code: str
    name: str
    household: Figure | None
    industrial: Figure | None
    carbon_grams_per_kwh: Figure | None

    def tariff(self, kind: TariffKind) -> Figure | None:
        """Return the price in USD per kWh; if only the other tariff is known, the other price with a remark."""
        wanted, other = (self.household, self.industrial) if kind == "household" else (self.industrial, self.household)
        if wanted is not None or other is None:
            return wanted
        instead = "industrial" if kind == "household" else "household"
        return other.evolve(source=f"{other.source} ({instead} price, as no {kind} price is known)")


def merge_region(records: tuple[EnergyRecord, ...], code: str, rates: Mapping[str, Figure]) -> Region:
    """Return the electricity figures of the region `code`; `rates` are values of currencies in US dollars.

    A price in another currency is converted only if no source has one in dollars, with a remark in its source.

    Raises:
        SpecError: If no record is about the region.
    """
    about = [record for record in records if record.code == code]
    if not about:
        hint = "Write a country such as DE, a state such as US-WA, or a cloud region such as gcp:europe-west4."
        raise SpecError("region", f"the catalog has no electricity data for {code!r}", hint)
    return Region(
        code=code,
        name=about[0].name,
        household=_newest_tariff(about, "household") or _converted_tariff(about, "household", rates),
        industrial=_newest_tariff(about, "industrial") or _converted_tariff(about, "industrial", rates),
        carbon_grams_per_kwh=_carbon_intensity(about),
    )


def _newest_tariff(records: list[EnergyRecord], kind: TariffKind) -> Figure | None:
    priced = [record for record in records if record.tariff(kind) is not None]
    newest = max(priced, key=lambda record: record.price_date or "", default=None)
    if newest is None:
        return None
    return Figure(value=newest.tariff(kind), source=newest.price_source, date=newest.price_date)


def _converted_tariff(records: list[EnergyRecord], kind: TariffKind, rates: Mapping[str, Figure]) -> Figure | None:
    priced = [record for record in records if record.local_tariff(kind) is not None and record.currency in rates]
    newest = max(priced, key=lambda record: record.price_date or "", default=None)
    if newest is None:
        return None
    local, rate = newest.local_tariff(kind) or 0.0, rates[newest.currency or ""]
    how = f"{local:g} {newest.currency} at {rate.value:g} USD ({rate.source}, {rate.date})"
    return Figure(value=local * rate.value, source=f"{newest.price_source}: {how}", date=newest.price_date)


def _carbon_intensity(records: list[EnergyRecord]) -> Figure | None:
    known = [record for record in records if record.carbon_grams_per_kwh is not None]
    newest = max(known, key=lambda record: record.carbon_year or 0, default=None)
    if newest is None:
        return None
    year = newest.carbon_year
    return Figure(value=newest.carbon_grams_per_kwh, source=newest.carbon_source, date=str(year) if year else None)
