"""The rarer questions of the dialog: loss, own step, what is frozen, LoRA, arguments of the optimizer, steps."""

from pydantic import ValidationError
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from planner.errors import SpecError
from planner.gui.memory.questions.questions import new_form
from planner.gui.theme import Theme
from planner.gui.widgets.label import make_label
from planner.gui.widgets.number_field import NumberField
from planner.gui.widgets.text_field import TextField
from planner.trace.notation import arguments_text, parse_arguments
from planner.trace.request import Lora, TraceRequest


class MoreForm(QWidget):
    """Fields that most people leave as they are; `edited` says that one has changed."""

    edited = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.loss = TextField(placeholder="from the output")
        self.step = TextField(_check_place, "none")
        self.optimizer_arguments = TextField(parse_arguments, "as PyTorch has them")
        self.freeze = TextField(placeholder="nothing")
        self.rank = NumberField(1, 65_536, placeholder="none")
        self.steps = NumberField(1, 100)
        self._problem = make_label(role="bad", wrap=True)
        self._problem.hide()
        form = new_form(theme)
        form.add("&Loss", self.loss, hint="cross_entropy, mse_loss … of torch.nn.functional, or file.py:function.")
        form.add("O&wn step", self.step, hint="file.py:function(modules, inputs), which does a whole step by itself.")
        form.add("Optimizer takes", self.optimizer_arguments, hint="Arguments of the optimizer: lr=0.1, fused=True.")
        form.add("Frozen", self.freeze, hint="Patterns of parameter names that are not trained: encoder.*, *.bias")
        form.add("LoRA rank", self.rank, hint="Adapters of this rank on all linear layers; the rest is frozen.")
        form.add("Ste&ps", self.steps, hint="Whole steps that are traced; two, so that the optimizer's state is in.")
        layout = QVBoxLayout(self)
        layout.setContentsMargins(0, 0, 0, 0)
        layout.addWidget(form)
        layout.addWidget(self._problem)
        for field in (self.loss, self.step, self.optimizer_arguments, self.freeze, self.rank, self.steps):
            field.edited.connect(self.edited)

    def set_request(self, request: TraceRequest) -> None:
        """Show what `request` says."""
        self.loss.set_value(request.loss)
        self.step.set_value(request.step)
        self.optimizer_arguments.set_value(arguments_text(request.optimizer_arguments))
        self.freeze.set_value(", ".join(request.freeze))
        self.rank.set_value(request.lora.rank if request.lora else None)
        self.steps.set_value(request.steps)

    def put(self, request: TraceRequest) -> TraceRequest:
        """Return `request` with what is answered here.

        Raises:
            SpecError: If an answer is not understood or not allowed.
        """
        rank = self.rank.value
        lora = None if rank is None else (request.lora or Lora()).evolve(rank=rank)
        try:
            return request.evolve(
                loss=self.loss.text or None,
                step=self.step.text or None,
                optimizer_arguments=parse_arguments(self.optimizer_arguments.text),
                freeze=tuple(part.strip() for part in self.freeze.text.split(",") if part.strip()),
                lora=lora,
                steps=self.steps.value,
            )
        except ValidationError as error:
            raise SpecError.from_validation(error) from None

    def summary(self) -> str:
        """Return what differs from the usual."""
        rank = self.rank.value
        parts = (
            f"loss {self.loss.text}" if self.loss.text else "",
            f"own step {self.step.text.rpartition(':')[2]}" if self.step.text else "",
            f"frozen: {self.freeze.text}" if self.freeze.text else "",
            f"LoRA of rank {rank}" if rank else "",
        )
        return ", ".join(part for part in parts if part) or "as usual"


def _check_place(text: str) -> None:
    file, colon, name = text.strip().rpartition(":")
    if text.strip() and not (colon and file.endswith(".py") and name.isidentifier()):
        raise SpecError("step", "is not file.py:function")
