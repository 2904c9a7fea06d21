"""Comparisons of two plans, and of an estimate with a trace: a sentence, the different settings, a row per part."""

from typing import Final, Literal, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.memory.result import MemoryResult, TermName
from planner.plan.catalog import Catalog
from planner.plan.comparison import PlanComparison
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.memory.view import MemoryView, evaluation_view
from planner.present.names import PHASE_MOMENTS, PHASE_TITLES, TERM_TITLES, term_title
from planner.present.plan.phrase import plan_phrase
from planner.present.plan.settings import setting_text, setting_title
from planner.units import GIB

RowKind = Literal["term", "total", "phase"]
_NOT_THERE = "–"
_LEAST_BYTES: Final = GIB // 100
"""Difference that two decimals of a GiB do not show."""


class VersusRow(NamedTuple):
    """A term, the total or a phase of two plans in bytes; None where a plan does not have the phase."""

    kind: RowKind
    name: str
    title: str
    bytes: int | None
    other_bytes: int | None

    @property
    def difference_bytes(self) -> int | None:
        """Return how many bytes more this plan needs than the other plan; None if either plan lacks the phase."""
        return None if self.bytes is None or self.other_bytes is None else self.bytes - self.other_bytes

    @property
    def gib_texts(self) -> tuple[str, str, str]:
        """Return this plan's size, the other plan's size and their difference in GiB: `20.81`, `15.40`, `+5.41`."""
        return _gib_text(self.bytes), _gib_text(self.other_bytes), _signed_gib_text(self.difference_bytes)


class VersusView(NamedTuple):
    """A comparison of two plans ready for display; `settings` are the different settings, without a full stop."""

    sentence: str
    view: MemoryView
    other: MemoryView
    subject: str
    other_subject: str
    settings: tuple[str, ...]
    rows: tuple[VersusRow, ...]

    def as_text(self) -> str:
        """Return the comparison as plain text, for the clipboard."""
        answers = [f"Plan: {self.subject}", self.view.answer, f"Other: {self.other_subject}", self.other.answer]
        head = f"{'GiB':<22}{'Plan':>10}{'Other':>10}{'Difference':>12}"
        lines = [
            f"{row.title:<22}{row.gib_texts[0]:>10}{row.gib_texts[1]:>10}{row.gib_texts[2]:>12}" for row in self.rows
        ]
        blocks = ([self.sentence], answers, [f"- {words}" for words in self.settings], [head, *lines] if lines else [])
        return "\n\n".join("\n".join(block) for block in blocks if block)

    def csv_rows(self) -> tuple[tuple[str, ...], ...]:
        """Return a CSV header and one row per term or phase with exact bytes; missing values are empty."""
        header = ("kind", "name", "bytes", "other_bytes", "difference_bytes")
        amounts = ((row, (row.bytes, row.other_bytes, row.difference_bytes)) for row in self.rows)
        rows = ((row.kind, row.name, *("" if one is None else str(one) for one in three)) for row, three in amounts)
        return (header, *rows)


def versus_view(
    evaluation: Evaluation,
    comparison: PlanComparison,
    catalog: Catalog,
    other_name: str = "the other plan",
    name: str = "This plan",
) -> VersusView:
    """Return the `comparison` of an evaluated plan called `name` with another called `other_name`, for display."""
    view, other = evaluation_view(evaluation, catalog), evaluation_view(comparison.other, catalog)
    comparable = view.supported and other.supported
    return VersusView(
        sentence=_difference_sentences(evaluation, comparison, (view, other), (name, other_name)) if comparable else "",
        view=view,
        other=other,
        subject=plan_phrase(evaluation, catalog),
        other_subject=plan_phrase(comparison.other, catalog),
        settings=_setting_difference_texts(comparison, catalog.hardware),
        rows=_versus_rows(comparison, view, other) if comparable else (),
    )


def _difference_sentences(
    evaluation: Evaluation, comparison: PlanComparison, views: tuple[MemoryView, MemoryView], names: tuple[str, str]
) -> str:
    """Return how much more or less a plan needs than the other, and whether its peak moved."""
    view, other = views
    phases = (evaluation.memory.peak_phase, comparison.other.memory.peak_phase)
    moved = f"The peak is {PHASE_MOMENTS[phases[0]]} instead of {PHASE_MOMENTS[phases[1]]}."
    peaks = moved if phases[0] != phases[1] else ""
    difference = _difference_sentence(comparison.total_difference_bytes, view, other, names)
    return " ".join(filter(None, (difference, peaks)))


def _difference_sentence(difference: int, view: MemoryView, other: MemoryView, names: tuple[str, str]) -> str:
    if difference == 0:
        return f"Both need {fmt.size(view.total_bytes)} per GPU."
    side = "more" if difference > 0 else "less"
    here, there = fmt.sizes_apart(view.total_bytes, other.total_bytes)
    return (
        f"{names[0]} needs {fmt.size(abs(difference))} ({fmt.percent(abs(difference) / other.total_bytes)}) {side} per "
        f"GPU than {names[1]}: {here} instead of {there}."
    )


