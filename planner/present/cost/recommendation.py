"""Hardware recommendations as sentences and table rows."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from planner.cost.renting.table import UNDATED
from planner.cost.terms import CostTerms, DailyHours, Service
from planner.hardware.catalog import HardwareCatalog
from planner.plan.recommend.option import Award, HardwareOption, Recommendation, excess_factors
from planner.present import format as fmt
from planner.present.columns import Column, number_column, text_column
from planner.present.cost.prices import RENT_MODE_TITLES
from planner.present.cost.summary import years_phrase
from planner.present.memory.verdict import exclusion_text, verdict_text

_BEST_VALUE: Final = {
    "run": "Best value: lowest price × time among options up to twice the lowest price.",
    "month": "Best value: lowest price × time per token among options up to twice the lowest price.",
}
AWARDS: Final[tuple[Award, ...]] = ("cheapest", "fastest", "best value")
NO_HARDWARE: Final = (
    "None of this hardware can run the job at a comparable price. Allow more GPUs, quantized weights or tight fits."
)
UNMEASURED: Final = "No speed was measured on this family of GPUs"
_GUESSED: Final = "speed not measured"
_SECONDS_PER_HOUR: Final = 3_600
_BITS: Final = 8
_GIGA: Final = 1e9


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
        """Return `2 × L40S, with ZeRO-3`, with the cards of all copies: `12 × L40S, 3 copies of 4`."""
        return ", ".join(filter(None, (self.headline, self.arrangement)))

    @property
    def headline(self) -> str:
        """Return `12 × L40S`, the cards of all copies."""
        return fmt.count_of(self.option.cards, self.card)

    @property
    def arrangement(self) -> str:
        """Return `3 copies of 4, with tensor parallelism`; empty if each card holds all of the model, or it is one."""
        option = self.option
        each = f" of {fmt.integer(option.count)}" if option.count > 1 else ""
        copies = f"{fmt.integer(option.copies)} copies{each}" if option.copies > 1 else ""
        return ", ".join(filter(None, (copies, option.sharing)))

    @property
    def how(self) -> str:
        """Return `RunPod Secure, on demand`, `owned`, or `your own` for cards that are not bought any more."""
        option = self.option
        if option.mode is not None:
            return f"{option.provider}, {RENT_MODE_TITLES[option.mode]}"
        return "owned" if option.purchase_usd is not None else "your own"

    @property
    def machines(self) -> str:
        """Return `2 machines of 8` for rented machines with several cards, `2 machines` for others."""
        option = self.option
        is_stated = option.having == "rent" and option.cards_per_machine > 1
        each = f" of {fmt.integer(option.cards_per_machine)}" if is_stated else ""
        return f"{fmt.plural(option.machines, 'machine')}{each}"


class Meter(NamedTuple):
    """An amount with its fraction of the largest such amount among the recommended options."""

    label: str
    text: str
    fraction: float


class AwardView(NamedTuple):
    """A recommended option: its awards, the trade-off in one line, price and time on common scales, facts and warnings.

    Awards of the same option are one view. The option that is closest to limits that none keeps has no award.
    """

    awards: tuple[Award, ...]
    row: OptionRow
    why: str
    meters: tuple[Meter, ...]
    facts: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def title(self) -> str:
        """Return `Cheapest and best value`, and `speed not measured` for cards of families without measurements."""
        title = fmt.capitalized(fmt.listing(self.awards) or "closest to the limits")
        return f"{title}, {_GUESSED}" if self.row.option.basis == "unmeasured" else title

    @property
    def text(self) -> str:
        """Return the recommended option as lines of text."""
        amounts = ", ".join(meter.text for meter in self.meters)
        return "\n".join((f"{self.title}: {self.row.cards}, {self.row.how}", self.why, amounts, *self.notes))

    @property
    def notes(self) -> tuple[str, ...]:
        """Return the facts and the warnings."""
        return (*self.facts, *self.warnings)


def option_rows(found: Recommendation, hardware: HardwareCatalog) -> tuple[OptionRow, ...]:
    """Return a row for each option, in the same order; those alike, such as a provider's regions, are one row."""
    names = {gpu.id: gpu.name for gpu in hardware.gpus}
    unbeaten = frozenset(found.pareto)
    columns = tuple(column for column in option_columns(found.period) if column.key != "awards")
    kept: dict[tuple[str, ...], OptionRow] = {}
    for option in found.options:
        row = _row(option, found, names[option.gpu], is_unbeaten=option.key in unbeaten)
        texts = tuple(column.text(row) for column in columns)
        if texts not in kept or row.awards:
            kept[texts] = row
    return tuple(kept.values())


