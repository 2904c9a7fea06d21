"""Notice that the plan's module was traced for another card than that of the plan."""

from PySide6.QtWidgets import QWidget

from planner.gui.memory.trace.tracer import Tracer
from planner.gui.theme import Theme
from planner.gui.widgets.buttons import link_button
from planner.gui.widgets.labels import make_label
from planner.gui.widgets.layout import in_row
from planner.plan.evaluate import Evaluation


class OtherCardStrip(QWidget):
    """Notice that the traced operators are not those of the plan's card, with a button to trace again."""

    def __init__(self, theme: Theme, tracer: Tracer) -> None:
        super().__init__()
        self.words = make_label(role="warn", wrap=True)
        self.again = link_button("Trace again", "Trace the module again, with the operators of the plan's card.")
        in_row((self.words, 1), self.again, owner=self, spacing=theme.spacing.small)
        self.again.clicked.connect(tracer.trace_for_card)
        self.hide()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the notice if the traced module of `evaluation` was traced for another card."""
        traced, gpu = evaluation.traced, evaluation.gpu
        self.hide()
        if traced is None or gpu is None:
            return
        from planner.plan.trace_request import is_traced_for_other_card  # few plans are traced

        if is_traced_for_other_card(traced.request, gpu):
            self.words.setText(
                f"The trace was made for another card, of CUDA {traced.request.compute_capability}. "
                f"The operators of the {gpu.name} may need other memory."
            )
            self.show()
