"""The simulated service as the Cost tab shows it: an answer, latencies beside their targets, and what limits it."""

from typing import NamedTuple

from planner.present import format as fmt
from planner.present.serving.simulation import (
    OUTCOME_WORDS,
    Outcome,
    latency_outcome,
    latency_with_range,
    load_sentence,
    sample_sentence,
    simulation_outcome,
    simulation_sentence,
)
from planner.present.serving.traffic import LATENCY_HEADERS, limit_text
from planner.serving.result import LatencyTable, ServingSimulation
from planner.serving.targets import Latency, Targets

_SHOWN: tuple[Latency, ...] = ("ttft", "tpot", "e2e")


class LatencyRow(NamedTuple):
    """A time of the requests: its median, the percentile of the targets with its range, and the target."""

    title: str
    median: str
    percentile: str
    target: str
    outcome: Outcome | None


class ServingView(NamedTuple):
    """Contents of the card: the answer, its rows, and further sentences."""

    sentence: str
    outcome: Outcome
    percent: str = ""
    rows: tuple[LatencyRow, ...] = ()
    load: str = ""
    sample: str = ""

    @property
    def text(self) -> str:
        """Return the contents as lines of text."""
        rows = (
            ", ".join(
                filter(None, (f"{row.title}: median {row.median}", f"{self.percent} {row.percentile}", row.target))
            )
            for row in self.rows
        )
        return "\n".join(filter(None, (self.sentence, *rows, self.load, self.sample)))


def serving_view(simulation: ServingSimulation, targets: Targets, percent: float) -> ServingView:
    """Return the card of a simulated service; `percent` is the percentile of its targets."""
    sentence, outcome = simulation_sentence(simulation), simulation_outcome(simulation)
    if simulation.unsupported is not None:
        return ServingView(sentence, outcome)
    rows = [
        _latency_row(table, simulation, targets, percent)
        for name in _SHOWN
        if (table := simulation.latency(name)) is not None
    ]
    return ServingView(
        sentence, outcome, f"p{percent:g}", tuple(rows), load_sentence(simulation), sample_sentence(simulation)
    )


def _latency_row(table: LatencyTable, simulation: ServingSimulation, targets: Targets, percent: float) -> LatencyRow:
    row = table.percentile(percent)
    limit = next((limit for limit in targets.limits if limit.latency == table.latency), None)
    outcome = None if limit is None else latency_outcome(simulation, limit)
    target = "" if limit is None or outcome is None else f"≤ {limit_text(limit.seconds)}, {OUTCOME_WORDS[outcome]}"
    return LatencyRow(
        title=LATENCY_HEADERS[table.latency],
        median=fmt.duration(table.percentile(50.0).seconds),
        percentile=latency_with_range(row.seconds, row.low_seconds, row.high_seconds),
        target=target,
        outcome=outcome,
    )
