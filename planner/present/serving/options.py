"""Hardware for a service: options as rows, the best one in a sentence, and what would change it."""

from collections.abc import Callable
from typing import Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.plan.plan import Plan
from planner.plan.recommend.option import HardwareOption
from planner.plan.serving.answer import Consequence, Objective, ServingAnswer, ServingOption, WhatIf
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.cost.recommendation import OptionRow
from planner.present.memory.verdict import exclusion_text
from planner.present.serving.simulation import OUTCOME_WORDS, Outcome, simulation_outcome
from planner.serving.targets import Goodput, Latency
from planner.workload.software.registry import SOFTWARE

OBJECTIVES: Final[dict[Objective, str]] = {"usd": "cheapest", "cards": "fewest GPUs", "watts": "least power"}
_GROWTH: Final[dict[WhatIf, str]] = {
    "longer-prompts": "Prompts {more} longer",
    "longer-answers": "Answers {more} longer",
    "more-requests": "{more} more requests",
}
_MOST_REASONS: Final = 6


class ServingRow(NamedTuple):
    """An option with the name of its card."""

    option: ServingOption
    card: str
    goodput: Goodput | None = None

    @property
    def id(self) -> str:
        """Return the unique key of the option."""
        option = self.option
        return "/".join((option.plan.gpu or "", str(option.replicas), str(option.cards_per_replica), *option.changes))

    @property
    def cards(self) -> str:
        """Return `4 × L40S`."""
        return fmt.count_of(self.option.cards, self.card)

    @property
    def arrangement(self) -> str:
        """Return `2 replicas of 2, KV cache in fp8`; empty for one replica on one card."""
        option = self.option
        each = f" of {option.cards_per_replica}" if option.cards_per_replica > 1 else ""
        replicas = f"{fmt.plural(option.replicas, 'replica')}{each}" if option.replicas > 1 or each else ""
        return ", ".join(filter(None, (replicas, *option.changes)))

    @property
    def how(self) -> str:
        """Return `RunPod Secure, on demand`, `owned`, or that no price is known."""
        hardware = self.option.hardware
        return "price unknown" if hardware is None else _acquisition(hardware, self.card)

    @property
    def is_guessed(self) -> bool:
        """Return whether no speed was measured on this family of cards."""
        return self.option.hardware is not None and self.option.hardware.basis == "unmeasured"

    @property
    def outcome(self) -> Outcome:
        """Return how surely the targets are met."""
        return simulation_outcome(self.option.simulation, self.goodput)

    def percentile(self, name: Latency, percent: float = 95.0) -> float | None:
        """Return a percentile of a time in seconds, None if no request had it."""
        table = self.option.simulation.latency(name)
        return None if table is None else table.percentile(percent).seconds


def _acquisition(hardware: HardwareOption, card: str) -> str:
    return OptionRow(hardware, card, (), is_unbeaten=False, period="month").how


def serving_rows(
    answer: ServingAnswer, hardware: HardwareCatalog, goodput: Goodput | None = None
) -> tuple[ServingRow, ...]:
    """Return a row for each option of a search, in the same order."""
    return tuple(serving_row(option, hardware, goodput) for option in answer.options)


def serving_row(option: ServingOption, hardware: HardwareCatalog, goodput: Goodput | None = None) -> ServingRow:
    """Return the row of an option."""
    assert option.plan.gpu is not None
    return ServingRow(option, hardware.gpu(option.plan.gpu).name, goodput)


def option_sentence(row: ServingRow) -> str:
    """Return an option in one line: `2 × L40S (2 replicas), RunPod Secure, on demand, $812 per month`."""
    arrangement = f" ({row.arrangement})" if row.arrangement else ""
    usd = row.option.usd_per_month
    price = "" if usd is None else f", {fmt.money(usd)} per month"
    guessed = ", speed not measured" if row.is_guessed else ""
    return f"{row.cards}{arrangement}, {row.how}{price}{guessed}"


def program_title(plan: Plan) -> str:
    """Return the name of the program that serves the requests of a plan."""
    assert plan.workload.profile is not None  # a service without a program is given one
    return SOFTWARE[plan.workload.profile].title