def _row(option: HardwareOption, found: Recommendation, card: str, *, is_unbeaten: bool = False) -> OptionRow:
    awards = tuple(award for award in AWARDS if _award_winner(award, found) == option)
    return OptionRow(option, card, awards, is_unbeaten, found.period)


def award_views(found: Recommendation, hardware: HardwareCatalog) -> tuple[AwardView, ...]:
    """Return the recommended options, an option with several awards once; else the one closest to the limits."""
    winners = [option for award in AWARDS if (option := _award_winner(award, found)) is not None]
    shown = list({option.key: option for option in winners or filter(None, (found.nearest,))}.values())
    rows = [_row(option, found, hardware.gpu(option.gpu).name) for option in shown]
    meters = [_price_and_speed(row) for row in rows]
    largest = [max((amount for _, _, amount in column), default=0.0) or 1.0 for column in zip(*meters, strict=True)]
    return tuple(
        AwardView(
            row.awards,
            row,
            _trade_off(row.option, found),
            tuple(Meter(label, text, amount / most) for (label, text, amount), most in zip(own, largest, strict=True)),
            tuple(_facts(row)),
            tuple(_warnings(row.option)),
        )
        for row, own in zip(rows, meters, strict=True)
    )


def _price_and_speed(row: OptionRow) -> tuple[tuple[str, str, float], ...]:
    """Return label, text and amount of the price, and of the time of a run or the speed of what has no end."""
    option = row.option
    bought = "" if option.purchase_usd is None else f"; {fmt.money(option.purchase_usd)} to buy"
    price = ("Price", f"{fmt.money(option.usd)} per {row.period}{bought}", option.usd)
    if row.period == "run":
        return (price, ("Time", _hours_text(option), option.hours))
    return (price, ("Speed", _speed_text(option), 1 / option.slowness))


def _hours_text(option: HardwareOption) -> str:
    ends = (option.hours, option.low_hours, option.high_hours)
    return fmt.duration_with_range(*(value * _SECONDS_PER_HOUR for value in ends))


def _speed_text(option: HardwareOption) -> str:
    """Return `1,670 tokens/s`; for answers `24.7 tokens/s per answer`."""
    tokens = option.relevant_tokens_per_second
    if tokens is None:
        return f"{fmt.rounded(option.samples_per_second)} samples/s" if option.samples_per_second else fmt.UNKNOWN
    per = "" if option.period == "run" or option.output_token_seconds is None else " per answer"
    return f"{fmt.rounded(tokens)} tokens/s{per}"


def _trade_off(option: HardwareOption, found: Recommendation) -> str:
    """Return what the option gains and costs beside the others, or by how much it misses the limits."""
    cheapest, fastest = found.cheapest, found.fastest
    if cheapest is None or fastest is None:
        misses = (f"{fmt.significant(factor, 2)} times {limit}" for limit, factor in excess_factors(option, found.wish))
        return fmt.sentence(fmt.listing(tuple(misses)))
    rule = f" {_BEST_VALUE[found.period]}" if option == found.best_value and cheapest != fastest else ""
    if option != cheapest:
        return f"{fmt.capitalized(_ratio_text(option, cheapest))} the price of the cheapest.{rule}"
    least = _cheaper_text(cheapest, found)
    if option == fastest:
        return f"{least}None is clearly faster.{rule}"
    return f"{least}The fastest is {_ratio_text(fastest, cheapest)} the price.{rule}"


