import re
from datetime import date
from threading import current_thread, main_thread

import pytest
from each_record import for_each
from pyqtgraph import FillBetweenItem
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication, QPixmap
from PySide6.QtWidgets import QAbstractButton, QLabel, QLineEdit, QPushButton, QRadioButton, QToolButton, QWidget

from planner.cli.cost import run as cost_command
from planner.cost.rent_or_buy.uncertainty import simulate
from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.gui.cost.tab import CostTab
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.section import Section
from planner.plan.cost import evaluate_cost
from planner.plan.files import save_plan
from planner.workload.parallel import CardCount
from planner.workload.workload import Inference

MENUS = "fevpmh"
JOBS = {
    "run": Run(amount=50_000_000, unit="tokens"),
    "service": Service(requests_per_day=10_000),
    "daily": DailyHours(hours_per_day=8.0),
}


def field(tab, path):
    return next(questions for questions in tab.controls.questions if path in questions.paths).field(path)


def edit_of(tab, path):
    return field(tab, path).findChild(QLineEdit)


def type_into(qtbot, edit, text):
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def set_job(tab, job, **terms):
    tab.workspace.apply("job", cost=CostTerms(job=job, **terms))


def button(widget, text):
    return next(made for made in widget.findChildren(QPushButton) if made.text().replace("&", "") == text)


# The answer and its evidence


def test_the_answer_stands_above_its_evidence(tab: CostTab):
    assert tab.answer.view.headline in ("Rent", "Buy", "Too close to call")
    assert "1 × GeForce RTX 4090" in tab.answer.view.subject
    assert "Oldest price: " in tab.answer.text
    assert "One step takes" in tab.answer.text
    assert "In 8 of 10 simulated cases, " in tab.answer.text
    assert all(part.isVisible() for part in (tab.curve, tab.swings, tab.figures, tab.offers))


def test_the_prices_of_the_offers_are_in_sight_in_the_smallest_window(tab: CostTab):
    table = tab.offers.table
    last = table.records().column_of("gpu_hour")
    assert table.columnViewportPosition(last) + table.columnWidth(last) <= table.viewport().width()


def test_every_figure_of_both_ways_has_date_and_source_on_hover(tab: CostTab):
    decided, others = tab.answer.figures.rows, tab.figures.summary.rows
    rows = {row.title: row for row in (*decided, *others)}
    assert len(rows) == len(decided) + len(others)  # nothing is said twice
    for title in ("Per month, net of resale", "Per GPU-hour, net of resale"):
        for cell in rows[title].cells:
            assert re.search(r"\d{4}: ", cell.origin)


def test_the_break_even_is_marked_where_both_have_cost_the_same(tab: CostTab):
    set_job(tab, DailyHours(hours_per_day=24, days_per_week=7))
    found = tab.cost.estimate.result.break_even
    years, usd = tab.curve.data.crossing
    assert years == pytest.approx(found.years)
    before = [point for point in tab.curve.data.points if point.years <= years][-1]
    after = next(point for point in tab.curve.data.points if point.years >= years)
    assert min(before.rent_usd, after.rent_usd) <= usd <= max(before.rent_usd, after.rent_usd)
    assert before.rent_usd <= before.own_usd
    assert after.rent_usd >= after.own_usd


def test_the_band_of_the_draws_begins_with_the_purchase(tab: CostTab):
    band = simulate(tab.cost.estimate.case).band
    points = tab.curve.data.points
    first, last = points[0], points[-1]
    assert first.years == 0
    assert (first.own_low_usd, first.own_high_usd) == pytest.approx((band[0].own_usd.p10, band[0].own_usd.p90))
    assert (last.rent_low_usd, last.rent_high_usd) == pytest.approx((band[-1].rent_usd.p10, band[-1].rent_usd.p90))
    between = next(point for point in points if band[4].years < point.years < band[5].years)
    low, high = sorted((band[4].rent_usd.p90, band[5].rent_usd.p90))
    assert low < between.rent_high_usd < high


