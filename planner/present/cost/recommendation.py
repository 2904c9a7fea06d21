"""Hardware recommendations as sentences and table rows."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.hardware.catalog import HardwareCatalog
from planner.plan.recommend.option import Award, HardwareOption, Recommendation
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.memory.verdict import exclusion_text, verdict_text

AWARDS: Final[tuple[Award, ...]] = ("cheapest", "fastest", "best value")
_SECONDS_PER_HOUR: Final = 3_600


class OptionRow(NamedTuple):
    """An option with the name of its card and its awards; `period` is `run` or `month`."""

    option: HardwareOption
    card: str
    awards: tuple[Award, ...]
    is_unbeaten: bool
    period: str

    @property
    def id(self) -> str:
        """Return the unique key of the option."""
        return self.option.key

    @property
    def cards(self) -> str:
        """Return `2 × L40S, with ZeRO-3`."""
        sharing = f", {self.option.sharing}" if self.option.sharing else ""
        return f"{fmt.count_of(self.option.count, self.card)}{sharing}"

    @property
    def how(self) -> str:
        """Return `RunPod Secure, on demand` or `owned`."""
        option = self.option
        return "owned" if option.mode is None else f"{option.provider}, {RENT_MODE_TITLES[option.mode]}"


class AwardView(NamedTuple):
    """An award, such as the cheapest: the option with its cost and time, the reason, and the runner-up."""

    award: Award
    row: OptionRow
    sentence: str
    reason: str
    change: str


def option_rows(found: Recommendation, hardware: HardwareCatalog) -> tuple[OptionRow, ...]:
    """Return a row for each option, in the same order."""
    names = {gpu.id: gpu.name for gpu in hardware.gpus}
    unbeaten = frozenset(found.pareto)
    return tuple(
        OptionRow(option, names[option.gpu], _awards(option, found), option.key in unbeaten, found.period)
        for option in found.options
    )


def award_views(found: Recommendation, rows: tuple[OptionRow, ...]) -> tuple[AwardView, ...]:
    """Return the awards; one option may have several."""
    by_key = {row.id: row for row in rows}
    views = []
    for award in AWARDS:
        option = _award_winner(award, found)
        if option is not None:
            row = by_key[option.key]
            views.append(AwardView(award, row, _sentence(row), _reason(award, row), _change(award, row, rows)))
    return tuple(views)


def no_option_sentence(found: Recommendation, hardware: HardwareCatalog) -> str:
    """Return why no option is within the limits and which is closest; empty if there is an option."""
    if found.cheapest is not None:
        return ""
    if found.nearest is None:
        return "No hardware in the catalog can run this job at a comparable price."
    near = OptionRow(found.nearest, hardware.gpu(found.nearest.gpu).name, (), is_unbeaten=False, period=found.period)
    return f"No option is within the limits. Closest: {_sentence(near)}"


def excluded_sentence(found: Recommendation) -> str:
    """Return how many options were excluded and why: `Excluded: 550 (the plan does not fit), 50 (…).`."""
    told = tuple(f"{fmt.integer(one.count)} ({exclusion_text(one.reason)})" for one in found.left_out)
    return f"Excluded: {fmt.listing(told)}." if told else ""


def _award_winner(award: Award, found: Recommendation) -> HardwareOption | None:
    return {"cheapest": found.cheapest, "fastest": found.fastest, "best value": found.best_value}[award]


def _awards(option: HardwareOption, found: Recommendation) -> tuple[Award, ...]:
    return tuple(award for award in AWARDS if _award_winner(award, found) == option)


def _sentence(row: OptionRow) -> str:
    option = row.option
    hours = fmt.duration_with_range(
        *(value * _SECONDS_PER_HOUR for value in (option.hours, option.low_hours, option.high_hours))
    )
    took = f", {hours}" if row.period == "run" else ""
    memory = verdict_text(option.verdict, option.free_bytes, option.fit_probability)
    return f"{row.cards}, {row.how}: {fmt.money(option.usd)} per {row.period}{took}. {memory}."


def _reason(award: Award, row: OptionRow) -> str:
    option = row.option
    bound = f" (limited by {option.bound})" if option.bound else ""
    speed, unit = (
        option.tokens_per_second or option.samples_per_second,
        "tokens" if option.tokens_per_second else "samples",
    )
    pace = f"{fmt.significant(speed)} {unit}/s{bound}" if speed else ""
    power = f"{fmt.power(option.power_watts)} of board power" if option.power_watts else ""
    why = {
        "cheapest": "no comparable option costs less",
        "fastest": "no option takes less time",
        "best value": "the lowest product of time and cost",
    }[award]
    told = fmt.listing(tuple(part for part in (pace, power) if part))
    return " ".join(fmt.sentence(part) for part in (why, told) if part)


def _change(award: Award, row: OptionRow, rows: tuple[OptionRow, ...]) -> str:
    """Return the runner-up for the award, and by how much it is behind."""
    sure = [other for other in rows if other.option.comparable and _has_other_cards(other, row)]
    second = min(sure, key=lambda other: _score(award, other.option), default=None)
    if second is None:
        return ""
    behind = _score(award, second.option) / _score(award, row.option) - 1
    what = {"cheapest": "more expensive", "fastest": "slower", "best value": "higher time × cost"}[award]
    told = f"{fmt.precise_percent(behind)} {what}" if behind else "just as good"
    return f"Next: {second.cards}, {second.how}, {told}."


def _score(award: Award, option: HardwareOption) -> float:
    """Return the score that the award's winner has lowest."""
    if award == "cheapest":
        return option.usd
    return option.slowness if award == "fastest" else option.usd * option.slowness


