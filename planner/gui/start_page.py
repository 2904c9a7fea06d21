"""The Start page: four doors to what a person wants to do, then the model and the GPU."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import ClassVar, Final, Literal, cast

from PySide6.QtCore import QSize, Qt, QTimer, Signal, Slot
from PySide6.QtGui import QKeyEvent, QMouseEvent, QShowEvent
from PySide6.QtWidgets import QButtonGroup, QPushButton, QSizePolicy, QStackedWidget, QWidget

from planner.errors import PlannerError
from planner.gui.choices import SEARCH_MODELS, CardsField, hub_choice, model_choices
from planner.gui.tab import Tab
from planner.gui.tasks import TaskRunner
from planner.gui.theme import Theme, set_style_role
from planner.gui.threads import CalmTimer
from planner.gui.widgets.buttons import link_button, push_button
from planner.gui.widgets.inputs.choice_field import PickerField, RadioField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.number_field import DecimalField
from planner.gui.widgets.labels import IconLabel, make_label
from planner.gui.widgets.layout import STRETCH, Part, WidgetPool, hairline, in_column, in_row, scrolled
from planner.gui.workspace import Detection, Workspace
from planner.models.load import HUB_PREFIX
from planner.plan.evaluate import Evaluation
from planner.plan.plan import ModelChoice, Plan
from planner.present import format as fmt
from planner.present.plan.phrase import plan_phrase
from planner.workload.choices import Goal


class Door(QPushButton):
    """Large button with an icon, a title and a description; `entered` is emitted on a click and on Return."""

    entered = Signal()

    def __init__(self, theme: Theme, key: str, title: str, icon: str, description: str) -> None:
        super().__init__()
        self.key, self._title = key, title
        self.setCheckable(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        mark = IconLabel(theme)
        mark.show_icon((icon, "accent"))
        self._description = make_label(role="muted", wrap=True)
        space = theme.spacing
        self._column = in_column(
            in_row(mark, (make_label(title, font=theme.font(bold=True)), 1), spacing=space.small),
            self._description,
            STRETCH,
            owner=self,
            margins=space.medium,
            spacing=space.small,
        )
        self.describe(description)

    @property
    def description(self) -> str:
        """Return the text below the title."""
        return self._description.text()

    def describe(self, description: str) -> None:
        """Show `description` below the title."""
        self._description.setText(description)
        self.setAccessibleName(self._title)
        self.setAccessibleDescription(description)
        self.setToolTip(f"{self._title}: {description}")
        self.updateGeometry()

    def sizeHint(self) -> QSize:
        """Return the size of the title and the description."""
        return self._column.sizeHint()

    def minimumSizeHint(self) -> QSize:
        """Return the smallest size in which nothing is cut."""
        return self._column.minimumSize()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter the door with Return."""
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self.setChecked(True)
            self.entered.emit()
        else:
            super().keyPressEvent(event)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """Enter the door with a click; the arrow keys, too, click a button, but only choose it."""
        super().mouseReleaseEvent(event)
        if self.rect().contains(event.position().toPoint()):
            self.entered.emit()


class Doors(QWidget):
    """Row of doors, of which one is chosen; `chosen` and `entered` carry the key of the door."""

    chosen = Signal(str)
    entered = Signal(str)

    def __init__(self, theme: Theme, doors: Iterable[Door]) -> None:
        super().__init__()
        self._doors = {door.key: door for door in doors}
        self._group = QButtonGroup(self)
        row = in_row(owner=self, spacing=theme.spacing.medium)
        for door in self._doors.values():
            self._group.addButton(door)
            row.addWidget(door, 1)
            door.toggled.connect(lambda checked, door=door: self._on_toggled(door, checked))
            door.entered.connect(lambda door=door: self.entered.emit(door.key))

    def __getitem__(self, key: str) -> Door:
        return self._doors[key]

    @property
    def key(self) -> str:
        """Return the key of the chosen door."""
        return next(door.key for door in self._doors.values() if door.isChecked())

    def choose(self, key: str) -> None:
        """Choose the door `key`."""
        self._doors[key].setChecked(True)

    def _on_toggled(self, door: Door, checked: bool) -> None:
        if checked:
            self.setFocusProxy(door)
            self.chosen.emit(door.key)


