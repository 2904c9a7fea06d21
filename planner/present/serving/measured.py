"""A measured serving run beside its simulation, as sentences and rows."""

from planner.plan.serving.measured import MeasuredComparison, MeasuredFigure
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.serving.traffic import LATENCY_HEADERS, traffic_sentence
from planner.workload.software.registry import SOFTWARE


def comparison_heading(found: MeasuredComparison) -> str:
    """Return what was measured: `Measured by a result file of vllm bench serve: 2 requests/s, prompts of …`."""
    return f"Measured by {found.run.title}: {traffic_sentence(found.traffic)}."


def comparison_verdict(found: MeasuredComparison) -> str:
    """Return how many of the measured latencies lie in the simulated ranges, and what may explain the others."""
    judged = [figure for figure in found.figures if figure.is_met is not None]
    if not judged:
        return "The file states no latency that is simulated."
    met = sum(figure.is_met is True for figure in judged)
    text = f"{met} of {len(judged)} measured latencies lie in the simulated range."
    reasons = "".join(f" {reason}" for reason in _reasons(found)) if met < len(judged) else ""
    return f"{text}{reasons}"


def _reasons(found: MeasuredComparison) -> list[str]:
    """Return features of the measured run that the simulation lacks."""
    run, simulation, reasons = found.run, found.simulation, []
    if run.failed_requests:
        reasons.append(f"{fmt.plural(run.failed_requests, 'request')} failed and are not in the measured latencies.")
    lost = 0 if simulation.cache is None else simulation.cache.preemptions
    if run.preemptions is not None and bool(run.preemptions) != bool(lost):
        reasons.append(
            f"The server preempted {fmt.plural(run.preemptions, 'request')}, the simulation {fmt.integer(lost)}."
        )
    if run.prefix_hit_tokens and simulation.cache is not None and not simulation.cache.prefix_hit_fraction:
        reasons.append("The server found prompt tokens in its prefix cache; --shared-prefix simulates that.")
    if simulation.saturated:
        reasons.append("The simulated service cannot keep up, so that its waits grow with the number of requests.")
    if run.engine is None:
        reasons.append("The file does not name its program.")
    elif run.engine != found.program:
        names = [SOFTWARE[name].title if name in SOFTWARE else name for name in (run.engine, found.program)]
        reasons.append(f"The server was {names[0]}, and {names[1]} is simulated.")
    return reasons


def measured_columns() -> tuple[Column[MeasuredFigure], ...]:
    """Return the columns of a table with a row for each measured figure."""
    figure: Column[MeasuredFigure] = text_column("figure", "Figure", _title, width=28, about="What was measured")
    measured: Column[MeasuredFigure] = number_column(
        "measured", "Measured", lambda row: row.measured, text=_measured_text, width=18, about="In the file"
    )
    simulated: Column[MeasuredFigure] = number_column(
        "simulated", "Simulated", lambda row: row.simulated, text=_simulated_text, width=26, about="With its range"
    )
    difference: Column[MeasuredFigure] = number_column(
        "difference",
        "Difference",
        lambda row: row.simulated / row.measured - 1 if row.measured else None,
        show=fmt.signed_percent,
        unknown="–",
        width=10,
        about="Simulated relative to measured",
        lower_is_better=None,
    )
    met: Column[MeasuredFigure] = text_column(
        "met", "In range", lambda row: "–" if row.is_met is None else fmt.yes_no(row.is_met), about="Within the range"
    )
    return figure, measured, simulated, difference, met


def _title(row: MeasuredFigure) -> str:
    return row.figure if row.latency is None else f"{LATENCY_HEADERS[row.latency]}, {row.figure}"


def _measured_text(row: MeasuredFigure) -> str:
    if row.latency is None:
        return fmt.plain(row.measured)
    return fmt.duration_with_range(row.measured, row.measured_low, row.measured_high)


def _simulated_text(row: MeasuredFigure) -> str:
    return (
        fmt.plain(row.simulated) if row.latency is None else fmt.duration_with_range(row.simulated, row.low, row.high)
    )
