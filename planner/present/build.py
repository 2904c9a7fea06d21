"""What a build of equal cards, or a machine as sold, draws, needs and gives off, as a group of details."""

from collections.abc import Iterable

from planner.hardware.gpu import Gpu
from planner.hardware.power import (
    USUAL_CIRCUIT,
    Build,
    BuildCards,
    Circuit,
    PowerFigure,
    least_circuit,
    machine_steps,
    power_and_cooling,
)
from planner.hardware.system import System
from planner.present import format as fmt
from planner.present.columns import Detail, DetailGroup

_DERIVED_MARK = "ƒ"


def power_group(gpu: Gpu, count: int, circuit: Circuit = USUAL_CIRCUIT) -> DetailGroup:
    """Return the power and cooling of `count` cards in one machine, each figure with its formula and source."""
    build = Build((BuildCards(gpu, count),), circuit=circuit)
    found = power_and_cooling(build)
    cables = [Detail("Cables", ", ".join(found.connectors))] if found.connectors else []
    warnings = [Detail("Warning", warning) for warning in found.warnings]
    figures = _figures(found.steps, build.circuit)
    return DetailGroup(f"Power and cooling of {fmt.plural(count, 'card')}", (*figures, *cables, *warnings))


def machine_power_group(system: System) -> DetailGroup:
    """Return what feeds and cools a whole machine; nothing where its power is not known."""
    if system.max_power_watts is None:
        return DetailGroup("Power and cooling", ())
    circuit = least_circuit(system.max_power_watts)
    steps = machine_steps(system, circuit)
    return DetailGroup("Power and cooling", (*_figures(steps, circuit), Detail("Assumed", "cooled by air alone")))


def _figures(steps: Iterable[PowerFigure], circuit: Circuit) -> tuple[Detail, ...]:
    figures = (
        Detail(step.title, _amount(step), step.source, step.formula, mark=_DERIVED_MARK)
        for step in steps
        if step.value is not None
    )
    return (Detail("Circuit", circuit.name), *figures)


def _amount(step: PowerFigure) -> str:
    return fmt.quantity(step.value, step.unit) if step.unit else fmt.plain(step.value or 0)
