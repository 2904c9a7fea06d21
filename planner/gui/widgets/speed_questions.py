"""The form for the measured speed of a run, which replaces the plan's estimated speed."""

from typing import Final

from planner.errors import SpecError
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.section import Section
from planner.gui.workspace import Workspace
from planner.performance.result import TimeResult
from planner.performance.setting import MeasuredSpeed
from planner.present import format as fmt
from planner.present.cost.time import pace_phrase

_UNITS: Final = (("tokens/s", "tokens/s"), ("samples/s", "samples/s"), ("seconds/step", "seconds per step"))
_STEP: Final = "measured speed"


class SpeedQuestions(Section):
    """Form for the measured speed of the plan and its unit; an empty field shows the estimate as a placeholder."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        form = LabelledForm(theme)
        super().__init__(theme, "Speed", form)
        self._workspace = workspace
        self.form = form
        self.speed = DecimalField(1e-6, 1e12, placeholder="the estimate")
        self.unit = ChoiceField(theme, _UNITS)
        hint = (
            "Speed of this plan on these GPUs. For other GPUs, the speed is scaled by the ratio of the two estimates."
        )
        form.add("Your spee&d", self.speed, lambda: None, hint)
        form.add("Unit of speed", self.unit, self._default_unit, "Unit of the measured speed of all GPUs together.")
        self._task = ""
        self.speed.edited.connect(self._apply_speed)
        self.speed.finished.connect(workspace.end_gesture)
        self.unit.edited.connect(self._apply_unit)

    def refresh(self) -> None:
        """Show the measured speed, or the estimated speed in the chosen unit."""
        measured, time = self._workspace.plan.timing.measured, self._workspace.evaluation.time
        if measured is not None:
            self.unit.set_value(measured.unit)
        elif self._task != self._workspace.plan.workload.task:
            self.unit.set_value(self._default_unit())
        self._task = self._workspace.plan.workload.task
        self.speed.set_value(None if measured is None else measured.value)
        estimate = _estimated_speed_in_unit(time, self.unit.value)
        self.speed.set_placeholder(fmt.UNKNOWN if estimate is None else f"estimate: {fmt.significant(estimate)}")
        self.set_marked(measured is not None)
        pace = pace_phrase(time)
        self.set_summary(f"{pace}, {'measured' if measured else 'estimated'}" if pace else fmt.UNKNOWN)

    def _default_unit(self) -> str:
        time = self._workspace.evaluation.time
        return next((unit for unit, _ in _UNITS if _estimated_speed_in_unit(time, unit) is not None), _UNITS[0][0])

    def _apply_speed(self, value: object) -> None:
        plan = self._workspace.plan
        speed = {"value": value, "unit": self.unit.value, "gpu": plan.gpu, "count": plan.count}
        try:
            measured = None if value is None else MeasuredSpeed.model_validate(speed)
            self._workspace.apply(_STEP, timing=plan.timing.evolve(measured=measured))
        except SpecError as error:
            self.speed.show_problem(error.explanation)

    def _apply_unit(self, _unit: object) -> None:
        if self.speed.value is None:
            self.refresh()
        else:
            self._workspace.end_gesture()
            self._apply_speed(self.speed.value)
            self._workspace.end_gesture()


def _estimated_speed_in_unit(time: TimeResult | None, unit: object) -> float | None:
    """Return the plan's estimated speed in `unit`, or None if it is unknown."""
    if time is None:
        return None
    if unit == "tokens/s":
        return time.tokens_per_second
    if unit == "samples/s":
        return time.samples_per_second
    return time.seconds if time.kind == "step" else None