def _has_other_cards(other: OptionRow, row: OptionRow) -> bool:
    """Return whether `other` has different cards, not just another offer of the same ones."""
    return other.id != row.id and (other.option.gpu, other.option.count) != (row.option.gpu, row.option.count)


def recommendation_lines(found: Recommendation, hardware: HardwareCatalog) -> Iterator[str]:
    """Yield the awards with their reasons, or why there are none."""
    rows = option_rows(found, hardware)
    for view in award_views(found, rows):
        yield f"{view.award.capitalize()}: {view.sentence}"
        yield f"  {view.reason}{f' {view.change}' if view.change else ''}"
    nothing = no_option_sentence(found, hardware)
    if nothing:
        yield nothing


OPTION_COLUMNS: Final[tuple[Column[OptionRow], ...]] = (
    text_column("cards", "Cards", lambda row: row.cards, width=26),
    text_column("how", "Provider", lambda row: row.how, width=24),
    number_column("usd", "Cost", lambda row: row.option.usd, show=fmt.money, width=9),
    Column(
        "hours",
        "Time",
        lambda row: row.option.hours,
        lambda row: fmt.duration(row.option.hours * _SECONDS_PER_HOUR),
        align="right",
        width=9,
    ),
    Column(
        "free",
        "Memory",
        lambda row: row.option.free_bytes,
        lambda row: verdict_text(row.option.verdict, row.option.free_bytes, row.option.fit_probability),
        width=18,
    ),
    number_column("pace", "Tokens/s", lambda row: row.option.tokens_per_second, unknown=fmt.UNKNOWN, width=9),
    text_column("bound", "Limited by", lambda row: row.option.bound, width=16),
    number_column("power", "Power", lambda row: row.option.power_watts, unit="W", width=8),
    text_column("date", "Price date", lambda row: row.option.price_date, unknown="no date", width=10),
    text_column("awards", "", lambda row: ", ".join(row.awards) or None, unknown="", width=20),
    text_column("remarks", "Remarks", lambda row: "; ".join(row.option.remarks) or None, unknown="", width=24),
)