DoorKey = Literal["run", "fine-tune", "choose", "watch"]

_PRICE: Final = "price"
_JOBS: Final[tuple[tuple[Goal | Literal["price"], str], ...]] = (
    ("run", "Run"),
    ("fine-tune", "Fine-tune"),
    ("train", "Train"),
    (_PRICE, "Price hardware"),
)
_OWNERSHIP: Final = ((True, "I have it"), (False, "I would rent or buy it"))
_DAY_AND_NIGHT, _USUAL_YEARS, _MOST_YEARS = 24.0, 3.0, 30.0
_DOORS: Final[tuple[tuple[DoorKey, str, str, str], ...]] = (
    ("run", "Run a model", "play", "Will it fit, how fast is it, and which GPU does it need?"),
    ("fine-tune", "Fine-tune a model", "tune", "With your own data, on the GPU you have or one you could rent."),
    ("choose", "Choose or buy hardware", "cost", "Which GPU suits the job, and whether to rent or buy it."),
    ("watch", "Watch this machine", "monitor", ""),
)
_FOUND: Final[dict[Detection, tuple[str, str]]] = {
    "pending": ("Looking for GPUs…", "Looking for GPUs on this machine…"),
    "done": ("No GPU found: see the demo.", "No GPU was found on this machine."),
    "failed": ("The GPUs could not be read.", "The GPUs of this machine could not be read."),
}
"""What the door and the question about the GPU say while no card of this machine is known."""
_WATCH: Final = "Load, memory, power and temperature of your GPUs, live, and what slows them down."
_DEMO: Final = "The demo replays a made-up recording of two GPUs in training, 15 minutes long."
_SAMPLE_INSTEAD: Final = (
    "This is the sample plan.",
    "Your answers are kept: choose “Show me” on the Start page.",
)
_NO_MODEL: Final = "The price of hardware does not depend on a model."
_COUNT_LETTERS: Final = 10
_TIMES: Final = "\N{NO-BREAK SPACE}×\N{NO-BREAK SPACE}"
_WIDEST: Final = 1240
_MOST_RECENT: Final = 4
_NAME_LENGTH: Final = 32


