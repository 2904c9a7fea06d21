"""The report on two plans side by side."""

from datetime import date
from typing import Final

from planner.plan.catalog import Catalog
from planner.plan.comparison import compare_evaluations
from planner.plan.plan import Plan
from planner.present.cost.rent_or_buy import ComparedPlan, scenario_rows
from planner.present.memory.comparison import VersusView, versus_view
from planner.present.report.document import (
    Bullets,
    Prose,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportSection,
    ReportTable,
    section,
)
from planner.present.report.figures import memory_figure
from planner.present.report.plan_report import (
    PlanReportParts,
    creation_sentence,
    evaluate_for_report,
    report_on_evaluated_plan,
)

_HEADS: Final = ("First", "Second", "Difference")


def report_on_two_plans(plan: Plan, other: Plan, catalog: Catalog, today: date) -> Report:
    """Return a report that compares `plan` with `other`, then describes each, with prices as of `today`.

    Raises:
        SpecError: If a plan names a model or a GPU that the catalog does not have.
    """
    first, second = (evaluate_for_report(each, catalog, today) for each in (plan, other))
    view = versus_view(
        first.evaluation,
        compare_evaluations(first.evaluation, second.evaluation),
        catalog,
        "the second",
        "The first plan",
    )
    reports = tuple(report_on_evaluated_plan(each) for each in (first, second))
    return Report(
        title=f"{reports[0].title}, or {reports[1].title}",
        question="Which of the two plans needs less memory, runs faster and costs less?",
        answers=(
            ReportAnswer(view.sentence or "The memory of the two plans cannot be compared.", "; ".join(view.settings)),
            *map(_verdict_of, reports),
        ),
        sections=(
            section(
                "The two plans",
                Prose(f"First: {view.subject}"),
                Prose(f"Second: {view.other_subject}"),
                Bullets(view.settings),
            ),
            _memory_section(view, (first, second)),
            _cost_section(first, second),
            *_own_sections("First plan", reports[0]),
            *_own_sections("Second plan", reports[1]),
        ),
        made=creation_sentence(today),
        plan=plan,
    )


def _verdict_of(report: Report) -> ReportAnswer:
    """Return all answers of a plan's own report as one."""
    return ReportAnswer(report.title, "\n".join(one.title for one in report.answers), report.answers[0].tone)


def _memory_section(view: VersusView, both: tuple[PlanReportParts, PlanReportParts]) -> ReportSection:
    columns = (ReportColumn("GiB of one GPU"), *(ReportColumn(head, "right") for head in _HEADS))
    rows = tuple((row.title, *row.gib_texts) for row in view.rows)
    figures = (memory_figure(each.memory) for each in both if each.memory.supported)
    return section("Memory of both", *figures, ReportTable(columns, rows))


def _cost_section(first: PlanReportParts, second: PlanReportParts) -> ReportSection:
    both = (ComparedPlan(each.evaluation.time, each.estimate) for each in (first, second))
    columns = (ReportColumn(""), *(ReportColumn(head, "right") for head in _HEADS))
    rows = tuple((row.title, *(cell.text for cell in row.cells)) for row in scenario_rows(*both))
    return section("Speed and cost of both", ReportTable(columns, rows))


def _own_sections(which: str, report: Report) -> tuple[ReportSection, ...]:
    """Return the sections of a plan's own report, each titled by which plan it is of."""
    return tuple(part._replace(title=f"{which}: {part.title[:1].lower()}{part.title[1:]}") for part in report.sections)
