from datetime import date
from threading import Event

import pytest
from PySide6.QtCore import QCoreApplication, QPointF, QSize, Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QPushButton, QToolButton, QWidget

from planner.cost.terms import CostTerms, DailyHours, Run, Service
from planner.gui.cost import recommend_dialog as module
from planner.gui.cost.recommend_dialog import RecommendDialog
from planner.gui.widgets.tables.record_table import PADDING
from planner.gui.workspace import Workspace
from planner.plan.recommend.option import Wish, sure_options
from planner.plan.recommend.recommend import recommend
from planner.workload.training import Training

TODAY = date(2026, 11, 22)
RUN = Run(amount=20e6, unit="tokens")
FEW = Wish(counts=(1, 2))
AT_1280 = QSize(1200, 752)
"""As large as a screen of 1280 × 800 lets the dialog open."""


@pytest.fixture(scope="module", autouse=True)
def searched_once():
    """Search for equal jobs once: most tests start with the same one."""
    results = {}

    def kept(plan, catalog, today, wish, **options):
        key = (repr(plan), id(catalog), today, repr(wish))
        if results.get(key) is None:  # not yet, or given up
            results[key] = recommend(plan, catalog, today, wish, **options)
        return results[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "recommend", kept)
        yield


@pytest.fixture
def owner(qtbot):
    """The window that the dialog belongs to."""
    made = QWidget()
    qtbot.addWidget(made)
    return made


@pytest.fixture
def opened(qtbot, workspace: Workspace, theme, tasks, owner):
    """Open the dialog for a job, and wait for what it finds."""
    workspace.apply("work", workload=Training(method="qlora", activation_checkpointing="full"))

    def open_for(job=RUN, wish=FEW) -> RecommendDialog:
        workspace.apply("job", cost=CostTerms(job=job))
        made = RecommendDialog(workspace, theme, tasks, owner, wish, lambda: TODAY)
        with qtbot.waitSignal(made.search_finished):
            made.show()
        return made

    return open_for


def type_into(qtbot, field, text):
    edit = field.findChild(QLineEdit)
    edit.setFocus()
    edit.selectAll()
    qtbot.keyClicks(edit, text)


def unfold(dialog, qtbot):
    """Show the table and the plot of all options."""
    heading = next(made for made in dialog.options.findChildren(QToolButton) if made.text().startswith("All "))
    qtbot.mouseClick(heading, Qt.MouseButton.LeftButton)
    assert dialog.options.is_open
    return dialog


def award(dialog, name):
    """Return the card of an award."""
    return next(card for card in dialog.awards.cards if name in card.view.awards)


def button(widget, text):
    return next(made for made in widget.findChildren(QPushButton) if made.text().replace("&", "") == text)


def test_three_answers_stand_above_everything_that_fits(opened):
    dialog = opened()
    found = dialog.recommendation
    named = [name for card in dialog.awards.cards for name in card.view.awards]
    assert sorted(named) == ["best value", "cheapest", "fastest"]
    assert award(dialog, "cheapest").view.row.option == found.cheapest
    shown = [tuple(column.text(row) for column in dialog.model.columns) for row in dialog.model.records]
    assert 20 < len(set(shown)) == len(shown) < len(found.options)  # regions of one provider at one price are one row
    assert not dialog.table.isVisible()
    assert found.cheapest.usd == min(option.usd for option in found.options if option.comparable)
    assert not dialog.sentence.isVisible()
    assert not dialog.progress.isVisible()
    assert "Excluded" in dialog.about.text()
    assert "Oldest price" in dialog.about.text()


def test_one_click_makes_an_answer_the_plan_as_one_step(opened, workspace, qtbot):
    dialog = opened()
    before, steps = workspace.plan, workspace.undo_stack.count()
    fastest = dialog.recommendation.fastest
    use = award(dialog, "fastest").use
    assert use.accessibleName() == "Use the fastest option"
    qtbot.mouseClick(use, Qt.MouseButton.LeftButton)
    assert (workspace.plan.gpu, workspace.plan.count) == (fastest.gpu, fastest.count)
    assert workspace.plan.cost.rent.offer == fastest.offer
    assert dialog.isHidden()
    assert workspace.undo_stack.count() == steps + 1
    assert workspace.undo_stack.undoText() == "chosen hardware"
    workspace.undo_stack.undo()
    assert workspace.plan == before