def _cheaper_text(cheapest: HardwareOption, found: Recommendation) -> str:
    """Return why options that cost less than the cheapest are not recommended; empty if none does."""
    cheaper = [option for option in found.options if option.comparable and option.usd < cheapest.usd]
    reasons = (
        ("their rental price is old or undated", any(not option.current for option in cheaper)),
        ("their speed was never measured", any(option.basis == "unmeasured" for option in cheaper)),
    )
    if not cheaper:
        return ""
    doubts = fmt.listing(tuple(reason for reason, applies in reasons if applies), "or")
    least = min(option.usd for option in cheaper)
    return f"Cheaper options, from {fmt.money(least)}, are passed over because {doubts}. "


def assumed_use_sentence(terms: CostTerms) -> str:
    """Return the job that the prices are for: `For 8 hours per day, 5 days per week, over 5 years.`."""
    job, years = terms.job, years_phrase(terms.horizon_years)
    match job:
        case DailyHours():
            hours = f"{fmt.plain(job.hours_per_day)} hours per day, {fmt.plain(job.days_per_week)} days per week"
            return f"For {hours}, over {years}."
        case Service():
            return f"For {fmt.significant(job.requests_per_day)} requests per day, over {years}."
        case _:
            amount = f"run of {fmt.significant(job.amount)} {job.unit}"
            if job.repeats_per_year is None:
                return f"For one {amount}. Hardware bought for it is assumed to be sold after {years}."
            return f"For a {amount}, {fmt.plain(job.repeats_per_year)} times per year, over {years}."


def _ratio_text(option: HardwareOption, cheapest: HardwareOption) -> str:
    """Return `about 4.2 times as fast for 1.8 times`, beside the cheapest option."""
    faster, dearer = cheapest.slowness / option.slowness, option.usd / cheapest.usd
    return f"about {fmt.significant(faster, 2)} times as fast for {fmt.significant(dearer, 2)} times"


def _facts(row: OptionRow) -> Iterator[str]:
    """Yield the machines, the speed and the memory with the power, each as a short line."""
    option = row.option
    rented = option.machines * option.cards_per_machine if option.having == "rent" else option.cards
    if option.machines > 1 or rented > option.cards:
        unused = f", of which the job uses {fmt.integer(option.cards)}" if rented > option.cards else ""
        yield f"{fmt.plural(rented, 'GPU')} in {row.machines}{unused}"
    bound = f", limited by {option.bound}" if option.bound else ""
    if row.period == "run" and option.slowness:
        yield f"{_speed_text(option)}{bound}"
    power = f"; {fmt.power(option.power_watts)} of board power" if option.power_watts else ""
    yield f"{verdict_text(option.verdict, option.free_bytes, option.fit_probability)}{power}"
    if option.purchase_usd is not None and option.upfront_usd is not None:
        what = "GPU" if option.cards == 1 else "GPUs"
        yield f"{fmt.money(option.upfront_usd)} at the start, with the machine for the {what}"
    if option.price_date is not None:
        yield f"Price of {fmt.date(option.price_date)}"


def _warnings(option: HardwareOption) -> Iterator[str]:
    """Yield what a person should know before taking the option: changes, guesses, the network, doubts of the price."""
    if option.changes:
        yield f"Changes the plan: {fmt.listing(option.changes)}"
    if option.basis == "unmeasured":
        yield UNMEASURED
    if option.network_bytes_per_s is not None:
        network = f"{fmt.integer(round(option.network_bytes_per_s * _BITS / _GIGA))} Gbit/s for each GPU"
        if option.network_usd is None:
            yield f"Needs {network} between the machines, taken as part of their price"
        else:
            yield f"Includes {fmt.money(option.network_usd)} for {network} between the machines"
    if option.price_date is None and (option.having == "rent" or option.purchase_usd is not None):
        yield "The price has no date"
    yield from (fmt.capitalized(remark) for remark in option.remarks if remark != UNDATED)


