"""A plan with what a log measured: its speed, and corrections of its memory."""

from typing import Final

from planner.errors import SpecError
from planner.memory.corrections import with_correction
from planner.performance.setting import MeasuredSpeed
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.logs.comparison import without_measurements
from planner.plan.logs.corrections import is_of_program, suggest_correction
from planner.plan.logs.figures import measured_speed
from planner.plan.logs.files import Log
from planner.plan.logs.log_amounts import LogComparison
from planner.plan.plan import Plan

_LONGEST_NAME: Final = 200


def with_measurements(plan: Plan, catalog: Catalog, comparison: LogComparison, log: Log) -> Plan:
    """Return `plan` with the speed that `log` measured under its own conditions, and its memory corrected by it.

    Raises:
        SpecError: If the log measured neither.
    """
    evaluation = evaluate(without_measurements(plan), catalog)
    speed = speed_to_keep(comparison, evaluation, log)
    correction = suggest_correction(comparison, evaluation, log.date, log.digest)
    if speed is None and correction is None:
        raise SpecError(
            "log",
            "it measured nothing that the plan can keep",
            "It needs the plan's program, and its card for memory, or its prompt, answer and requests for a speed.",
        )
    if speed is not None:
        plan = plan.evolve(timing=plan.timing.evolve(measured=speed))
    if correction is not None:
        plan = plan.evolve(corrections=with_correction(plan.corrections, correction))
    return plan


def speed_to_keep(comparison: LogComparison, evaluation: Evaluation, log: Log) -> MeasuredSpeed | None:
    """Return the speed of the plan's program that `log` measured under the plan's own conditions, None without one."""
    if not is_of_program(evaluation, comparison.reading):
        return None
    return measured_speed(comparison.figures, evaluation, f"measured in {log.name[:_LONGEST_NAME]} of {log.date}")
