"""Which numbers of a plan the curve can run over, and what the largest of them comes to."""

from dataclasses import dataclass
from typing import Final

from planner.gui.memory.curve_data import CurveData, curve_values
from planner.plan.catalog import Catalog
from planner.plan.evaluate import Evaluation
from planner.plan.explore import memory_curve
from planner.plan.solve import Field, largest_allowed, largest_that_fits
from planner.present.solved import solved_words
from planner.workload.workload import Training

_SHORTEST_SEQUENCE: Final = 128


@dataclass(frozen=True, slots=True)
class Explored:
    """A field of the workload; `title` stands at the axis, `switch` on the button, `largest` before the result."""

    name: Field
    title: str
    switch: str
    largest: str
    lowest: int

    def current(self, evaluation: Evaluation) -> int:
        """Return the value of the plan, filled in where it is left open."""
        value: int = getattr(evaluation.workload, self.name)
        return value

    def limit(self, evaluation: Evaluation) -> int | None:
        """Return the most that the model is made for, where there is such a number."""
        return evaluation.max_context if self.lowest > 1 else None


_TRAINING: Final = (
    Explored("micro_batch", "Sequences per step", "Batch", "Largest batch that fits", 1),
    Explored(
        "sequence_length", "Sequence length, tokens", "Sequence", "Longest sequence that fits", _SHORTEST_SEQUENCE
    ),
)
_INFERENCE: Final = (
    Explored("batch", "Sequences at once", "Batch", "Most sequences at once that fit", 1),
    Explored("context_length", "Context length, tokens", "Context", "Longest context that fits", _SHORTEST_SEQUENCE),
)


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest value that fits: `value` can be taken, `words` say it or why there is none."""

    value: int | None
    words: str


def explored_fields(evaluation: Evaluation) -> tuple[Explored, ...]:
    """Return the fields to explore: none of a traced module, and no length where inputs have a fixed one."""
    if evaluation.architecture is None:
        return ()
    fields = _TRAINING if isinstance(evaluation.workload, Training) else _INFERENCE
    fixed = evaluation.architecture.main.positions is not None
    return tuple(field for field in fields if field.lowest == 1 or not fixed)


def find_largest(evaluation: Evaluation, catalog: Catalog, field: Explored) -> Largest:
    """Return the largest value of `field` with which the plan fits on its card, or is tight where none fits."""
    if evaluation.gpu is None:
        return Largest(None, "choose a card to know")
    surely = largest_that_fits(evaluation.plan, catalog, field.name)
    barely = largest_that_fits(evaluation.plan, catalog, field.name, "tight")
    value = surely.value if surely.value is not None else barely.value
    return Largest(value if isinstance(value, int) else None, solved_words(surely, barely))


def compute_curve(evaluation: Evaluation, catalog: Catalog, field: Explored, largest: int | None) -> CurveData:
    """Return the memory over `field`, around the plan's value and the largest that fits."""
    current = field.current(evaluation)
    allowed = largest_allowed(evaluation.plan, field.name)
    limit = min(field.limit(evaluation) or allowed, allowed)
    values = curve_values(current, largest, field.lowest, limit)
    points = memory_curve(evaluation.plan, catalog, field.name, values)
    return CurveData(
        title=field.title,
        points=points,
        current=next(point for point in points if point.value == current),
        capacity_bytes=evaluation.memory.capacity_bytes,
        card=evaluation.gpu.name if evaluation.gpu else None,
    )