class StartPage(Tab):
    """Page with four doors and the questions behind each, and with recent plans, recipes and the demo.

    A plan that is opened meanwhile leaves the page; a model that is opened becomes the answer to its question.
    """

    key: ClassVar[str] = "start"
    title: ClassVar[str] = "Start"
    icon_name: ClassVar[str] = "home"
    primary_action: ClassVar[str] = "&Show me"

    def __init__(self, workspace: Workspace, theme: Theme, tasks: TaskRunner) -> None:
        super().__init__(workspace, theme, tasks)
        self.doors = Doors(theme, (Door(theme, *door) for door in _DOORS))
        self.model = PickerField(
            theme, lambda: model_choices(workspace), _model_text, SEARCH_MODELS, partial(hub_choice, workspace)
        )
        self.own_cards = CardsField(workspace, theme, "None, or I don't know yet")
        self.ownership = RadioField(theme, _OWNERSHIP)
        self.ownership.setToolTip("GPUs that you have cost only their electricity; others are rented or bought.")
        self.job = RadioField(theme, _JOBS)
        self.job.setToolTip(
            "Fine-tuning adapts a pretrained model, here with LoRA; training starts from scratch and updates every "
            "weight; pricing needs no model."
        )
        self.priced_cards = CardsField(workspace, theme, "Choose a GPU")
        self.hours_per_day = DecimalField(0.1, 24)
        self.years = DecimalField(0.1, _MOST_YEARS)
        self.show_me = push_button("Show &me", "Plan it, and show the answer.", "primary")
        self.watch = push_button("Show &me", "Open the Monitor tab.", "primary")
        self.demo = push_button("See the &demo", "Replay a made-up recording of two GPUs in training.")
        self._watch_hint = make_label(_WATCH, wrap=True)
        self._cards_hint = make_label("", "muted", theme.font("small"), wrap=True)
        self._is_leaving = self._is_ownership_chosen = False
        # In a turn of its own: the plan and the tab together would block the window.
        self._showing = CalmTimer(self)
        self._showing.timeout.connect(workspace.navigator.show_memory)
        self._lay_out()
        self._connect()
        self.model.set_value(None)
        self.ownership.set_value(True)
        self.job.set_value("run")
        self.hours_per_day.set_value(_DAY_AND_NIGHT)
        self.years.set_value(_USUAL_YEARS)
        self._show_ownership()
        self.doors.choose("run")
        self._show_found_cards()

    def refresh(self, _evaluation: Evaluation) -> None:
        """Show the model and the cards of the plan, unless it is the sample."""
        plan = self.workspace.plan
        if self.workspace.is_sample or plan.model.trace is not None:
            return
        self.model.set_value(plan.model)
        if plan.gpu is not None:
            self.own_cards.show_cards(plan.gpu, plan.count)
            self.ownership.set_value(plan.cost.buy.owned)

    def copy_result(self) -> str:
        """Return the plan as a phrase."""
        return plan_phrase(self.workspace.evaluation, self.workspace.catalog)

    def focus_search(self) -> None:
        """Open the list of models."""
        self.model.open()

    def run_primary_action(self) -> None:
        """Show what the chosen door leads to."""
        self.show_result()

    def plan_for(self, model: ModelChoice) -> None:
        """Plan a model, and show its memory."""
        self.model.set_value(model)
        if self.doors.key not in ("run", "fine-tune"):
            self.doors.choose("run")
        self.show_result()

    @Slot()
    def show_result(self) -> None:
        """Make the plan that the answers describe, and show the tab with its result."""
        door, navigator = self.doors.key, self.workspace.navigator
        if door == "watch":
            navigator.tab_requested.emit("monitor")
        elif door == "choose" and (self.job.value == _PRICE or self.model.value is None):
            self._price_hardware()
        elif self._take_plan(door):
            if door == "choose":
                navigator.hardware_choice_requested.emit()
            else:
                self._showing.start()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the recent plans, and focus the chosen door."""
        super().showEvent(event)
        self._show_recent_plans()
        self.doors.setFocus()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Return to the tab with Escape, and say if it shows the sample; press the button, or continue, with Return."""
        if event.key() == Qt.Key.Key_Escape:
            if self.workspace.is_sample and self.model.value is not None:
                self.workspace.noticed.emit(*_SAMPLE_INSTEAD)
            self.workspace.navigator.start_left.emit()
        elif event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            focused = self.focusWidget()
            if isinstance(focused, QPushButton):
                focused.click()
            else:
                self.show_result()
        else:
            super().keyPressEvent(event)

    @Slot(object, object)
    def _on_plan_changed(self, old: object, new: object) -> None:
        """Take over a model that was opened; leave the page after any other change from elsewhere."""
        if self._is_leaving or not self.isVisible():
            super()._on_plan_changed(old, new)
        elif isinstance(old, Plan) and isinstance(new, Plan) and _differs_only_in_model(old, new):
            self.model.set_value(new.model)
            self._focus_second_question()
        else:
            self.workspace.navigator.start_left.emit()

    def _take_plan(self, door: str) -> bool:
        """Make the answers the plan, in one undo step; return whether it can be planned."""
        choice = self.model.value
        if choice is None:
            self.model.show_problem("Choose a model first.")
            self.model.setFocus()
            return False
        if str(choice).startswith(HUB_PREFIX):  # which could not be read before
            self.workspace.navigator.hub_model_requested.emit(str(choice))
            return False
        model = choice if isinstance(choice, ModelChoice) else ModelChoice(id=str(choice))
        goal: Goal = "fine-tune" if door == "fine-tune" else "run"
        gpu, count = self.own_cards.cards
        if door == "choose":
            goal, gpu, count = cast("Goal", self.job.value), None, 1
        try:
            with self._leaving():
                self.workspace.begin(goal, model, gpu, count, is_owned=gpu is not None and bool(self.ownership.value))
        except PlannerError as error:
            from planner.gui.memory.questions import error_text  # the start does not wait for it

            self.model.show_problem(error_text(error))
            return False
        return True

    def _price_hardware(self) -> None:
        """Show what cards cost, whatever runs on them; ask for the cards first."""
        gpu, count = self.priced_cards.cards
        if gpu is None:
            self.job.set_value(_PRICE)
            self._show_questions("choose")
            self.priced_cards.show_problem("Choose a GPU first.")
            self.priced_cards.setFocus()
            return
        with self._leaving(), self.workspace.reporting():
            model = self.workspace.begin_pricing(
                gpu, count, cast("float", self.hours_per_day.value), cast("float", self.years.value)
            )
            self.workspace.navigator.tab_requested.emit("cost")
            self.workspace.noticed.emit(*_priced(model))

    @Slot()
    def _show_sample(self) -> None:
        with self._leaving(), self.workspace.reporting():
            self.workspace.show_sample()
        self.workspace.navigator.show_memory()

    @contextmanager
    def _leaving(self) -> Iterator[None]:
        """Change the plan without switching to the last tab: this page chooses the tab that is shown next."""
        self._is_leaving = True
        try:
            yield
        finally:
            self._is_leaving = False

    @Slot(str)
    def _show_questions(self, door: str) -> None:
        """Show the questions of the chosen door: model and GPU, model and job, cards and hours, or what to watch."""
        is_priced = door == "choose" and self.job.value == _PRICE
        self._questions.setCurrentIndex(int(door == "watch"))
        self._first.setCurrentIndex(int(is_priced))
        self._second.setCurrentIndex(int(door == "choose"))
        self._job_below.setCurrentIndex(int(is_priced))

    @Slot()
    def _show_ownership(self) -> None:
        """Ask whether the person has the cards, once there are some; the likely answer is given."""
        has_cards = self.own_cards.cards[0] is not None
        for field in (self.ownership, self.own_cards.count):
            field.setVisible(has_cards)
        if has_cards and not self._is_ownership_chosen:
            self.ownership.set_value(self.own_cards.is_likely_owned)

    @Slot()
    def _on_ownership_edited(self) -> None:
        self._is_ownership_chosen = True

    @Slot(str)
    def _enter(self, door: str) -> None:
        """Focus the first question of the chosen door."""
        first = self.model if door != "watch" else self.watch
        first.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot(object)
    def _on_model_edited(self, value: object) -> None:
        """Continue with the next question; a model of the Hugging Face Hub is read first."""
        if str(value).startswith(HUB_PREFIX):
            self.workspace.navigator.hub_model_requested.emit(str(value))
            return
        QTimer.singleShot(0, self, self._focus_second_question)

    @Slot()
    def _focus_second_question(self) -> None:
        (self.job if self.doors.key == "choose" else self.own_cards).setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def _focus_show_me(self) -> None:
        self.show_me.setFocus(Qt.FocusReason.TabFocusReason)

    @Slot()
    def _show_found_cards(self) -> None:
        """Show which cards this machine has, once that is known."""
        workspace = self.workspace
        found, hint = _FOUND[workspace.detection]
        if workspace.devices:
            from planner.present.catalog.detected_cards import found_kinds  # the start does not wait for it

            kinds = found_kinds(workspace.catalog.hardware, workspace.devices)
            found = f"{fmt.listing(tuple(kind.text.replace(' × ', _TIMES) for kind in kinds), 'and')} found."
            hint = "Found on this machine."
            self.own_cards.offer_found(kinds)
        offers_demo = not workspace.devices and workspace.detection != "pending"
        self.doors["watch"].describe(f"Load, memory and temperature, live.\n{found}")
        self._cards_hint.setText(hint)
        self._watch_hint.setText(f"{_FOUND[workspace.detection][1]} {_DEMO}" if offers_demo else _WATCH)
        set_style_role(self.watch, "" if offers_demo else "primary")
        set_style_role(self.demo, "primary" if offers_demo else "")

    def _show_recent_plans(self) -> None:
        paths = [Path(name) for name in self.workspace.settings.current.recent[:_MOST_RECENT]]
        self._no_recent.setVisible(not paths)
        metrics = self.fontMetrics()
        widest = _NAME_LENGTH * metrics.averageCharWidth()
        for button, path in zip(self._recent.show(len(paths)), paths, strict=True):
            button.setText(metrics.elidedText(path.name, Qt.TextElideMode.ElideMiddle, widest).replace("&", "&&"))
            button.setToolTip(str(path))

    def _open_recent(self, button: QPushButton) -> None:
        self.workspace.navigator.file_requested.emit(Path(button.toolTip()))

    def _connect(self) -> None:
        workspace, navigator = self.workspace, self.workspace.navigator
        self.doors.chosen.connect(self._show_questions)
        self.doors.entered.connect(self._enter)
        self.model.edited.connect(self._on_model_edited)
        self.own_cards.edited.connect(lambda: QTimer.singleShot(0, self, self._focus_show_me))
        self.own_cards.shown.connect(self._show_ownership)
        self.ownership.edited.connect(self._on_ownership_edited)
        self.job.edited.connect(lambda: self._show_questions(self.doors.key))
        for button in (self.show_me, self.watch):
            button.clicked.connect(self.show_result)
        self.demo.clicked.connect(navigator.demo_requested)
        workspace.devices_found.connect(self._show_found_cards)
        workspace.detection_ended.connect(self._show_found_cards)

    def _lay_out(self) -> None:
        space = self.theme.spacing
        body = QWidget()
        in_column(
            (STRETCH, 2),
            make_label("What do you want to do?", font=self.theme.font("answer", bold=True)),
            make_label("GPU Planner shows what fits, how long it takes and what it costs, before you start.", "muted"),
            space.small,
            self.doors,
            space.medium,
            self._make_questions(),
            space.large,
            hairline(Qt.Orientation.Horizontal),
            space.tiny,
            self._make_starting_points(),
            (STRETCH, 3),
            owner=body,
            margins=(space.huge, space.large),
            spacing=space.small,
        )
        body.setMaximumWidth(_WIDEST)
        body.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        centered = QWidget()
        in_row((STRETCH, 1), (body, 100), (STRETCH, 1), owner=centered, spacing=0)
        in_column(scrolled(centered), owner=self)

    def _make_questions(self) -> QStackedWidget:
        """Return the questions behind the doors: model and GPU or job, or what is watched."""
        space = self.theme.spacing
        small = self.theme.font("small")
        own = in_column(self.ownership, self._cards_hint, spacing=space.tiny)
        self._job_below = _stack(
            make_label("No GPU is needed to plan.", "muted", small, wrap=True), self._make_hours_question()
        )
        self._second = _stack(
            self._question("My &GPU", self.own_cards, own, self.own_cards.count),
            self._question("I want &to", self.job, self._job_below),
        )
        open_file = link_button(
            "&Open a file…",
            "A model's configuration or weights, a training file, or a module or script to trace.",
        )
        open_file.clicked.connect(self.workspace.navigator.model_file_requested)
        open_folder = link_button("or a folde&r…", "A folder with a model's config.json or weights.")
        open_folder.clicked.connect(self.workspace.navigator.model_folder_requested)
        file_hint = make_label("or drop one anywhere here", "muted", small)
        self._first = _stack(
            self._question("Mode&l", self.model, in_row(open_file, open_folder, (file_hint, 1), spacing=space.tiny)),
            self._question(
                "&GPU", self.priced_cards, make_label(_NO_MODEL, "muted", small, wrap=True), self.priced_cards.count
            ),
        )
        button = in_column(self.fontMetrics().height() + space.tiny, self.show_me, STRETCH, spacing=0)
        plan = QWidget()
        in_row((self._first, 5), (self._second, 4), button, owner=plan, spacing=space.large)
        watch = QWidget()
        in_column(
            self._watch_hint,
            in_row(self.watch, self.demo, STRETCH, spacing=space.small),
            STRETCH,
            owner=watch,
            spacing=space.small,
        )
        self._questions = _stack(plan, watch)
        return self._questions

    def _make_hours_question(self) -> QWidget:
        """Return the questions how long hardware is used, in one line."""
        question = QWidget()
        row = in_row(owner=question, spacing=self.theme.spacing.small)
        for title, field in (("Ho&urs per day", self.hours_per_day), ("&Years", self.years)):
            label = make_label(title)
            label.setBuddy(field)
            field.set_name(title.replace("&", ""))
            row.addWidget(label)
            row.addWidget(field, 1)
        self.hours_per_day.setToolTip(
            "Hours per day in which the hardware is in use, on average over all 7 days of the week."
        )
        self.years.setToolTip("For how long the hardware is needed: renting is compared with buying over these years.")
        return question

    def _question(self, title: str, field: Field, below: Part, count: Field | None = None) -> QWidget:
        """Return `field`, with a number `count` beside it, below its label `title` and above `below`."""
        label = make_label(title)
        label.setBuddy(field)
        field.set_name(title.replace("&", ""))
        question = QWidget()
        line = field if count is None else in_row((field, 1), count, spacing=self.theme.spacing.small)
        if count is not None:
            count.setMaximumWidth(_COUNT_LETTERS * self.fontMetrics().averageCharWidth())
        in_column(label, line, below, STRETCH, owner=question, spacing=self.theme.spacing.tiny)
        return question

    def _make_starting_points(self) -> QWidget:
        """Return the recent plans, the starting points, and what can be seen without a plan."""
        navigator, space = self.workspace.navigator, self.theme.spacing
        places = in_column(spacing=space.tiny)
        self._recent = WidgetPool(places, self._make_recent_button)
        self._no_recent = make_label("Plans that you save or open appear here.", "muted", wrap=True)
        recipe = link_button("A published recipe…", "Training and inference setups, with their sources.")
        recipe.clicked.connect(navigator.start_from_recipe)
        sample = link_button("The sample plan", "Llama 3.1 8B on an RTX 4090, to look around.")
        sample.clicked.connect(self._show_sample)
        demo = link_button("The Monitor's demo", self.demo.toolTip())
        demo.clicked.connect(navigator.demo_requested)
        catalog = link_button("The catalog of GPUs", "All accelerators and machines, with sources.")
        catalog.clicked.connect(partial(navigator.tab_requested.emit, "catalog"))
        lists = QWidget()
        in_row(
            (self._list("Recent plans", places, self._no_recent), 1),
            (self._list("Start from", recipe, sample), 1),
            (self._list("Explore", demo, catalog), 1),
            owner=lists,
            spacing=space.large,
        )
        return lists

    def _make_recent_button(self) -> QPushButton:
        button = link_button("", "")
        button.clicked.connect(lambda: self._open_recent(button))
        return button

    def _list(self, title: str, *items: Part) -> QWidget:
        """Return `items` below a heading."""
        whole = QWidget()
        heading = make_label(title, font=self.theme.font(bold=True))
        in_column(heading, *items, STRETCH, owner=whole, spacing=self.theme.spacing.tiny)
        return whole


def _stack(*pages: QWidget) -> QStackedWidget:
    stack = QStackedWidget()
    for page in pages:
        stack.addWidget(page)
    return stack


def _differs_only_in_model(old: Plan, new: Plan) -> bool:
    return old.model != new.model and old.evolve(model=new.model) == new


def _priced(model: str) -> tuple[str, str]:
    """Return the notice about the model that stands in where only hardware is priced."""
    name = model.rpartition("/")[2]
    return f"Priced by the hour; the sample model {name} stands in for yours.", _NO_MODEL


def _model_text(value: object) -> str:
    if value is None:
        return "Choose a model"
    return (value.id if isinstance(value, ModelChoice) else str(value)).rpartition("/")[2]
