"""On which cards it runs, and what else they have to hold."""

from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.gui.choices import card_choices, card_name
from planner.gui.memory.picker_field import PickerField
from planner.gui.memory.questions import bind, new_form, remembered_section
from planner.gui.memory.size_field import SizeField
from planner.gui.theme import Theme
from planner.gui.widgets.number_field import NumberField
from planner.gui.workspace import Workspace
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt


class CardsQuestions(QWidget):
    """The card, how many of them, and what other processes hold; folded, it says the cards."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__()
        self._workspace = workspace
        self.card = PickerField(
            theme, lambda: card_choices(workspace), lambda value: card_name(workspace, value), self.tr("Search cards")
        )
        self.count = NumberField(1, 100_000)
        self.others = SizeField()
        form = new_form(theme)
        form.add("Ca&rd", self.card, hint="The card that it runs on.")
        form.add("&Number of cards", self.count, lambda: 1, "Each holds the whole model and its own sequences.")
        form.add("&Held by others", self.others, lambda: 0, "What other processes hold on each card: 2 GiB, 512 MiB.")
        self._section = remembered_section(workspace, theme, "Cards", form)
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(self._section)
        bind(workspace, self.card, lambda value: workspace.apply("card", gpu=value))
        bind(workspace, self.count, lambda value: workspace.apply("number of cards", count=value))
        bind(
            workspace,
            self.others,
            lambda value: workspace.apply_workload("memory of other processes", other_processes_bytes=value),
        )

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the cards of the plan."""
        plan = evaluation.plan
        self.card.set_value(plan.gpu)
        self.count.set_value(plan.count)
        self.others.set_value(plan.workload.other_processes_bytes)
        name = card_name(self._workspace, plan.gpu)
        self._section.set_summary(name if plan.gpu is None else fmt.count_of(plan.count, name))
