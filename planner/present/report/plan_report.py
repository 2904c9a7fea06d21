"""The report on a plan: whether it fits, how fast it runs, what it costs, what to buy, and what the figures rest on."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import date
from typing import Final, NamedTuple

from planner import __version__
from planner.cost.estimate import CostEstimate
from planner.cost.rent_or_buy.uncertainty import Simulation, simulate, tornado
from planner.errors import PlannerError, SpecError
from planner.hardware.system import System
from planner.launch.launch import launch_settings
from planner.launch.settings import LaunchSettings
from planner.launch.software import LAUNCHERS
from planner.performance.result import TimeResult
from planner.plan.advice.advise import Advice, advise
from planner.plan.catalog import Catalog
from planner.plan.cost import PlanCost, evaluate_cost
from planner.plan.evaluate import Evaluation, evaluate
from planner.plan.plan import Plan
from planner.plan.recommend.option import Wish
from planner.plan.recommend.recommend import recommend
from planner.plan.warnings import warnings_about
from planner.present import format as fmt
from planner.present.catalog.system_details import machine_power_group, power_group
from planner.present.columns import DetailGroup
from planner.present.cost.amounts import MoneyRow, money_rows, swing_rows
from planner.present.cost.decision import NOTHING, buying_title, flip_chips, result_lines
from planner.present.cost.decision_card import DecisionView, decision_view
from planner.present.cost.offers import JOB_OFFER_COLUMNS
from planner.present.cost.recommendation import (
    assumed_use_sentence,
    excluded_sentence,
    no_option_sentence,
    option_columns,
    option_rows,
)
from planner.present.cost.summary import carbon_sentence, running_period
from planner.present.cost.time import TimeEstimateView, time_view
from planner.present.memory.advice import advice_row, advice_title
from planner.present.memory.verdict import hypothetical_note, needs_change
from planner.present.memory.view import MemoryView, evaluation_view
from planner.present.plan.phrase import hardware_phrase, plan_phrase, work_phrase
from planner.present.plan.settings import field_value_text, setting_title
from planner.present.report.document import (
    Block,
    Bullets,
    CodeListing,
    Prose,
    Report,
    ReportAnswer,
    ReportColumn,
    ReportSection,
    ReportTable,
    Tone,
    section,
    table_of,
)
from planner.present.report.figures import cost_figure, memory_blocks, swing_figure
from planner.workload.fields import fields_of
from planner.workload.presentation import FieldContext
from planner.workload.rules import field_reader
from planner.workload.software.registry import DEFAULT, serving_support

_VERDICT_TONES: Final[dict[str | None, Tone]] = {"fits": "ok", "tight": "warn", "does-not-fit": "bad"}
_ADVICE: Final = 6
_OFFERS: Final = 8
_FIRST_ROWS: Final = 3
_OPTIONS: Final = 8
_OPTION_KEYS: Final = ("cards", "how", "usd", "hours", "pace", "free", "date", "awards")
_OFFER_KEYS: Final = ("provider", "instance", "region", "usd", "gpu_hour", "age", "remarks")
_STATED: Final = "stated"
_DEFAULT: Final = "default"
_SERVER_PARTS: Final = ("cards", "servers")


class PlanReportParts(NamedTuple):
    """Everything that the report on a plan says, computed once."""

    evaluation: Evaluation
    memory: MemoryView
    cost: PlanCost
    decision: DecisionView
    simulation: Simulation | None
    advice: tuple[Advice, ...]
    catalog: Catalog
    today: date

    @property
    def estimate(self) -> CostEstimate | None:
        """Return the cost estimate, None if there is none or the plan cannot run."""
        return None if self.cost.blocked is not None else self.cost.estimate

    @property
    def card(self) -> str:
        """Return the name of the plan's card; empty without one."""
        gpu = self.evaluation.plan.gpu
        return "" if gpu is None else self.catalog.hardware.gpu(gpu).name


def report_on_plan(plan: Plan, catalog: Catalog, today: date) -> Report:
    """Return the report on `plan` with prices as of `today`.

    Raises:
        SpecError: If the plan names a model or a GPU that the catalog does not have.
    """
    return report_on_evaluated_plan(evaluate_for_report(plan, catalog, today))