def test_there_is_no_band_before_the_draws(tab: CostTab, qtbot):
    bounds = [part for edges in (tab.curve._chart._rent_edges, tab.curve._chart._own_edges) for part in edges]
    assert all(len(edge.getData()[0]) == 61 for edge in bounds)
    assert "rent_low_usd" in tab.curve.csv_rows()[0]
    tab.workspace.apply("years", cost=tab.workspace.plan.cost.evolve(horizon_years=4))
    assert not any(edge.getData()[0] is not None and len(edge.getData()[0]) for edge in bounds)
    fills = [item for item in tab.curve._chart._item.items if isinstance(item, FillBetweenItem)]
    assert fills
    assert all(fill.path().isEmpty() for fill in fills)
    assert "rent_low_usd" not in tab.curve.csv_rows()[0]
    qtbot.waitUntil(lambda: tab.drawn)
    assert all(len(edge.getData()[0]) == 61 for edge in bounds)


def test_what_moves_the_decision_stands_above_the_figures_where_it_would_be_squeezed(tab: CostTab, qtbot):
    assert tab.swings.geometry().bottom() < tab.figures.geometry().top()
    tab.resize(1800, 900)
    qtbot.waitUntil(lambda: tab.swings.geometry().right() < tab.figures.geometry().left())


def test_the_tornado_begins_with_what_moves_most(tab: CostTab):
    rows = tab.tornado.rows
    spans = [abs(row.high_saving_usd - row.low_saving_usd) for row in rows]
    assert spans == sorted(spans, reverse=True)
    assert rows[0].title in tab.tornado.accessibleName()
    assert rows[0].source in tab.tornado.toolTip()