def no_option_sentence(found: Recommendation) -> str:
    """Return why there is no option; empty if there is one."""
    if found.cheapest is not None:
        return ""
    if found.nearest is None:
        return NO_HARDWARE
    return "No option is within the limits."


def excluded_sentence(found: Recommendation) -> str:
    """Return how many options were excluded and why: `Excluded: 550 (the plan does not fit), 50 (…).`."""
    texts = tuple(f"{fmt.integer(one.count)} ({exclusion_text(one.reason)})" for one in found.left_out)
    return f"Excluded options: {fmt.listing(texts)}." if texts else ""


def _award_winner(award: Award, found: Recommendation) -> HardwareOption | None:
    return {"cheapest": found.cheapest, "fastest": found.fastest, "best value": found.best_value}[award]


def _mark(row: OptionRow) -> str:
    """Return the awards, and whether the speed was never measured on such cards."""
    return ", ".join((*row.awards, *((_GUESSED,) if row.option.basis == "unmeasured" else ())))


OPTION_COLUMNS: Final[tuple[Column[OptionRow], ...]] = (
    text_column("cards", "GPUs", lambda row: row.cards, width=37, about="Number and kind of GPUs"),
    text_column("how", "Provider", lambda row: row.how, width=25, about="Rental provider, or owned"),
    text_column("machines", "Machines", lambda row: row.machines, width=16, shown=False, about="Number of machines"),
    number_column(
        "usd", "Cost", lambda row: row.option.usd, show=fmt.money, width=9, about="Cost of the job on these GPUs"
    ),
    Column(
        "hours",
        "Time",
        lambda row: row.option.hours,
        lambda row: fmt.duration(row.option.hours * _SECONDS_PER_HOUR),
        align="right",
        width=8,
        help="Time that the job takes",
    ),
    number_column(
        "purchase",
        "To buy",
        lambda row: row.option.purchase_usd,
        show=fmt.money,
        width=9,
        unknown="–",
        about="Purchase price of the GPUs, if they are bought",
    ),
    Column(
        "pace",
        "Speed",
        lambda row: 1 / row.option.slowness,
        lambda row: _speed_text(row.option),
        align="right",
        width=16,
        lower_is_better=False,
        help="Tokens or samples per second, of all GPUs together",
    ),
    Column(
        "free",
        "Memory",
        lambda row: row.option.free_bytes,
        lambda row: verdict_text(row.option.verdict, row.option.free_bytes, row.option.fit_probability),
        width=18,
        help="Memory needed and free on each GPU",
    ),
    text_column("bound", "Limited by", lambda row: row.option.bound, width=16, about="What takes most of the time"),
    number_column(
        "power",
        "Power",
        lambda row: row.option.power_watts,
        unit="W",
        width=8,
        about="Board power of all GPUs together (rated maximum)",
    ),
    text_column(
        "date", "Price date", lambda row: row.option.price_date, unknown="no date", width=10, about="Date of the price"
    ),
    text_column(
        "awards", "", lambda row: _mark(row) or None, unknown="", width=20, about="Cheapest, fastest and best value"
    ),
    text_column(
        "changes",
        "Changes to the plan",
        lambda row: ", ".join(row.option.changes) or None,
        unknown="none",
        about="What the option changes in the plan so that it fits",
    ),
    text_column(
        "remarks",
        "Remarks",
        lambda row: (
            "; ".join((*((UNMEASURED,) if row.option.basis == "unmeasured" else ()), *row.option.remarks)) or None
        ),
        unknown="",
        width=24,
        about="What to know about the option",
    ),
)


def option_columns(period: str) -> tuple[Column[OptionRow], ...]:
    """Return the columns that make sense for a run or for a month, which has no duration of its own."""
    return tuple(column for column in OPTION_COLUMNS if column.key != "hours" or period == "run")
