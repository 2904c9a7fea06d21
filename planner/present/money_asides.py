"""What is said of money besides the answer: the electricity and its carbon, and owning some while renting the rest."""

from planner.cost.rent_or_buy.hybrid import Hybrid
from planner.cost.result import Footprint
from planner.present import format as fmt
from planner.present.money import years_phrase
from planner.present.sources import short_source


def carbon_sentence(carbon: Footprint, region: str, period: str) -> str:
    """Return the electricity of a run or month, with that of cooling, and the carbon that the grid there stands for."""
    energy = f"{region}: {fmt.quantity(carbon.energy_kwh, 'kWh')} of electricity a {period}, cooling included"
    if carbon.carbon_kg is None or carbon.grams_per_kwh is None:
        return f"{energy}; its carbon is not known."
    grams = carbon.grams_per_kwh
    dated = f", {grams.date}" if grams.date else ""
    return (
        f"{energy}: {fmt.quantity(carbon.carbon_kg, 'kg')} of CO₂ at {fmt.quantity(grams.value, 'g')} a kWh "
        f"({short_source(grams.source)}{dated})."
    )


def hybrid_sentence(hybrid: Hybrid, years: float) -> str:
    """Return how many groups of cards to own and what to rent for the peaks, beside renting and owning all of them."""
    best, most = hybrid.best, len(hybrid.mixes) - 1
    if best.owned == 0:
        return f"Of the {fmt.plural(most, 'group')} that the peak takes, none is worth owning: rent while needed."
    if best.owned == most:
        every = "The group that the peak takes is" if most == 1 else f"All {most} groups that the peak takes are"
        return f"{every} worth owning: nothing need be rented."
    rented, owned = hybrid.mixes[0].usd, hybrid.mixes[-1].usd
    return (
        f"Best of both: own {fmt.integer(best.owned)} of the {fmt.integer(most)} groups that the peak takes, which do "
        f"{fmt.percent(best.owned_work_fraction)} of the work, and rent the rest while they are needed: "
        f"{fmt.money(best.usd)} over {years_phrase(years)}, beside {fmt.money(rented)} for renting all in this way and "
        f"{fmt.money(owned)} for owning all."
    )
