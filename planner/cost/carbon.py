"""Energy use and carbon footprint of a job, by region."""

from typing import Final

from planner.base import Spec
from planner.cost.catalog import CostCatalog
from planner.cost.energy import Region
from planner.cost.figure import Figure
from planner.cost.renting.offer import Offer
from planner.cost.result import Footprint
from planner.errors import SpecError

_GRAMS: Final = 1_000
_PUE: Final = {"AWS": "pue-aws", "Azure": "pue-azure", "GCP": "pue-gcp", "OCI": "pue-oci"}
_OTHER_PUE: Final = "pue-other-operator-model-default"
_LOCATION_BASED: Final = (
    "location-based: the average grid of the region, without the renewable energy that a provider buys"
)

# Grid regions of the providers' cloud regions, from their own lists.
_GRID_OF_REGION: Final = {
    "us-east-1": "US-VA",
    "us-west-2": "US-OR",
    "eu-west-1": "IE",
    "eu-central-1": "DE",
    "ap-northeast-1": "JP",
    "ap-southeast-2": "AU",
    "ap-south-1": "IN",
    "sa-east-1": "BR",
    "eastus": "US-VA",
    "eastus2": "US-VA",
    "westus2": "US-WA",
    "westus3": "US-AZ",
    "southcentralus": "US-TX",
    "centralus": "US-IA",
    "westeurope": "NL",
    "northeurope": "IE",
    "uksouth": "GB",
    "swedencentral": "SE",
    "italynorth": "IT",
    "francecentral": "FR",
    "japaneast": "JP",
    "australiaeast": "AU",
    "southeastasia": "SG",
    "brazilsouth": "BR",
    "canadacentral": "CA",
    "koreasouth": "KR",
    "us-ashburn-1": "US-VA",
    "nl": "NL",
    "ch": "CH",
    "ch-gva": "CH",
    "nyc1": "US-NY",
    "it-fr2": "IT",
    "india-noida-01": "IN",
    "india-chennai-01": "IN",
    "uk-south1": "GB",
}


class RegionCarbon(Spec):
    """Carbon emissions of a job's energy use in one region."""

    code: str
    name: str
    grams_per_kwh: Figure
    carbon_kg: float


def region_code(offer: Offer) -> str | None:
    """Return the catalog's region code for the electricity of a rental offer, or None if unknown."""
    if offer.region is None:
        return None
    return f"gcp:{offer.region}" if offer.provider == "GCP" else _GRID_OF_REGION.get(offer.region)


def footprint(region: Region, energy_kwh: float, pue: Figure) -> Footprint:
    """Return the footprint of `energy_kwh`, which includes the PUE overhead.

    **Formula** kWh · g/kWh / 1000
    """
    grams = region.carbon_grams_per_kwh
    reason = () if grams else (f"the carbon intensity of {region.name} is not in the catalog",)
    return Footprint(
        region=region.code,
        energy_kwh=energy_kwh,
        pue=pue,
        grams_per_kwh=grams,
        carbon_kg=None if grams is None else energy_kwh * grams.value / _GRAMS,
        notes=(_LOCATION_BASED, *reason),
    )


def rented_footprint(offer: Offer, it_kwh: float, catalog: CostCatalog) -> Footprint | None:
    """Return the footprint of `it_kwh` drawn by the machines of `offer`, or None if its region is unknown."""
    code = region_code(offer)
    if code is None:
        return None
    try:
        region = catalog.region(code)
    except SpecError:
        return None
    pue = catalog.constant(_PUE.get(offer.provider, _OTHER_PUE))
    return footprint(region, it_kwh * pue.value, pue)


def carbon_by_region(energy_kwh: float, catalog: CostCatalog) -> tuple[RegionCarbon, ...]:
    """Return the emissions of `energy_kwh` in every region with a known carbon intensity, the lowest first."""
    codes = dict.fromkeys(record.code for record in catalog.energy)
    known = ((region, region.carbon_grams_per_kwh) for region in map(catalog.region, codes))
    rows = [
        RegionCarbon(
            code=region.code, name=region.name, grams_per_kwh=grams, carbon_kg=energy_kwh * grams.value / _GRAMS
        )
        for region, grams in known
        if grams is not None
    ]
    return tuple(sorted(rows, key=lambda row: row.carbon_kg))
