"""The answers of `serve-plan` as text."""

from typing import Final

from planner.cli.report import prose_width, wrap
from planner.cli.table import TableColumn, column_table, table, terminal_width
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.serving.answer import ServingAnswer
from planner.plan.serving.measured import MeasuredComparison
from planner.present import format as fmt
from planner.present.serving.options import (
    SERVING_COLUMNS,
    ServingRow,
    consequence_sentence,
    left_out_sentence,
    option_sentence,
    program_title,
    search_sentence,
    serving_row,
    serving_rows,
)
from planner.present.serving.simulation import (
    comparison_heading,
    comparison_verdict,
    load_sentence,
    measured_columns,
    percentile_columns,
    rate_columns,
    sample_sentence,
    simulation_sentence,
    target_rows,
)
from planner.present.serving.traffic import targets_phrase, traffic_sentence
from planner.serving.result import RatePoint, ServingSimulation
from planner.serving.targets import Goodput, Targets
from planner.serving.traffic import Traffic
from planner.workload.software.registry import SOFTWARE

_INDENT: Final = "  "


def simulation_text(
    found: ServingSimulation,
    points: tuple[RatePoint, ...],
    plan: Plan,
    catalog: Catalog,
    traffic: Traffic,
    targets: Targets,
) -> str:
    """Return a simulated service as text: the answer, its targets, its latencies, and its figures over the rate."""
    width = terminal_width()
    assert plan.gpu is not None
    cards = fmt.count_of(plan.count, catalog.hardware.gpu(plan.gpu).name)
    blocks = [wrap(simulation_sentence(found, targets.goodput), prose_width(width))]
    blocks.append(wrap(f"{cards} with {program_title(plan)}, for {traffic_sentence(traffic)}.", prose_width(width)))
    blocks += _simulation_blocks(found, targets, width)
    if points:
        blocks.append(column_table(rate_columns(), points))
    return "\n\n".join(block for block in blocks if block)


def measured_text(found: MeasuredComparison, plan: Plan, catalog: Catalog) -> str:
    """Return a measured run beside its simulation as text."""
    width = prose_width(terminal_width())
    blocks = [wrap(comparison_heading(found), width)]
    if found.simulation.unsupported is not None:
        return "\n\n".join((*blocks, wrap(simulation_sentence(found.simulation), width)))
    assert plan.gpu is not None  # or nothing was simulated
    cards = fmt.count_of(plan.count, catalog.hardware.gpu(plan.gpu).name)
    blocks.append(
        wrap(f"Simulated on {cards} with {SOFTWARE[found.program].title}. {comparison_verdict(found)}", width)
    )
    if found.figures:
        blocks.append(column_table(measured_columns(), found.figures))
    return "\n\n".join(blocks)


def _simulation_blocks(found: ServingSimulation, targets: Targets, width: int | None) -> list[str]:
    if found.unsupported is not None:
        return []
    rows = target_rows(found, targets.goodput)
    blocks = []
    if rows:
        heads = [TableColumn("Target", flexible=True), TableColumn("Simulated"), TableColumn("")]
        blocks.append(table(heads, [(row.title, row.figure, row.word) for row in rows], width))
    blocks.append(column_table(percentile_columns(), found.latencies))
    blocks.append(wrap(load_sentence(found), prose_width(width)))
    blocks += [wrap(note, prose_width(width)) for note in found.notes]
    blocks.append(wrap(sample_sentence(found), prose_width(width)))
    return blocks


def search_text(answer: ServingAnswer, catalog: Catalog, traffic: Traffic, targets: Targets, limit: int | None) -> str:
    """Return the answer of a search as text: the best option in detail, and `limit` options in a table."""
    width = terminal_width()
    asked, met = f"For {traffic_sentence(traffic)}; {targets_phrase(targets)}.", search_sentence(answer)
    shown = answer.best or answer.nearest
    head = [asked, met] if answer.options else [met, asked]
    blocks = [wrap(text, prose_width(width)) for text in head]
    if shown is not None:
        row = serving_row(shown, catalog.hardware, targets.goodput)
        blocks.insert(0 if answer.options else 1, _option_line(row, answer, targets.goodput, width))
        blocks += _option_blocks(row, targets, width)
    rows = serving_rows(answer, catalog.hardware, targets.goodput)
    listed = rows[:limit]
    if len(rows) > 1 and listed:
        columns = [column for column in SERVING_COLUMNS if column.shown]
        blocks.append(column_table(columns, listed))
    if len(listed) < len(rows):
        blocks.append(f"{len(listed):,} of {len(rows):,} options listed; --all lists them all, best first")
    blocks.append(wrap(left_out_sentence(answer), prose_width(width)))
    return "\n\n".join(block for block in blocks if block)


def _option_line(row: ServingRow, answer: ServingAnswer, goodput: Goodput | None, width: int | None) -> str:
    title = "Best" if answer.best is not None else "Closest to the targets"
    met = simulation_sentence(row.option.simulation, goodput)
    return wrap(f"{title}: {option_sentence(row)}, with {program_title(row.option.plan)}. {met}", prose_width(width))


def _option_blocks(row: ServingRow, targets: Targets, width: int | None) -> list[str]:
    blocks = _simulation_blocks(row.option.simulation, targets, width)
    if row.option.consequences:
        lines = [wrap(consequence_sentence(one), prose_width(width), _INDENT) for one in row.option.consequences]
        blocks.append("\n".join(("What would change it:", *lines)))
    return blocks