def evaluate_for_report(plan: Plan, catalog: Catalog, today: date) -> PlanReportParts:
    """Return the estimates of `plan` that its report shows, with prices as of `today`.

    Raises:
        SpecError: If the plan names a model or a card that the catalog does not have.
    """
    evaluation = evaluate(plan, catalog)
    cost = evaluate_cost(evaluation, catalog, today)
    case = None if cost.estimate is None or cost.blocked is not None else cost.estimate.case
    return PlanReportParts(
        evaluation=evaluation,
        memory=evaluation_view(evaluation, catalog),
        cost=cost,
        decision=decision_view(cost, evaluation, catalog, today),
        simulation=None if case is None else simulate(case),
        advice=() if evaluation.traced is not None else advise(plan, catalog)[:_ADVICE],
        catalog=catalog,
        today=today,
    )


def report_on_evaluated_plan(parts: PlanReportParts) -> Report:
    """Return the report on an evaluated plan."""
    sections = (
        _workload_section(parts),
        _options_section(parts),
        _memory_section(parts),
        _speed_section(parts),
        _cost_section(parts),
        _bill_section(parts),
        _risk_section(parts),
        _launch_section(parts),
        _sources_section(parts),
    )
    return Report(
        title=plan_title(parts.evaluation, parts.catalog),
        question=plan_question(parts.evaluation, parts.catalog),
        answers=tuple(plan_answers(parts)),
        sections=tuple(part for part in sections if part.blocks),
        made=creation_sentence(parts.today),
        plan=parts.evaluation.plan,
    )


def creation_sentence(today: date) -> str:
    """Return the day and the version that made the report, and that it holds the plan."""
    day = fmt.date(today.isoformat())
    return f"Made on {day} by GPU Planner {__version__}; each price has a date of its own. This file holds the plan."