def test_the_tornado_is_copied_with_its_sources(tab: CostTab, qtbot):
    unfocused = tab.tornado.grab().toImage()
    tab.tornado.setFocus()
    assert tab.tornado.grab().toImage() != unfocused
    qtbot.keyClick(tab.tornado, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    lines = QGuiApplication.clipboard().text().splitlines()
    assert len(lines) == len(tab.tornado.rows) + 1
    assert lines[1].endswith(tab.tornado.rows[0].source)


def test_an_amount_opens_to_its_formula_and_stays_open(tab: CostTab, qtbot):
    detail = tab.figures.amounts.open_amount("cards")
    row = next(row for row in tab.figures.amounts.rows if row.name == "cards")
    assert row.how.replace(" ", "") in detail.replace(" ", "")
    assert "Source" in detail
    for _, value, _, _ in row.symbols:
        assert value in detail
    type_into(qtbot, edit_of(tab, "job.hours_per_day"), "6")
    shown = [made.text() for made in tab.figures.amounts.findChildren(QLabel) if made.isVisible()]
    assert any("Formula" in text for text in shown)


def test_amounts_sum_to_their_headings(tab: CostTab):
    result = tab.cost.estimate.result
    assert sum(
        row.usd for row in tab.figures.amounts.rows if row.name in {term.name for term in result.own.upfront}
    ) == (pytest.approx(result.own.upfront_usd))


def test_every_offer_of_the_card_is_listed_and_the_used_one_is_marked(tab: CostTab):
    offers = tab.offers
    assert len(offers.model.records) == len(tab.cost.estimate.rows) > 3
    assert offers.model.marked.startswith(tab.cost.estimate.result.rent.offer_id)


def test_using_an_offer_is_one_step_and_can_be_let_go_of(tab: CostTab, qtbot):
    row = tab.offers.model.records[-1]
    tab.offers.table.choose(tab.offers.model.identify(row))
    qtbot.mouseClick(button(tab.offers, "Use this offer"), Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.cost.rent.offer == row.offer.id
    assert tab.cost.estimate.result.rent.offer_id == row.offer.id
    assert tab.workspace.undo_stack.count() == 1
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan.cost.rent.offer is None
    tab.offers.table.record_activated.emit(row)
    assert tab.workspace.plan.cost.rent.offer == row.offer.id
    tab.controls.rent.offer.edited.emit(None)
    assert tab.workspace.plan.cost.rent.offer is None


def test_old_offers_are_listed_when_asked_for(tab: CostTab):
    before = len(tab.offers.model.records)
    field(tab, "rent.include_history").edited.emit(True)
    assert len(tab.offers.model.records) >= before


# Plans without an answer


def test_without_a_card_there_is_nothing_to_pay_for(tab: CostTab):
    tab.workspace.apply("card", gpu=None)
    assert tab.answer.view.subject == "The plan has no GPU."
    assert not any(part.isVisible() for part in (tab.curve, tab.swings, tab.figures, tab.offers))
    tab.workspace.undo_stack.undo()
    assert all(part.isVisible() for part in (tab.curve, tab.swings, tab.figures, tab.offers))


def test_unequal_cards_are_told_apart_from_one_thing_to_rent(tab: CostTab):
    tab.workspace.apply(
        "cards", workload=Inference(gpus=(CardCount(id="rtx-4090"), CardCount(id="rtx-3090"))), gpu=None, count=2
    )
    assert "a mix of different GPUs" in tab.answer.view.subject
    assert not tab.offers.isVisible()


def test_a_card_that_nobody_offers_says_so(tab: CostTab):
    tab.workspace.apply("card", gpu="rtx-2000-ada")
    assert tab.answer.view.subject
    assert not tab.offers.table.isVisible()
    assert not tab.curve.isVisible()


def test_a_job_whose_hours_cannot_be_told_says_what_to_do(tab: CostTab):
    set_job(tab, Run(amount=3, unit="epochs"))
    assert "size of an epoch is missing" in tab.answer.view.summary
    assert "Enter the number of samples" in tab.answer.view.summary
    assert "size of an epoch is missing" in edit_of(tab, "job.dataset_samples").accessibleDescription()


# The questions


def test_a_question_changes_the_plan_as_one_step(tab: CostTab, qtbot):
    type_into(qtbot, edit_of(tab, "job.hours_per_day"), "12")
    assert tab.workspace.plan.cost.job == DailyHours(hours_per_day=12)
    assert tab.workspace.undo_stack.count() == 1
    assert tab.workspace.undo_stack.undoText() == "hours per day"
    tab.workspace.undo_stack.undo()
    assert edit_of(tab, "job.hours_per_day").text() == "8"


def test_every_question_can_be_answered_and_reset(tab: CostTab, qtbot):
    asked = {"buy.colocation_usd_per_kw_month"}  # no question where the place is not a data center
    for job in JOBS.values():
        set_job(tab, job)
        for questions in tab.controls.questions:
            for path in questions.paths:
                if questions.applies(path) and path not in asked:
                    asked.add(path)
                    step = tab.workspace.undo_stack.index()
                    value = tab.workspace.plan.cost
                    field(tab, path).edited.emit(_another(tab, path))
                    tab.workspace.end_gesture()
                    assert tab.workspace.plan.cost != value, path
                    assert tab.workspace.undo_stack.index() == step + 1, path
                    tab.workspace.undo_stack.undo()
                    assert tab.workspace.plan.cost == value, path


def _another(tab, path):
    """Return an answer that differs from the present one."""
    asked = field(tab, path)
    if path == "rent.offer":
        return tab.offers.model.records[-1].offer.id
    if path == "region":
        return "DE"
    if isinstance(asked, ChoiceField):
        return next(value for value in asked._values if value not in (asked.value, None))
    low, high = asked.minimum * asked.scale, asked.maximum * asked.scale
    return next(low + (high - low) / part for part in (100, 50) if asked.value != low + (high - low) / part)


@for_each(
    "case",
    [
        ("job.hours_per_day", "25", "from 0.01 to 24."),
        ("job.hours_per_day", "many", "Type a number"),
        ("horizon_years", "0", "from 0.05 to 30."),
        ("discount_rate", "100", "from 0 to 99."),
        ("buy.card_price_usd", "-5", "is too small"),
    ],
)
def test_wrong_input_stays_with_its_message_and_leaves_the_plan(tab: CostTab, qtbot, case):
    path, text, told = case
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    plan = tab.workspace.plan
    edit = edit_of(tab, path)
    type_into(qtbot, edit, text)
    assert told in edit.accessibleDescription()
    if path != "discount_rate":
        assert tab.workspace.plan == plan or tab.workspace.undo_stack.count() <= 1


def test_what_the_terms_refuse_is_said_beside_the_field(tab: CostTab):
    plan = tab.workspace.plan
    field(tab, "buy.colocation_usd_per_kw_month").edited.emit(150.0)
    assert tab.workspace.plan == plan
    edit = edit_of(tab, "buy.colocation_usd_per_kw_month")
    assert "includes electricity" in edit.accessibleDescription()


def test_kinds_of_jobs_keep_their_answers(tab: CostTab, qtbot):
    type_into(qtbot, edit_of(tab, "job.hours_per_day"), "12")
    kinds = {made.text(): made for made in tab.controls.job.kind.findChildren(QRadioButton)}
    qtbot.mouseClick(kinds["a service"], Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.cost.job.kind == "service"
    edit = edit_of(tab, "job.requests_per_day")
    assert edit.isVisible()
    type_into(qtbot, edit, "50/s")
    edit.clearFocus()
    assert (tab.workspace.plan.cost.job.requests_per_day, edit.text()) == (4_320_000, "4,320,000")
    assert not edit_of(tab, "job.hours_per_day").isVisible()
    qtbot.mouseClick(kinds["hours per day"], Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.cost.job == DailyHours(hours_per_day=12)


def test_open_fields_say_what_the_place_has(tab: CostTab):
    edit = edit_of(tab, "buy.pue")
    before = edit.placeholderText()
    field(tab, "buy.place").edited.emit("desk")
    assert edit.text() == ""
    assert edit.placeholderText() != before


def test_open_prices_say_what_the_catalog_takes(tab: CostTab):
    cards = next(term for term in tab.cost.estimate.result.own.upfront if term.name == "cards")
    assert float(edit_of(tab, "buy.card_price_usd").placeholderText().replace(",", "")) == pytest.approx(cards.usd)
    before = edit_of(tab, "buy.tariff_usd_per_kwh").placeholderText()
    field(tab, "region").edited.emit("DE")
    assert edit_of(tab, "buy.tariff_usd_per_kwh").placeholderText() != before


def test_only_the_changed_question_is_marked_and_resets_alone(tab: CostTab, qtbot):
    type_into(qtbot, edit_of(tab, "job.hours_per_day"), "12")
    type_into(qtbot, edit_of(tab, "job.days_per_week"), "7")
    reset = next(made for made in tab.findChildren(QToolButton) if made.accessibleName() == "Reset “Hours per day”")
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.cost.job == DailyHours(hours_per_day=8, days_per_week=7)


def test_everything_is_reset_as_one_step(tab: CostTab, qtbot):
    reset = button(tab.controls, "Reset")
    assert not reset.isEnabled()
    set_job(tab, JOBS["run"], horizon_years=2)
    assert reset.isEnabled()
    qtbot.mouseClick(reset, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.cost == CostTerms()
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan.cost.horizon_years == 2


def test_how_long_the_cards_are_needed_is_asked_below_the_hours_of_the_job(tab: CostTab):
    days, years = edit_of(tab, "job.days_per_week"), edit_of(tab, "horizon_years")
    below = years.mapTo(tab, years.rect().topLeft()).y() - days.mapTo(tab, days.rect().topLeft()).y()
    assert years.isVisible()
    assert 0 < below < 2 * years.height()


def test_a_section_says_its_value_while_it_is_folded_and_stays_as_it_was_left(tab: CostTab, qtbot):
    heading = next(made for made in tab.controls.findChildren(QToolButton) if made.text() == "Financing")
    assert "collapsed, discounted at 8" in heading.accessibleName()
    heading.click()
    assert edit_of(tab, "discount_rate").isVisible()
    assert "Financing" in tab.workspace.settings.current.open_sections


# A measured speed


def test_a_measured_speed_takes_the_place_of_the_estimate(tab: CostTab, qtbot):
    speed = tab.controls.job.speed
    speed.set_open(True)
    estimate = tab.workspace.evaluation.time.tokens_per_second
    edit = speed.speed.findChild(QLineEdit)
    shown = edit.placeholderText().removeprefix("estimate: ")
    assert float(shown.replace(",", "")) == pytest.approx(estimate, rel=0.01)
    type_into(qtbot, edit, "900")
    measured = tab.workspace.plan.timing.measured
    assert (measured.value, measured.unit, measured.gpu, measured.count) == (900, "tokens/s", "rtx-4090", 1)
    assert tab.workspace.evaluation.time.basis == "measured"
    assert tab.workspace.evaluation.time.tokens_per_second == pytest.approx(900)
    assert "your measurement" in tab.answer.text
    tab.workspace.undo_stack.undo()
    assert tab.workspace.plan.timing.measured is None
    assert edit.text() == ""


def test_a_measured_speed_has_a_unit(tab: CostTab, qtbot):
    speed = tab.controls.job.speed
    speed.set_open(True)
    type_into(qtbot, speed.speed.findChild(QLineEdit), "2")
    speed.unit.edited.emit("seconds/step")
    assert tab.workspace.evaluation.time.seconds == pytest.approx(2) or tab.workspace.plan.timing.measured.unit


# Services and scenarios


def test_a_service_says_what_to_own_and_what_to_rent_for_the_peaks(tab: CostTab):
    tab.workspace.apply("serve", workload=Inference(profile="vllm", batch=16), gpu="h100-sxm5-80gb")
    set_job(tab, Service(requests_per_day=3_000_000, peak_factor=4, scales_down=True))
    assert re.search(r"Best mix|worth owning", tab.answer.text)


def test_electricity_and_carbon_stand_beside_the_cost(tab: CostTab):
    rows = {row.title: row for row in tab.figures.summary.rows}
    assert "kWh per month" in rows["Electricity"].cells[1].text
    assert "kg CO₂ per month" in rows["Carbon"].cells[1].text
    assert "PUE" in rows["Carbon"].cells[1].origin


def test_carbon_in_other_regions_is_listed_when_it_is_asked_for(tab: CostTab):
    tab.elsewhere.section.findChild(QToolButton).click()
    rows = tab.elsewhere.model.records
    assert len(rows) > 50
    assert [row.carbon_kg for row in rows] == sorted(row.carbon_kg for row in rows)
    assert tab.elsewhere.model.marked == "US"
    tab.elsewhere.table.record_activated.emit(rows[0])
    assert tab.workspace.plan.cost.region == rows[0].code
    assert tab.workspace.undo_stack.count() == 1


def test_two_scenarios_stand_side_by_side(tab: CostTab, qtbot):
    assert not tab.comparison.isVisible()
    tab.workspace.pin.put(tab.workspace.plan)
    tab.workspace.apply("card", gpu="rtx-3090")
    assert tab.comparison.isVisible()
    assert "RTX 4090" in tab.comparison.subject.text()
    rows = {row.title: [cell.text for cell in row.cells] for row in tab.comparison.figures.rows}
    assert rows["Rented per month"][0] != rows["Rented per month"][1]
    assert rows["Rented per month"][2][0] in "+−"
    qtbot.mouseClick(tab.comparison.copy, Qt.MouseButton.LeftButton)
    assert QGuiApplication.clipboard().text().startswith("\tThis plan\tPinned\tDifference")
    qtbot.mouseClick(tab.comparison.pin_buttons.swap, Qt.MouseButton.LeftButton)
    assert tab.workspace.plan.gpu == "rtx-4090"
    qtbot.mouseClick(tab.comparison.pin_buttons.unpin, Qt.MouseButton.LeftButton)
    assert not tab.comparison.isVisible()


def test_unlike_jobs_are_told_and_one_button_gives_both_plans_the_same(tab: CostTab, qtbot):
    tab.workspace.pin.put(tab.workspace.plan)
    tab.workspace.apply("card", gpu="rtx-3090")
    assert not tab.comparison.use_job.isVisible()
    set_job(tab, JOBS["run"], horizon_years=2)
    assert tab.comparison.use_job.isVisible()
    qtbot.mouseClick(tab.comparison.use_job, Qt.MouseButton.LeftButton)
    pinned = tab.workspace.pin.plan
    assert (pinned.gpu, pinned.cost.job, pinned.cost.horizon_years) == ("rtx-4090", tab.workspace.plan.cost.job, 2)
    assert not tab.comparison.use_job.isVisible()


# Copies


def test_the_answer_is_copied_and_saved_as_every_format(tab: CostTab, tmp_path, capsys):
    tab.copy_menu.actions()[0].trigger()
    assert QGuiApplication.clipboard().text() == tab.copy_result()
    for ending in ("txt", "csv", "json", "png"):
        tab.copy_menu.save_to(tmp_path / f"cost.{ending}")
    assert tab.answer.view.subject in (tmp_path / "cost.txt").read_text(encoding="utf-8")
    rows = (tmp_path / "cost.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("Provider,Instance")
    assert rows[0].endswith("Price of,Source")
    assert len(rows) == len(tab.offers.model.records) + 1
    save_plan(tmp_path / "plan.json", tab.workspace.plan)
    assert cost_command([str(tmp_path / "plan.json"), "--json"], date(2026, 11, 22)) == 0
    assert (tmp_path / "cost.json").read_text(encoding="utf-8") == capsys.readouterr().out.removesuffix("\n")
    assert QPixmap(str(tmp_path / "cost.png")).width() > 500


def test_the_curve_is_a_table_too(tab: CostTab, tmp_path):
    tab.curve.export.save_to(tmp_path / "curve.csv")
    rows = (tmp_path / "curve.csv").read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("years,gpu_hours,rent_usd")
    assert len(rows) == len(tab.curve.data.points) + 1


# The tab as a whole


@for_each("name", JOBS)
def test_nothing_is_cut_off_at_the_smallest_size(tab: CostTab, name):
    set_job(tab, JOBS[name])
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    for area in (tab.controls.area, tab.results):
        assert area.widget().minimumSizeHint().width() <= area.viewport().width()


@for_each("name", JOBS)
def test_each_key_leads_to_one_place(tab: CostTab, name):
    set_job(tab, JOBS[name])
    tab.workspace.pin.put(tab.workspace.plan)
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    found: dict[str, list[str]] = {}
    for made in [*tab.findChildren(QLabel), *tab.findChildren(QAbstractButton)]:
        letter = re.search(r"&(\w)", made.text())
        if letter and made.isVisibleTo(tab) and (not isinstance(made, QLabel) or made.buddy()):
            found.setdefault(letter[1].lower(), []).append(made.text())
    assert {letter: texts for letter, texts in found.items() if len(texts) > 1} == {}
    assert {letter: found[letter] for letter in MENUS if letter in found} == {}


@for_each("name", JOBS)
def test_everything_the_keyboard_reaches_has_a_name(tab: CostTab, name):
    set_job(tab, JOBS[name])
    for section in tab.controls.findChildren(Section):
        section.set_open(True)
    reached = [made for made in tab.findChildren(QWidget) if made.focusPolicy() & Qt.FocusPolicy.TabFocus]
    nameless = [made for made in reached if not (made.accessibleName() or getattr(made, "text", str)())]
    assert [type(made).__name__ for made in nameless if made.isVisible()] == []


def test_the_tab_key_goes_from_question_to_question(tab: CostTab):
    hours = edit_of(tab, "job.hours_per_day")
    chain = [hours]
    while (following := chain[-1].nextInFocusChain()) is not hours:
        chain.append(following)
    asked = ("job.hours_per_day", "job.days_per_week", "rent.mode", "rent.offer", "buy.place", "buy.card_price_usd")
    places = [chain.index(field(tab, path).focusProxy()) for path in asked]
    assert places == sorted(places)
    assert places[-1] < chain.index(button(tab.controls, "Prices…"))


def test_a_hidden_tab_draws_when_it_is_shown_again(tab: CostTab):
    before = tab.answer.view.summary
    tab.hide()
    set_job(tab, DailyHours(hours_per_day=24, days_per_week=7))
    assert tab.answer.view.summary == before
    tab.show()
    assert tab.answer.view.summary != before


def test_the_draws_follow_when_the_plan_rests_and_are_given_up_for_the_next(tab: CostTab, qtbot, tasks):
    set_job(tab, DailyHours(hours_per_day=10))
    assert not tab.drawn
    qtbot.waitUntil(lambda: tab.drawn)
    set_job(tab, DailyHours(hours_per_day=11))
    tab.shut_down()
    assert not tasks.busy


def test_searching_puts_the_keyboard_into_the_offers(tab: CostTab, qtbot):
    tab.activateWindow()
    qtbot.waitActive(tab)
    tab.focus_search()
    assert tab.offers.table.has_keyboard()


def test_changes_are_priced_once_each_and_simulated_beside_the_window_once_they_rest(tab: CostTab, qtbot, monkeypatch):
    priced, simulated = [], []

    def price(*given):
        priced.append(current_thread())
        return evaluate_cost(*given)

    def draw(*given, **more):
        simulated.append(current_thread())
        return simulate(*given, **more)

    monkeypatch.setattr("planner.gui.cost.tab.evaluate_cost", price)
    monkeypatch.setattr("planner.gui.cost.tab.simulate", draw)
    for hours in (3.0, 5.0, 9.0, 12.0, 20.0):
        set_job(tab, DailyHours(hours_per_day=hours))
        tab.repaint()
    assert priced == [main_thread()] * 5
    assert simulated == []
    qtbot.waitUntil(lambda: tab.drawn)
    assert len(priced) == 5
    assert len(simulated) == 1
    assert main_thread() not in simulated


def test_both_looks_are_drawn(tab: CostTab, theme):
    tab.figures.amounts.open_amount("cards")
    theme.apply("dark")
    assert tab.grab().toImage().pixelColor(tab.width() - 2, 2) != Qt.GlobalColor.white
    theme.apply("light")


def test_the_legend_of_the_curve_stands_outside_of_it_and_hides_a_side(tab, qtbot):
    tab.curve.draw()
    assert [button.text() for button in tab.curve.legend.buttons] == [
        "Renting",
        "Buying, net of resale at that time",
    ]
    rent, own = tab.curve._chart._rent, tab.curve._chart._own
    assert len(rent.getData()[0]) == len(own.getData()[0]) > 2
    tab.curve.legend.buttons[0].click()
    assert rent.getData()[0] is None or len(rent.getData()[0]) == 0
    assert len(own.getData()[0]) > 2
    terms = tab.workspace.plan.cost
    tab.workspace.apply("own", cost=terms.evolve(buy=terms.buy.evolve(owned=True)))
    assert tab.curve.legend.buttons[1].text() == "Your own"
    assert "resale" not in tab.curve._read_out_text(tab.curve.data, None)


def test_the_hint_to_what_may_change_the_decision_is_shown_with_such_a_bar_only(tab):
    terms = tab.workspace.plan.cost
    tab.workspace.apply("own", cost=terms.evolve(buy=terms.buy.evolve(card_price_usd=1_000_000)))
    assert not any(row.flips for row in tab.tornado.rows)
    assert tab._moves.text() == "What moves the decision"


def test_the_billing_section_says_what_the_offer_bills(tab):
    rent = tab.cost.estimate.result.rent
    assert rent.states_increment
    assert tab.controls.rent._billing.startswith("billed by the second")


def test_one_machine_is_as_needed_yes_or_no_and_undone(tab):
    tab.workspace.apply("cards", count=2)
    field = tab.controls.rent.field("rent.one_machine")
    assert (field.value, field.text) == (None, "as needed")
    field.choose(True)
    assert tab.workspace.plan.cost.rent.one_machine is True
    tab.workspace.undo_stack.undo()
    assert (field.value, tab.workspace.plan.cost.rent.one_machine) == (None, None)
