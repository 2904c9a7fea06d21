"""Where owned cards stand: presets of every figure of owning, each with its source, and what the person changed."""

from typing import Final

from pydantic import Field

from planner.base import Spec
from planner.cost.energy import TariffKind
from planner.cost.figure import Figure
from planner.cost.terms import BuyTerms, ColocationPower, PlaceKind


class Ownership(Spec):
    """Every figure of owning in one kind of place. The fields that `BuyTerms` has too can be replaced there."""

    id: PlaceKind
    name: str = Field(min_length=3)
    description: str = Field(min_length=3)
    gpus_per_server: int = Field(ge=1, le=72)
    tariff_kind: TariffKind
    colocation_power: ColocationPower
    host_factor: Figure
    network_share: Figure
    rack_usd_per_server: Figure
    tax_fraction: Figure
    shipping_usd: Figure
    install_usd: Figure
    server_power_factor: Figure
    active_power_fraction: Figure
    idle_power_fraction: Figure
    pue: Figure
    colocation_usd_per_kw_month: Figure
    operations_fraction_per_year: Figure
    support_fraction_per_year: Figure
    spares_fraction_per_year: Figure
    insurance_fraction_per_year: Figure
    staff_usd_per_year: Figure
    licence_usd_per_gpu_year: Figure
    notes: tuple[str, ...] = ()

    def with_terms(self, terms: BuyTerms) -> "Ownership":
        """Return it with the figures that the person wrote in place of the preset's."""
        own = {name: getattr(terms, name) for name in _FIGURES}
        changed: dict[str, object] = {name: Figure.own(value) for name, value in own.items() if value is not None}
        if terms.gpus_per_server is not None:
            changed["gpus_per_server"] = terms.gpus_per_server
        if terms.colocation_power is not None:
            changed["colocation_power"] = terms.colocation_power
        return self.evolve(**changed)


_FIGURES: Final = tuple(name for name, field in Ownership.model_fields.items() if field.annotation is Figure)