def test_a_row_is_taken_by_enter_and_by_the_button(opened, workspace, qtbot):
    dialog = unfold(opened(), qtbot)
    row = dialog.model.records[3]
    dialog.table.choose(row.id)
    qtbot.mouseClick(button(dialog, "Use the selected option"), Qt.MouseButton.LeftButton)
    assert (workspace.plan.gpu, workspace.plan.count) == (row.option.gpu, row.option.count)


def test_the_assumed_job_stands_on_top_and_leads_to_its_fields(opened, workspace, qtbot):
    dialog = opened(DailyHours(hours_per_day=8))
    assert dialog.assumed_use.text() == "For 8 hours per day, 5 days per week, over 5 years."
    with qtbot.waitSignal(workspace.navigator.tab_requested) as asked:
        qtbot.mouseClick(dialog.change_job, Qt.MouseButton.LeftButton)
    assert asked.args == ["cost"]
    assert dialog.isHidden()


def test_the_opened_list_stays_on_the_screen(opened, qtbot):
    dialog = opened()
    screen = dialog.screen().availableGeometry()
    dialog.move(dialog.x(), screen.bottom() - dialog.height())
    unfold(dialog, qtbot)
    assert dialog.geometry().bottom() <= screen.bottom()
    assert dialog.geometry().top() >= screen.top()


def test_the_list_shows_names_whole_and_what_each_option_costs_and_takes(opened, qtbot):
    dialog = unfold(opened(), qtbot)
    table = dialog.table
    dialog.resize(AT_1280)
    QApplication.processEvents()
    longest = max(table.fontMetrics().horizontalAdvance(row.cards) for row in table.records().records)
    assert longest <= table.columnWidth(0) - 2 * PADDING
    for key in ("usd", "hours", "purchase"):
        column = table.records().column_of(key)
        right = table.columnViewportPosition(column) + table.columnWidth(column)
        assert right <= table.viewport().width(), key


def test_gpus_are_those_of_one_copy_if_the_job_may_need_several(opened):
    labels = [label.text().replace("&", "") for label in opened(Service(requests_per_day=1_000)).findChildren(QLabel)]
    assert "GPUs per copy" in labels


def test_nothing_can_be_used_before_a_row_is_chosen(opened):
    assert not button(opened(), "Use the selected option").isEnabled()


def test_limits_narrow_what_is_found(opened, qtbot):
    dialog = opened()
    before = len(dialog.recommendation.options)
    with qtbot.waitSignal(dialog.search_finished):
        type_into(qtbot, dialog.form.budget, "8")
    assert 0 < len(dialog.recommendation.options) < before
    assert all(option.usd <= 8 for option in dialog.recommendation.options)
    with qtbot.waitSignal(dialog.search_finished):
        dialog.form.having.set_value(("rent",))
        dialog.form.having.edited.emit(("rent",))
    assert {option.having for option in dialog.recommendation.options} == {"rent"}


def test_a_limit_that_nothing_keeps_is_told_with_what_comes_closest(opened):
    dialog = opened(wish=FEW.evolve(budget_usd=0.01))
    assert dialog.sentence.isVisible()
    assert dialog.sentence.text() == "No option is within the limits."
    (closest,) = dialog.awards.cards
    assert closest.view.title == "Closest to the limits"
    assert closest.view.row.option == dialog.recommendation.nearest
    assert not dialog.options.isVisible()


def test_a_wrong_limit_is_told_beside_it(opened, qtbot):
    dialog = opened()
    type_into(qtbot, dialog.form.deadline, "soon")
    assert "Type a number" in dialog.form.deadline.findChild(QLineEdit).accessibleDescription()
    assert dialog.form.wish == FEW


def test_a_service_has_no_deadline(opened, workspace):
    dialog = opened(Service(requests_per_day=5_000))
    assert not dialog.form.deadline.isVisible()
    assert "month" in " ".join(dialog.awards.texts) or dialog.sentence.isVisible()


