"""How several cards share the work, and what waits in RAM."""

from collections.abc import Callable
from functools import partial
from typing import Final

from planner.errors import PlannerError
from planner.gui.memory.questions.list_field import ListField, numbers
from planner.gui.memory.questions.questions import Questions, explained, new_form
from planner.gui.memory.words import YES_OR_NO, Options
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.labelled_form import LabelledForm
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.workspace import Workspace
from planner.memory.software import sharder_of
from planner.models.architecture import Architecture, Moe
from planner.plan.answers.draft import DEGREES
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.present.plan.parallel import sharing_summary
from planner.workload.choices import Offload
from planner.workload.software.registry import serving, trainer
from planner.workload.workload import Inference, Training, Workload

_PARALLEL: Final = "parallel."
_MOST_GROUPS: Final = 8
_OFFLOADS: Final[dict[Offload, str]] = {
    "none": "Nothing",
    "optimizer": "Optimizer states",
    "parameters": "Parameters and states",
    "nvme": "Both, on disk (NVMe)",
}


class SharingQuestions(Questions):
    """One form for how cards share, asked where there are several, and one for what is offloaded."""

    def __init__(self, workspace: Workspace, theme: Theme, defaults: Workload) -> None:
        super().__init__(workspace, theme, defaults)
        self._count = 1
        self._ask_sharing()
        self._ask_offload()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show how the plan is shared, with what its software can."""
        self._count = evaluation.plan.count
        architecture, used = evaluation.architecture, evaluation.workload
        if architecture is not None:
            self.offer("parallel.zero", _zero_options(used))
            self.offer("parallel.interleave", _schedule_options(used, architecture))
            self.offer("parallel.offload", _offload_options(used))
        super().refresh(evaluation)

    def has_meaning(self, name: str, architecture: Architecture) -> bool:
        """Leave out what one card, the task, the software or the network has no use for."""
        if architecture.kind == "diffusion":
            return False
        if name == "parallel.offload":
            return len(_offload_options(self.used)) > 1
        return self._count > 1 and _MEANT.get(name, _always)(self.used, architecture)

    def explain(self, name: str, step: str, error: PlannerError) -> str:
        """Say with a number of cards that does not do which ones would."""
        if name not in (*DEGREES, "parallel.data"):
            return explained(error)
        from planner.plan.answers.degrees import possible_degrees  # few numbers are not possible

        found = possible_degrees(self.workspace.before(step), name, self.workspace.catalog)
        return f"{explained(error)} {would_do(found)}"

    def _ask_sharing(self) -> None:
        form = new_form(self.theme)
        ask = self._asking(form)
        ask("zero", "Replicas share", self._choice, "ZeRO and FSDP divide what replicas would each hold in full.")
        self._ask_model_parallel(form)
        ask("data", "Replicas", partial(NumberField, 1, 100_000, placeholder=fmt.UNKNOWN), "What the other ways leave.")
        ask(
            "gradient_as_bucket_view",
            "Gradients in buckets",
            self._yes_or_no,
            "DistributedDataParallel keeps gradients in its buckets, not beside them: gradient_as_bucket_view.",
        )
        ask("reshard_after_forward", "Free after forward", self._yes_or_no, "FSDP frees each layer's parameters.")
        self.add_section("Several GPUs", form, self._summary)

    def _ask_model_parallel(self, form: LabelledForm) -> None:
        ask = self._asking(form)
        ask("tensor", "Tensor parallel", partial(NumberField, 1, 1024), "Cards that share each matrix.")
        ask("sequence", "Norms share tokens", self._yes_or_no, "Sequence parallelism, beside tensor parallelism.")
        ask("pipeline", "Pipeline stages", partial(NumberField, 1, 4096), "Cards that each hold some of the layers.")
        ask("interleave", "Schedule", self._choice, "Stages work on one group of layers, or take turns with several.")
        ask(
            "pipeline_layers",
            "Layers of stages",
            partial(ListField, numbers, "as evenly as it goes"),
            "The layers that each stage holds, with commas between them.",
        )
        if isinstance(self._defaults, Training):
            self.ask_where_it_matters(
                form,
                "gradient_accumulation",
                "Micro-batches",
                partial(NumberField, 1, 1_000_000),
                "Passes through the pipeline for each step of the optimizer: as many are on their way at once as there "
                "are stages, or as there are micro-batches.",
            )
        ask("context", "Context parallel", partial(NumberField, 1, 4096), "Cards that share each sequence.")
        ask("expert", "Expert parallel", partial(NumberField, 1, 4096), "Replicas that share the routed experts.")

    def _ask_offload(self) -> None:
        form = new_form(self.theme)
        ask = self._asking(form)
        ask("offload", "Kept in RAM", self._choice, "What waits in RAM, or on disk, between its uses.")
        self.add_section("Offload", form, _offload_summary)

    def _asking(self, form: LabelledForm) -> Callable[[str, str, Callable[[], Field], str], None]:
        def ask(name: str, label: str, make: Callable[[], Field], hint: str) -> None:
            self.ask_where_it_matters(form, f"{_PARALLEL}{name}", label, make, hint)

        return ask

    def _summary(self, workload: Workload) -> str:
        return sharing_summary(workload, self._count)

    def _choice(self) -> ChoiceField:
        return ChoiceField(self.theme, ((None, ""),))

    def _yes_or_no(self) -> ChoiceField:
        return ChoiceField(self.theme, YES_OR_NO)


def _offload_summary(workload: Workload) -> str:
    words = _OFFLOADS[workload.parallel.offload]
    return f"{words[0].lower()}{words[1:]}"


def would_do(found: tuple[int, ...]) -> str:
    """Return `1, 2 or 4 would do.`."""
    return f"{fmt.listing(tuple(map(fmt.integer, found)), 'or')} would do." if found else ""


def _always(_used: Workload, _architecture: Architecture) -> bool:
    return True


def _trains(used: Workload, _architecture: Architecture) -> bool:
    return isinstance(used, Training)


def _has_experts(_used: Workload, architecture: Architecture) -> bool:
    groups = (group for stack in architecture.stacks for group in stack.groups)
    return any(isinstance(group.layer.feed_forward, Moe) for group in groups)


def _in_stages(used: Workload, _architecture: Architecture) -> bool:
    return used.parallel.pipeline > 1


_MEANT: Final[dict[str, Callable[[Workload, Architecture], bool]]] = {
    "parallel.zero": _trains,
    "parallel.sequence": lambda used, _: isinstance(used, Training) and used.parallel.tensor > 1,
    "parallel.interleave": lambda used, _: isinstance(used, Training) and used.parallel.pipeline > 1,
    "parallel.pipeline_layers": lambda used, _: used.parallel.pipeline > 1 and used.parallel.interleave == 1,
    "gradient_accumulation": _in_stages,
    "parallel.context": _trains,
    "parallel.expert": _has_experts,
    "parallel.gradient_as_bucket_view": lambda used, _: (
        isinstance(used, Training) and not sharder_of(used).shares_states
    ),
    "parallel.reshard_after_forward": lambda used, _: isinstance(used, Training) and sharder_of(used).gathers_layers,
}
"""When a question is asked where there are several cards."""


def _zero_options(used: Workload) -> Options:
    if not isinstance(used, Training):
        return ((0, "Nothing"),)
    own = trainer(used.profile)
    if own.zero_limit == 1:
        return ((0, "Nothing"), (1, "Optimizer (distributed)"))
    everything = (
        "FSDP: parameters, too" if sharder_of(used.evolve(parallel={"zero": 3})).gathers_layers else "ZeRO-3: all"
    )
    staged = own.zero_limit_in_pipeline < 2 and used.parallel.pipeline > 1
    shared = ((2, "ZeRO-2: and gradients"), (3, everything))
    return ((0, "Nothing: DDP"), (1, "ZeRO-1: states"), *(() if staged else shared))


def _schedule_options(used: Workload, architecture: Architecture) -> Options:
    layers, stages = architecture.depth, used.parallel.pipeline
    even = (groups for groups in range(2, _MOST_GROUPS + 1) if layers % (stages * groups) == 0)
    return ((1, "1F1B"), *((groups, f"Interleaved, {groups} groups") for groups in even))


def _offload_options(used: Workload) -> Options:
    if isinstance(used, Inference):
        return _offloads(*serving(used.profile).offloads)
    return _offloads(*trainer(used.profile).offloads)


def _offloads(*names: Offload) -> Options:
    return tuple((name, _OFFLOADS[name]) for name in names)