def _setting_difference_texts(comparison: PlanComparison, hardware: HardwareCatalog) -> tuple[str, ...]:
    if not comparison.settings:
        return ("The settings are the same",)
    return tuple(
        f"{setting_title(one.field)}: {setting_text(one.field, one.value, hardware)} "
        f"instead of {setting_text(one.field, one.other, hardware)}"
        for one in comparison.settings
    )


def _versus_rows(comparison: PlanComparison, view: MemoryView, other: MemoryView) -> tuple[VersusRow, ...]:
    """Return the rows of a comparison of two plans: memory terms, the total, and phases."""
    order, phases = tuple(TERM_TITLES), tuple(PHASE_TITLES)
    learns = any(phase.name == "backward" for phase in comparison.phases)
    terms = sorted(
        (term for term in comparison.terms if term.bytes or term.other_bytes), key=lambda one: order.index(one.name)
    )
    return (
        *(
            VersusRow("term", term.name, term_title(term.name, learns=learns), term.bytes, term.other_bytes)
            for term in terms
        ),
        VersusRow("total", "total", "Total", view.total_bytes, other.total_bytes),
        *(
            VersusRow("phase", phase.name, f"Phase: {PHASE_TITLES[phase.name].lower()}", phase.bytes, phase.other_bytes)
            for phase in sorted(comparison.phases, key=lambda one: phases.index(one.name))
        ),
    )


def _gib_text(value: int | None) -> str:
    """Return a size in GiB without the unit, or a dash for None."""
    return _NOT_THERE if value is None else fmt.gib(value)


def _signed_gib_text(value: int | None) -> str:
    """Return a difference in GiB with its sign, with more decimals if it is small, or a dash for None."""
    if value is None:
        return _NOT_THERE
    text = fmt.significant(value / GIB, 1) if 0 < abs(value) < _LEAST_BYTES else fmt.gib(value)
    return f"+{text}" if value > 0 else text


_PARTS: Final[tuple[tuple[str, tuple[TermName, ...]], ...]] = (
    ("Weights and adapters", ("weights", "draft", "master_weights", "adapters")),
    ("Gradients", ("gradients",)),
    ("Optimizer states", ("optimizer_states",)),
    # These are compared together, because a trace sees tensors but not their purpose.
    ("Activations, logits and temporaries", ("activations", "logits", "temporaries", "state")),
    ("KV cache", ("kv_cache",)),
    ("Buffers and inputs", ("buffers",)),
    ("Communication", ("communication",)),
    ("Framework overhead", ("framework_overhead",)),
)


class ComparisonRow(NamedTuple):
    """One part of the peak memory in bytes, estimated and traced."""

    title: str
    estimated_bytes: int
    traced_bytes: int

    @property
    def difference_bytes(self) -> int:
        """Return the estimated size minus the traced size in bytes."""
        return self.estimated_bytes - self.traced_bytes

    @property
    def difference_fraction(self) -> float | None:
        """Return the difference as a fraction of the traced bytes; None if nothing was traced."""
        return self.difference_bytes / self.traced_bytes if self.traced_bytes else None


def compare_parts(estimate: MemoryResult, traced: MemoryResult) -> tuple[ComparisonRow, ...]:
    """Return the parts of the peak memory, estimated and traced, and last the total."""
    rows = (ComparisonRow(title, _sum_bytes(estimate, names), _sum_bytes(traced, names)) for title, names in _PARTS)
    present = tuple(row for row in rows if row.estimated_bytes or row.traced_bytes)
    return (*present, ComparisonRow("Total", estimate.total_bytes, traced.total_bytes))


def comparison_sentence(estimate: MemoryResult, traced: MemoryResult) -> str:
    """Return one sentence with the difference between the estimate and the trace."""
    total = compare_parts(estimate, traced)[-1]
    sizes = f"estimated {fmt.size(total.estimated_bytes)}, traced {fmt.size(total.traced_bytes)}"
    if estimate.peak_phase != traced.peak_phase:
        expected, found = PHASE_MOMENTS[estimate.peak_phase], PHASE_MOMENTS[traced.peak_phase]
        sizes += f"; the peak was expected {expected} and found {found}"
    if total.difference_bytes == 0:
        return f"The estimate is exact: {sizes}."
    side = "above" if total.difference_bytes > 0 else "below"
    return f"The estimate is {fmt.precise_percent(abs(total.difference_fraction or 0))} {side} the trace: {sizes}."


def _sum_bytes(memory: MemoryResult, names: tuple[TermName, ...]) -> int:
    """Return the sum of the terms `names` at the peak, in bytes."""
    return sum(term.bytes for term in memory.terms if term.name in names)