def test_a_search_is_cancelled_by_closing(opened, qtbot, tasks, monkeypatch):
    dialog = opened()
    begun, ended = Event(), Event()

    def endless(*_args, stop, **_more):
        begun.set()
        while not stop():
            pass
        ended.set()

    monkeypatch.setattr(module, "recommend", endless)
    dialog.search()
    qtbot.waitUntil(begun.is_set)
    assert dialog.progress.isVisible()
    dialog.close()
    qtbot.waitUntil(ended.is_set)
    assert not tasks.busy


def test_what_is_found_is_shown_while_the_search_goes_on(opened, qtbot, monkeypatch):
    dialog = opened()
    part = dialog.recommendation.evolve(options=dialog.recommendation.options[:7])
    ended = Event()

    def slow(*_args, stop, progress, found, **_more):
        progress(1, 4)
        found(part)
        while not stop():
            pass
        ended.set()

    monkeypatch.setattr(module, "recommend", slow)
    dialog.search()
    qtbot.waitUntil(lambda: len(dialog.recommendation.options) == 7)
    assert dialog.progress.isVisible()
    assert (dialog.progress.value(), dialog.progress.maximum()) == (1, 4)
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    qtbot.waitUntil(ended.is_set)


def test_the_minimum_speed_and_the_changes_are_part_of_the_wish(opened, qtbot):
    dialog = opened(wish=FEW.evolve(min_tokens_per_second=2_000, change_plan=False, quantize=True))
    assert dialog.form.wish == FEW.evolve(min_tokens_per_second=2_000, change_plan=False, quantize=True)
    assert all(option.tokens_per_second >= 2_000 for option in dialog.recommendation.options)
    before = len(dialog.recommendation.options)
    with qtbot.waitSignal(dialog.search_finished):
        type_into(qtbot, dialog.form.speed, "9000")
    assert 0 < len(dialog.recommendation.options) < before


def test_changes_of_the_plan_are_applied_with_the_cards(opened, workspace, qtbot):
    workspace.apply("work", workload=Training(method="qlora"))
    dialog = opened()
    cheapest = award(dialog, "cheapest")
    assert cheapest.view.row.option.changes == ("selective checkpointing",)
    qtbot.mouseClick(cheapest.use, Qt.MouseButton.LeftButton)
    assert workspace.plan.workload.activation_checkpointing == "selective"
    workspace.undo_stack.undo()
    assert workspace.plan.workload == Training(method="qlora")


def test_the_tab_key_goes_from_the_limits_to_the_answers(opened, qtbot):
    dialog = opened()
    dialog.form.quantize.setFocus()
    order = []
    for _ in range(6):
        qtbot.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        order.append(QApplication.focusWidget())
    uses = [order.index(card.use) for card in dialog.awards.cards]
    assert uses == sorted(uses)
    assert order[0] is dialog.form.tight
    closing = button(dialog, "Close")
    assert closing not in order or order.index(closing) > uses[-1]