def plan_title(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return `Llama-3.1-8B on 2 × RTX 4090`, or the model alone for a plan without cards."""
    hardware = hardware_phrase(evaluation, catalog)
    return f"{evaluation.plan.model.id} on {hardware}" if hardware else evaluation.plan.model.id


def plan_question(evaluation: Evaluation, catalog: Catalog) -> str:
    """Return what the report answers, as a question."""
    work, hardware = work_phrase(evaluation), hardware_phrase(evaluation, catalog)
    if not evaluation.cards:
        return f"How much memory does {evaluation.plan.model.id} need ({work})?"
    return f"Does {evaluation.plan.model.id} ({work}) run on {hardware}, how fast, and is it cheaper to rent or to buy?"


def plan_answers(parts: PlanReportParts) -> Iterator[ReportAnswer]:
    """Yield the verdicts on memory, on time and on cost."""
    view, decision = parts.memory, parts.decision
    verdict = view.verdict
    facts = " · ".join(view.facts)
    yield ReportAnswer(view.headline, facts or view.certainty, _VERDICT_TONES.get(verdict, "none"))
    if needs_change(parts.evaluation.memory) and parts.advice:
        best = advice_row(parts.advice[0])
        yield ReportAnswer(f"{best.title}: {best.then}", f"The change that would help most: {best.price}.", "ok")
    time = _known_time(parts.evaluation.time)
    if time is not None and not decision.is_blocked:
        yield ReportAnswer(time.answer, time.reason)
    if parts.evaluation.cards and not decision.is_blocked:
        summary = decision.summary.removeprefix(decision.headline).strip(" .,")
        yield ReportAnswer(decision.headline, "\n".join(filter(None, (summary, *_first_amounts(decision)))))


def _first_amounts(decision: DecisionView) -> Iterator[str]:
    """Yield what renting and buying cost at the start, then and in total, and the age of the prices."""
    for row in decision.rows[:_FIRST_ROWS] if decision.awaits_range else decision.rows[-1:]:
        renting = "nothing" if row.renting == NOTHING else row.renting
        yield f"{row.title}: renting {renting}, {decision.buying_title.lower()} {row.buying}"
    yield decision.price_dates


def _known_time(time: TimeResult | None) -> TimeEstimateView | None:
    return None if time is None or time.seconds is None else time_view(time)


def _workload_section(parts: PlanReportParts) -> ReportSection:
    """Return the fields of the workload with their values, and which of them the plan states."""
    evaluation = parts.evaluation
    rows = tuple(_setting_rows(evaluation))
    table = ReportTable(tuple(map(ReportColumn, ("Setting", "Value", "Origin"))), rows)
    return section(
        "Workload and assumptions",
        Prose(plan_phrase(evaluation, parts.catalog)),
        Prose(f"Assumed: {parts.memory.assumed}." if parts.memory.assumed else ""),
        table,
        Prose(assumed_use_sentence(evaluation.plan.cost) if evaluation.cards else ""),
    )


def _setting_rows(evaluation: Evaluation) -> Iterator[tuple[str, str, str]]:
    workload, architecture = evaluation.workload, evaluation.architecture
    yield "Parameters", fmt.parameters(evaluation.parameters), ""
    if evaluation.active_parameters != evaluation.parameters:
        yield "Active parameters", fmt.parameters(evaluation.active_parameters), ""
    if architecture is None:
        return
    context = FieldContext(workload, architecture, evaluation.plan.count)
    read = field_reader(workload, count=evaluation.plan.count, model=architecture)
    stated = field_reader(evaluation.plan.workload, count=evaluation.plan.count, model=architecture)
    for name, field in fields_of(workload.task).items():
        value = (stated(name) if field.option.leads else None) or read(name)
        if not field.is_shown(context) or value in (None, "", ()):
            continue
        is_stated = stated(name) not in (None, field.default)
        if is_stated or field.option.choices is not None or field.kind == "number":
            yield field.title, field_value_text(field, value, context), _STATED if is_stated else _DEFAULT


def _options_section(parts: PlanReportParts) -> ReportSection:
    """Return the hardware that does the same job, the recommended first, or why none was looked for."""
    if parts.evaluation.traced is not None or not parts.evaluation.cards:
        return section("Other hardware for the same job")
    try:
        found = recommend(parts.evaluation.plan, parts.catalog, parts.today, Wish())
    except PlannerError as error:
        return section("Other hardware for the same job", Prose(fmt.sentence(error.message)))
    assert found is not None  # only a search that is stopped finds nothing
    plan = parts.evaluation.plan
    rows = sorted(option_rows(found, parts.catalog.hardware), key=lambda row: (not row.awards, not row.is_unbeaten))
    own = next((row for row in rows if (row.option.gpu, row.option.count) == (plan.gpu, plan.count)), None)
    shown = rows[:_OPTIONS] if own is None else [own, *(row for row in rows if row != own)][:_OPTIONS]
    keys = (*_OPTION_KEYS, "changes") if any(row.option.changes for row in shown) else _OPTION_KEYS
    table = table_of((column for column in option_columns(found.period) if column.key in keys), shown)
    heads = tuple(
        head._replace(title=f"Cost per {found.period}") if head.title == "Cost" else head for head in table.columns
    )
    return section(
        "Other hardware for the same job",
        Prose(no_option_sentence(found)),
        Prose("" if own is None else "The GPUs of the plan come first."),
        table._replace(columns=heads),
        Prose(f"{fmt.plural(len(rows), 'option')} found. {excluded_sentence(found)}" if rows else ""),
    )


def _memory_section(parts: PlanReportParts) -> ReportSection:
    return section("Memory", *memory_blocks(parts.memory))


def _speed_section(parts: PlanReportParts) -> ReportSection:
    time = parts.evaluation.time
    if time is None:
        return section("Speed")
    view = time_view(time)
    columns = (
        ReportColumn("Part"),
        ReportColumn("Time", "right"),
        ReportColumn("Share", "right"),
        ReportColumn("Overlapped", "right"),
        ReportColumn("Certainty"),
    )
    rows = tuple((row.title, row.text, row.share_text, row.overlapped, row.certainty) for row in view.rows)
    ranges = Prose("Ranges leave out one case in ten at either end." if rows else "")
    return section(
        "Speed",
        *(Prose(note) for note in hypothetical_note(parts.evaluation.memory)),
        Prose(view.answer),
        Prose(view.reason),
        ranges,
        ReportTable(columns, rows),
        Bullets(view.notes),
    )


def _cost_section(parts: PlanReportParts) -> ReportSection:
    estimate, decision = parts.estimate, parts.decision
    if estimate is None:
        return section("Cost", Prose(fmt.sentence(decision.summary) if parts.evaluation.cards else ""))
    result = estimate.result
    buying = "Buying" if result.answer is None else buying_title(result.answer)
    lines = result_lines(result, parts.card, parts.today)
    known = _known_time(parts.evaluation.time)
    said = (*lines, "" if known is None else f"{known.answer} {known.reason}".strip())
    sides = (ReportColumn(""), ReportColumn("Renting", "right"), ReportColumn(buying, "right"))
    rows = tuple((row.title, row.renting, row.buying) for row in decision.rows)
    return section(
        "Cost",
        *map(Prose, lines),
        ReportTable(sides, rows),
        cost_figure(estimate, parts.simulation, buying),
        *_rent_blocks(estimate),
        _running_costs_table(estimate),
        *_sensitivity_blocks(parts, estimate, buying),
        *map(Prose, _carbon_sentences(parts, estimate)),
        Bullets(tuple(line for line in decision.details if line not in said)),
    )


def _rent_blocks(estimate: CostEstimate) -> Iterator[Block]:
    """Yield the cost terms of the rental, and the cheapest offers of other providers and rental types."""
    if estimate.result.rent is not None:
        yield _money_table("Rented", money_rows(estimate.result.rent.terms))
        columns = [column for column in JOB_OFFER_COLUMNS if column.key in _OFFER_KEYS]
        yield table_of(columns, estimate.rows[:_OFFERS])


def _running_costs_table(estimate: CostEstimate) -> ReportTable | None:
    """Return what owning costs while the cards are used; None if it is not known."""
    own = estimate.result.own
    title = "Running costs of the run" if running_period(estimate.demand) == "run" else "Monthly, if bought"
    return None if own is None else _money_table(title, money_rows(own.monthly))


def _money_table(title: str, rows: Iterable[MoneyRow]) -> ReportTable:
    columns = (
        ReportColumn(title),
        ReportColumn("Amount", "right"),
        ReportColumn("Range", "right"),
        ReportColumn("Certainty"),
        ReportColumn("Date"),
        ReportColumn("Source"),
    )
    cells = tuple((row.title, row.text, row.range_text, row.certainty, row.date, row.short_source) for row in rows)
    return ReportTable(columns, cells)


def _sensitivity_blocks(parts: PlanReportParts, estimate: CostEstimate, buying: str) -> Iterator[Block | None]:
    """Yield the tornado chart."""
    if estimate.case is not None and parts.simulation is not None:
        yield swing_figure(swing_rows(tornado(estimate.case)), buying)


def _carbon_sentences(parts: PlanReportParts, estimate: CostEstimate) -> Iterator[str]:
    rent, own, costs = estimate.result.rent, estimate.result.own, parts.catalog.cost
    if rent is not None and rent.carbon is not None:
        where = f"Rented in {costs.region(rent.carbon.region).name}"
        yield carbon_sentence(rent.carbon, where, estimate.demand.period)
    if own is not None:
        where = f"Owned in {costs.region(own.carbon.region).name}"
        yield carbon_sentence(own.carbon, where, running_period(estimate.demand))


def _bill_section(parts: PlanReportParts) -> ReportSection:
    """Return what is to be bought, with prices, dates and sources, and the power and cooling that it needs."""
    estimate, plan = parts.estimate, parts.evaluation.plan
    if plan.gpu is None or estimate is None or plan.cost.buy.owned:
        return section("Bill of materials")
    own, machines = estimate.result.own, estimate.result.machines
    cards = plan.count if machines is None else machines.cards
    return section(
        "Bill of materials",
        Prose("" if own is None else _bill_sentence(parts, estimate, cards)),
        _money_table("If bought", () if own is None else money_rows(own.upfront)),
        *_power_blocks(parts, estimate, cards),
        _systems_table(parts, estimate, cards),
        Prose(
            "Rack units, cables, support contracts and software licenses are counted only where a row or a monthly "
            "cost above names them; ask the seller for them and for the lead time."
        ),
    )


def _bill_sentence(parts: PlanReportParts, estimate: CostEstimate, cards: int) -> str:
    case = estimate.case
    servers = "" if case is None else f" in {fmt.plural(case.setup.servers, 'server')}"
    return f"{fmt.count_of(cards, parts.card)}{servers}."


def _power_blocks(parts: PlanReportParts, estimate: CostEstimate, cards: int) -> Iterator[Block]:
    """Yield power, circuits and heat of one machine, as a server or as a computer with that many cards."""
    case = estimate.case
    each = cards if case is None else min(cards, case.setup.gpus_per_server)
    gpu = parts.catalog.hardware.gpu(str(parts.evaluation.plan.gpu))
    whole = next((one for one in _systems_with(parts, each) if one.max_power_watts is not None), None)
    group = power_group(gpu, each) if whole is None else machine_power_group(whole)
    yield _details_table(group, "" if whole is None else whole.name)


def _details_table(group: DetailGroup, name: str) -> ReportTable:
    title = f"{group.title} ({name})" if name else group.title
    rows = tuple((detail.title, detail.text, detail.origin) for detail in group.details)
    return ReportTable((ReportColumn(title), ReportColumn(""), ReportColumn("Source")), rows)


def _systems_with(parts: PlanReportParts, cards: int) -> list[System]:
    """Return the systems of the catalog that have exactly so many of the plan's cards."""
    systems = parts.catalog.hardware.systems
    return [one for one in systems if (one.gpu_id, one.gpu_count) == (parts.evaluation.plan.gpu, cards)]


def _systems_table(parts: PlanReportParts, estimate: CostEstimate, cards: int) -> ReportTable:
    """Return the machines on sale with these cards, with their list price where one is published."""
    case = estimate.case
    each = cards if case is None else case.setup.gpus_per_server
    columns = (ReportColumn("Sold as"), ReportColumn("Price", "right"), ReportColumn("Date"), ReportColumn("Source"))
    rows = tuple(
        (
            one.name,
            fmt.money(one.price_usd),
            fmt.date(one.price_date, "") if one.price_usd else "",
            one.provenance_of("price_usd").source if one.price_usd else "",
        )
        for one in _systems_with(parts, each)
    )
    return ReportTable(columns, rows)


def _risk_section(parts: PlanReportParts) -> ReportSection:
    """Return what would change the answers: conditions of the decision, warnings, and changes that save memory."""
    evaluation, estimate = parts.evaluation, parts.estimate
    chips = () if estimate is None else flip_chips(estimate.result)
    rows = tuple((row.title, row.saves, row.then, row.price) for row in map(advice_row, parts.advice))
    heads = (advice_title(evaluation.memory), "Saves, GiB", "Then", "Drawbacks")
    return section(
        "Risks, and what would change the answer",
        Bullets(tuple(f"The decision changes if {chip.text}." for chip in chips)),
        Bullets(_warning_sentences(parts)),
        ReportTable(tuple(ReportColumn(head, "right" if head == heads[1] else "left") for head in heads), rows),
    )


def _launch_section(parts: PlanReportParts) -> ReportSection:
    """Return the files that run the plan with the first program that can, and what they do not express."""
    title, evaluation = "Launch settings", parts.evaluation
    for launcher in LAUNCHERS.values():
        profile = evaluation.workload.profile or DEFAULT
        if launcher.task != evaluation.workload.task or profile not in launcher.profiles:
            continue
        with suppress(SpecError):
            settings = launch_settings(evaluation.plan, parts.catalog, launcher.name)
            missing = tuple((setting_title(one.field), one.value, one.reason) for one in settings.not_expressed)
            return section(
                title,
                Prose(f"With {settings.title} ({settings.version}):{_memory_share_sentence(settings, evaluation)}"),
                *(CodeListing(file.text, file.name) for file in settings.files),
                ReportTable(tuple(map(ReportColumn, ("Not in these files", "Value", "Why"))), missing),
                Prose("The command gpu-planner launch writes them for other programs, and for clusters and clouds."),
            )
    return section(title)


def _memory_share_sentence(settings: LaunchSettings, evaluation: Evaluation) -> str:
    """Return what share of the memory the files let an engine reserve, if it is not the one that is estimated."""
    pool, field = evaluation.memory.cache_pool, f"engine.{serving_support(evaluation.workload.profile).memory_fraction}"
    return "".join(
        f" {one.key} {one.value} sets its share of the memory to what this plan needs, instead of the "
        f"{pool.utilization:g} that it reserves by itself and that is estimated above."
        for one in settings.settings
        if pool is not None and field in one.fields and one.value != pool.utilization
    )


def _sources_section(parts: PlanReportParts) -> ReportSection:
    """Return formula, numbers and source of every figure."""
    memory = tuple((row.title, row.formula, row.substituted, row.source) for row in parts.memory.terms)
    time = _known_time(parts.evaluation.time)
    speed = () if time is None else tuple((row.title, row.how, row.substituted, row.source) for row in time.rows)
    heads = tuple(ReportColumn(head) for head in ("Figure", "Formula", "In numbers", "Source"))
    return section(
        "Formulas and sources",
        ReportTable(heads, memory),
        ReportTable(heads, speed),
        ReportTable(
            tuple(ReportColumn(head) for head in ("Cost", "Formula", "Inputs", "Source")), _cost_sources(parts)
        ),
        Bullets(tuple(note for note in parts.memory.notes if note not in _warning_sentences(parts))),
    )


def _warning_sentences(parts: PlanReportParts) -> tuple[str, ...]:
    found = warnings_about(parts.evaluation, parts.catalog.software) if parts.memory.supported else ()
    return tuple(warning.sentence for warning in found)


def _cost_sources(parts: PlanReportParts) -> tuple[tuple[str, ...], ...]:
    estimate = parts.estimate
    if estimate is None:
        return ()
    rent, own = estimate.result.rent, estimate.result.own
    terms = (*(rent.terms if rent else ()), *((*own.upfront, *own.monthly) if own else ()))
    return tuple(
        (
            row.title,
            row.how,
            "\n".join(f"{name} = {value}: {meaning}" for name, value, meaning, _ in row.symbols),
            row.source,
        )
        for row in money_rows(terms)
    )
