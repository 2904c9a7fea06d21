"""Published constants of owning and renting (overheads, shares, fees), and egress tariffs."""

from pydantic import Field

from planner.base import Spec
from planner.cost.figure import PARTIAL_DATE, Figure


class Constant(Spec):
    """One published number, with its source."""

    id: str = Field(pattern=r"^[a-z0-9][a-z0-9._-]*$")
    kind: str = Field(min_length=2)
    name: str = Field(min_length=2)
    value: float = Field(ge=0, allow_inf_nan=False)
    unit: str = Field(min_length=1)
    date: str | None = Field(default=None, pattern=PARTIAL_DATE, description="a day, month or year; none: not stated")
    source: str = Field(min_length=3)
    notes: tuple[str, ...] = ()

    @property
    def figure(self) -> Figure:
        """Return the constant as a cost figure."""
        return Figure(value=self.value, source=self.source, date=self.date)


class EgressTier(Spec):
    """Egress price per gigabyte up to a monthly total; the last tier has no bound."""

    up_to_gb: float | None
    usd_per_gb: float


class EgressTariff(Spec):
    """One provider's monthly egress tariff."""

    provider: str
    free_gb: float
    tiers: tuple[EgressTier, ...]
    source: str
    date: str | None

    def usd(self, gigabytes: float) -> float:
        """Return the price of `gigabytes` of egress in one month.

        **Formula** the free gigabytes, then each tier up to its bound.

        **Assumes** that bounds include the free gigabytes.
        """
        paid, total = min(self.free_gb, gigabytes), 0.0
        for tier in self.tiers:
            bound = gigabytes if tier.up_to_gb is None else min(tier.up_to_gb, gigabytes)
            total += max(bound - paid, 0.0) * tier.usd_per_gb
            paid = max(paid, bound)
        return total


def egress_tariffs(constants: tuple[Constant, ...]) -> dict[str, EgressTariff]:
    """Return the egress tariffs by provider, from the constants of kind `egress`."""
    free = {constant.name: constant for constant in constants if constant.kind == "egress_free"}
    return {provider: _egress_tariff(provider, allowance, constants) for provider, allowance in free.items()}


def _egress_tariff(provider: str, allowance: Constant, constants: tuple[Constant, ...]) -> EgressTariff:
    named = [each for each in constants if each.kind == "egress" and each.name.startswith(f"{provider} ")]
    tiers = [EgressTier(up_to_gb=_tier_bound_gb(each.name), usd_per_gb=each.value) for each in named]
    return EgressTariff(
        provider=provider,
        free_gb=allowance.value,
        tiers=tuple(sorted(tiers, key=lambda tier: tier.up_to_gb or float("inf"))),
        source=allowance.source,
        date=allowance.date,
    )


def _tier_bound_gb(name: str) -> float | None:
    """Return the bound in GB from a name such as `AWS to 10000 GB`; `AWS above` has none."""
    words = name.split()
    return float(words[-2]) if words[-1] == "GB" else None