def consequence_sentence(found: Consequence) -> str:
    """Return what a change does: `Prompts 10 % longer: misses p95 time to first token`."""
    more = fmt.percent(abs(found.factor - 1))
    if found.change in _GROWTH:
        change = _GROWTH[found.change].format(more=more)
        return f"{change}: still met" if found.holds else f"{change}: misses {_broken(found)}"
    if found.change == "fewer-replicas":
        return "One replica fewer: still met" if found.holds else f"One replica fewer: misses {_broken(found)}"
    if found.change == "fp8-cache":
        holds = "" if found.cache_factor is None else f" holds {fmt.plain(found.cache_factor)} × the tokens"
        return f"A KV cache in FP8{holds}" + ("" if found.holds else f", and misses {_broken(found)}")
    return "Without the prefix cache: " + ("still met" if found.holds else f"misses {_broken(found)}")


def _broken(found: Consequence) -> str:
    return fmt.listing(found.broken) or "a target"


def search_sentence(answer: ServingAnswer) -> str:
    """Return how many options meet the targets and which of them are cheaper than the best; or that none meets them."""
    if answer.options:
        count = len(answer.options)
        sure = sum(simulation_outcome(option.simulation) == "yes" for option in answer.options)
        meet = f"{'' if sure == count else 'probably '}{'meets' if count == 1 else 'meet'} the targets"
        surely = f", {fmt.integer(sure)} of them for sure" if 0 < sure < count else ""
        return f"{fmt.plural(count, 'option')} {meet}{surely}. {_cheaper_sentence(answer)}".rstrip()
    if answer.complete:
        return "No hardware within the limits meets the targets."
    return "Nothing found so far."


def _cheaper_sentence(answer: ServingAnswer) -> str:
    """Return how many options cost less than the best one and why they are not the best; empty without any."""
    best = answer.options[0].usd_per_month
    prices = [option.usd_per_month for option in answer.options if option.usd_per_month is not None]
    cheaper = 0 if answer.wish.objective != "usd" or best is None else sum(price < best for price in prices)
    if not cheaper:
        return ""
    return f"Cheaper, but with a speed never measured on such GPUs or an old price: {fmt.integer(cheaper)}."


def left_out_sentence(answer: ServingAnswer) -> str:
    """Return how many configurations were left out, and why."""
    texts = tuple(f"{fmt.integer(one.count)} ({exclusion_text(one.reason)})" for one in answer.left_out[:_MOST_REASONS])
    rest = sum(one.count for one in answer.left_out[_MOST_REASONS:])
    if rest:
        texts = (*texts, f"{fmt.integer(rest)} for other reasons")
    return f"Left out: {fmt.listing(texts)}." if texts else ""


def _seconds_column(name: Latency, title: str, unit: str, per_unit: float) -> Column[ServingRow]:
    return number_column(
        f"{name}-p95",
        title,
        lambda row: row.percentile(name),
        unit=unit,
        per_unit=per_unit,
        unknown=fmt.UNKNOWN,
        width=14,
        about="95 % of the requests take at most this",
        lower_is_better=True,
    )


def _of(get: Callable[[ServingOption], float | None]) -> Callable[[ServingRow], float | None]:
    return lambda row: get(row.option)


SERVING_COLUMNS: Final[tuple[Column[ServingRow], ...]] = (
    text_column("cards", "GPUs", lambda row: row.cards, width=22, about="Number and kind of GPUs"),
    text_column(
        "arrangement", "Arrangement", lambda row: row.arrangement or "1 replica", width=16, about="Copies of the model"
    ),
    text_column("how", "Provider", lambda row: row.how, width=16, about="Rental provider, or owned"),
    number_column(
        "usd",
        "Per month",
        _of(lambda option: option.usd_per_month),
        show=fmt.money,
        unknown=fmt.UNKNOWN,
        measure=fmt.USD,
        about="Cost per month, day and night",
        lower_is_better=True,
    ),
    _seconds_column("ttft", "First token, p95", "s", 1.0),
    _seconds_column("tpot", "Per token, p95", "ms", 0.001),
    text_column("outcome", "Targets", lambda row: OUTCOME_WORDS[row.outcome], width=14, about="Whether they are met"),
    text_column(
        "basis",
        "Speed",
        lambda row: "not measured" if row.is_guessed else "estimated",
        width=12,
        about="Not measured: no speed was ever measured on this family of GPUs",
    ),
    number_column(
        "busy",
        "Busy",
        _of(lambda option: 100 * option.simulation.busy_fraction),
        unit="%",
        about="Share of the time in which the GPUs work",
        lower_is_better=None,
    ),
    number_column(
        "watts",
        "Power",
        _of(lambda option: option.watts),
        unit="W",
        unknown=fmt.UNKNOWN,
        shown=False,
        about="Rated power of all GPUs",
        lower_is_better=True,
    ),
)
"""Columns of the table of options."""
