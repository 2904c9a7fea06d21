"""What a build of equal cards draws, needs and gives off, as a group of details."""

from planner.hardware.gpu import Gpu
from planner.hardware.power import Build, BuildCards, Step, power_and_cooling
from planner.present import format as fmt
from planner.present.columns import Detail, DetailGroup

_DERIVED_MARK = "ƒ"


def power_group(gpu: Gpu, count: int) -> DetailGroup:
    """Return the power and cooling of `count` cards in one machine, each figure with its formula and source."""
    build = Build((BuildCards(gpu, count),))
    found = power_and_cooling(build)
    figures = [
        Detail(step.title, _amount(step), step.source, step.formula, mark=_DERIVED_MARK)
        for step in found.steps
        if step.value is not None
    ]
    cables = [Detail("Cables", ", ".join(found.connectors))] if found.connectors else []
    warnings = [Detail("Mind", warning) for warning in found.warnings]
    circuit = Detail("Circuit that is reckoned with", build.circuit.name)
    return DetailGroup(f"Power and cooling of {fmt.plural(count, 'card')}", (*figures, circuit, *cables, *warnings))


def _amount(step: Step) -> str:
    return fmt.quantity(step.value, step.unit) if step.unit else fmt.plain(step.value or 0)