def test_enter_in_a_field_neither_takes_an_option_nor_closes(opened, workspace, qtbot):
    dialog = opened()
    before = workspace.plan
    type_into(qtbot, dialog.form.budget, "8")
    qtbot.keyClick(dialog.form.budget.findChild(QLineEdit), Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert workspace.plan == before
    qtbot.waitSignal(dialog.search_finished).wait()
    qtbot.keyClick(dialog, Qt.Key.Key_Escape)
    assert dialog.isHidden()


def test_no_text_of_a_card_is_cut(opened, qtbot):
    dialog = opened()
    for width in (1200, 860):
        dialog.resize(width, dialog.height())
        qtbot.waitUntil(lambda wide=width: dialog.width() == wide)
        for unfolded in (False, True):
            dialog.options.set_open(unfolded)
            dialog.options.toggled.emit(unfolded)
            QCoreApplication.processEvents()
            for label in dialog.awards.findChildren(QLabel):
                if label.isVisible():
                    assert label.height() >= label.heightForWidth(label.width()), label.text()


def test_a_search_is_stopped_by_its_button(opened, qtbot, tasks, monkeypatch):
    dialog = opened()
    rows = dialog.model.records
    begun = Event()

    def endless(*_args, stop, **_more):
        begun.set()
        while not stop():
            pass

    monkeypatch.setattr(module, "recommend", endless)
    dialog.search()
    qtbot.waitUntil(begun.is_set)
    qtbot.mouseClick(dialog.stop, Qt.MouseButton.LeftButton)
    assert not tasks.busy
    assert not dialog.progress.isVisible()
    assert dialog.model.records == rows


def test_answers_and_rows_are_copied(opened):
    dialog = opened()
    dialog.copy()
    text = QGuiApplication.clipboard().text()
    assert text.startswith("Cheapest")
    assert text.count("\n") > len(dialog.model.records)


def test_the_plot_shows_what_can_be_compared(opened, qtbot):
    dialog = unfold(opened(), qtbot)
    plot = dialog.pareto.plot
    sure = {option.key for option in sure_options(dialog.recommendation.options)}
    comparable = [row for row in dialog.model.records if row.id in sure]
    assert len(plot.rows) == len(comparable)
    plot.hovered.emit(comparable[0])
    assert comparable[0].cards in dialog.about.text()
    plot.hovered.emit(None)
    assert "Excluded" in dialog.about.text()
    plot.chosen.emit(comparable[2])
    assert dialog.table.current_id == comparable[2].id


def test_a_point_is_found_under_the_pointer(opened, qtbot):
    plot = unfold(opened(), qtbot).pareto.plot
    row = next(row for row in plot.rows if "fastest" in row.awards)
    box = plot._item.getViewBox()
    where = box.mapViewToScene(QPointF(*plot.log_position(row)))
    with qtbot.waitSignal(plot.hovered) as hovered:
        plot._on_pointer_moved(where)
    assert hovered.args[0].option.slowness == row.option.slowness
    with qtbot.waitSignal(plot.hovered) as hovered:
        plot._on_pointer_moved(QPointF(-50, -50))
    assert hovered.args == [None]


def test_the_legend_hides_what_is_owned(opened, qtbot):
    panel = unfold(opened(), qtbot).pareto
    assert {row.option.having for row in panel.plot.rows} == {"rent", "own"}
    (owned,) = [button for button in panel.legend.buttons if button.entry.key == "own"]
    qtbot.mouseClick(owned, Qt.MouseButton.LeftButton)
    assert {row.option.having for row in panel.plot.rows} == {"rent"}


def test_labels_in_the_plot_do_not_overlap(opened, qtbot):
    plot = unfold(opened(), qtbot).pareto.plot
    boxes = plot.names.boxes
    assert boxes
    assert not any(one.intersects(other) for at, one in enumerate(boxes) for other in boxes[:at])


def test_everything_the_keyboard_reaches_has_a_name(opened, qtbot):
    dialog = unfold(opened(), qtbot)
    reached = [made for made in dialog.findChildren(QWidget) if made.focusPolicy() & Qt.FocusPolicy.TabFocus]
    nameless = [made for made in reached if not (made.accessibleName() or getattr(made, "text", str)())]
    assert [type(made).__name__ for made in nameless if made.isVisible()] == []


def test_the_table_leaves_fit_price_date_and_warnings_on_the_cards(opened, qtbot):
    dialog = unfold(opened(), qtbot)
    for card in dialog.awards.cards:
        texts = {label.text() for label in card.findChildren(QLabel) if label.isVisibleTo(card)}
        assert "\n".join(card.view.facts) in texts
        assert not card.view.warnings or "\n".join(card.view.warnings) in texts
        assert card.view.why not in texts


def test_the_purchase_price_is_a_limit_of_what_is_owned(opened):
    dialog = opened(wish=Wish(max_price_usd=700, having=("own",), counts=(1,)))
    assert dialog.form.wish.max_price_usd == 700
    assert dialog.recommendation.options
    assert all((option.purchase_usd or 0) <= 700 for option in dialog.recommendation.options)


@pytest.mark.parametrize(("having", "chosen"), [("own", "buy"), ("rent", "rent")])
def test_the_plan_costs_what_was_chosen(opened, workspace, having, chosen):
    dialog = opened(wish=Wish(having=(having,), counts=(1,)))
    dialog.use(dialog.recommendation.cheapest)
    assert workspace.plan.cost.chosen == chosen
    workspace.undo_stack.undo()
    assert workspace.plan.cost.chosen is None
