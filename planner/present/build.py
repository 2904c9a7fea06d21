"""What a build of equal cards draws, needs and gives off, as a group of details."""

from planner.hardware.gpu import Gpu
from planner.hardware.power import Build, BuildCards, power_and_cooling
from planner.present import format as fmt
from planner.present.columns import Detail, DetailGroup

_DERIVED_MARK = "ƒ"


def power_group(gpu: Gpu, count: int) -> DetailGroup:
    """Return the power and cooling of `count` cards in one machine, each figure with its formula and source."""
    found = power_and_cooling(Build((BuildCards(gpu, count),)))
    figures = [
        Detail(step.title, fmt.quantity(step.value, step.unit), step.source, step.formula, mark=_DERIVED_MARK)
        for step in found.steps
        if step.value is not None
    ]
    cables = [Detail("Cables", ", ".join(found.connectors))] if found.connectors else []
    warnings = [Detail("Mind", warning) for warning in found.warnings]
    return DetailGroup(f"Power and cooling of {fmt.count_of(count, 'card')}", (*figures, *cables, *warnings))
