"""What to ask of a model that is only run."""

from collections.abc import Sequence
from typing import Final

from planner.dtypes import SCHEMES
from planner.gui.memory.questions.engines import (
    ask_engine,
    attention_options,
    belongs,
    cache_options,
    imply_settings,
    shares,
)
from planner.gui.memory.questions.images import ask_images, image_question_has_meaning, makes_images, offer_images
from planner.gui.memory.questions.questions import Questions, length_field, new_form, token_stops, value_of
from planner.gui.memory.words import (
    ATTENTION,
    INFERENCE_COMPUTE,
    PROMPT_LOGITS,
    kv_cache_options,
    scheme_detail,
    scheme_title,
    words_of,
)
from planner.gui.theme import Theme
from planner.gui.widgets.inputs.choice_field import ChoiceField, PickerField
from planner.gui.widgets.inputs.number_field import NumberField
from planner.gui.widgets.search_list import Choice
from planner.gui.workspace import Workspace
from planner.models.architecture import Architecture
from planner.plan.evaluate import Evaluation
from planner.workload.software.registry import serving
from planner.workload.workload import Inference, Workload

_SEQUENCES: Final = "Se&quences at once"
_IMAGES: Final = "Images ma&de at once"
_GENERATING: Final = ("prompt_length", "kv_cache", "prompt_logits")
_OF_BOTH: Final = ("batch", "weights", "compute")
"""Questions about pipelines that make images and about models of text alike."""
_BATCHES: Final = token_stops(1, 1_024)
_LONGEST: Final = 1_048_576


class InferenceQuestions(Questions):
    """Batch, context, prompt and the format of the weights first; the rest unfolds."""

    def __init__(self, workspace: Workspace, theme: Theme) -> None:
        super().__init__(workspace, theme, Inference())
        self._profile: str | None = None
        self._ask_main()
        ask_images(self)
        ask_engine(self)
        self._ask_precision()
        self._ask_attention()

    def refresh(self, evaluation: Evaluation) -> None:
        """Show the workload, and which settings of the engine apply where they are left open."""
        asked, used = evaluation.plan.workload, evaluation.workload
        if isinstance(asked, Inference) and isinstance(used, Inference):
            self._profile = used.profile
            self.offer("engine.memory_utilization", shares(getattr(asked.engine, "memory_utilization", None)))
            self.offer("kv_cache", cache_options(used.profile))
            self.offer("attention", attention_options(used.profile))
            offer_images(self, evaluation)
            self.rename("batch", _IMAGES if makes_images(evaluation) else _SEQUENCES)
        super().refresh(evaluation)
        imply_settings(self, evaluation)

    def has_meaning(self, name: str, architecture: Architecture) -> bool:
        """Leave out what only models have that generate text, or images, and what the engine has no setting for."""
        about_images = image_question_has_meaning(name, architecture)
        if about_images is not None:
            return about_images
        if architecture.kind == "diffusion":
            return name in _OF_BOTH
        encodes = architecture.kind in ("encoder", "vision-encoder")
        asked = super().has_meaning(name, architecture) and belongs(name, self._profile)
        indifferent = self._profile is not None and name in serving(self._profile).ignored_fields
        return asked and not indifferent and not (encodes and name in _GENERATING)

    def _ask_main(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "batch",
            _SEQUENCES,
            NumberField(1, 1_000_000, stops=_BATCHES),
            "How much is made in one go. Activations and the KV cache grow with it.",
        )
        self.ask(
            form,
            "context_length",
            "Context &length",
            length_field(_LONGEST),
            "Tokens of prompt and answer together. The KV cache grows with it.",
        )
        self.ask(
            form,
            "prompt_length",
            "P&rompt length",
            length_field(_LONGEST),
            "Tokens that are read in one pass before the answer begins. Activations grow with it.",
        )
        self.ask(
            form,
            "weights",
            "Wei&ghts",
            PickerField(self.theme, self._weight_choices, self._weight_words, "Search formats"),
            "The format that the weights are kept in: as stored, or quantised.",
        )
        self.add_form(form)

    def _ask_precision(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "compute",
            "Computed in",
            ChoiceField(self.theme, INFERENCE_COMPUTE),
            "The format of activations and logits.",
        )
        self.ask(
            form,
            "kv_cache",
            "&KV cache in",
            ChoiceField(self.theme, kv_cache_options()),
            "The format of the cached keys and values. Fewer bits leave room for longer contexts.",
        )
        self.add_section("Precision", form, self._precision_summary)

    def _ask_attention(self) -> None:
        form = new_form(self.theme)
        self.ask(
            form,
            "attention",
            "Attention",
            ChoiceField(self.theme, ATTENTION),
            "Eager attention makes a matrix of tokens × tokens for every head; the others do not.",
        )
        self.ask(
            form,
            "prompt_logits",
            "Prompt logits",
            ChoiceField(self.theme, PROMPT_LOGITS),
            "Generating text needs the logits of the prompt's last token only;\nscoring a text needs those of all.",
        )
        self.add_section("Attention", form, _attention_summary)

    def _precision_summary(self, workload: Workload) -> str:
        if not isinstance(workload, Inference):
            return ""
        computed, cached = (not self.field(name).isHidden() for name in ("compute", "kv_cache"))
        parts = [words_of(INFERENCE_COMPUTE, workload.compute)] if computed else []
        parts += [f"KV cache in {words_of(kv_cache_options(), workload.kv_cache)}"] if cached else []
        return ", ".join(parts)

    def _weight_choices(self) -> Sequence[Choice]:
        stored = Choice(None, self._weight_words(None), "what the checkpoint has")
        return (
            stored,
            *(Choice(name, scheme.title, scheme_detail(scheme), words=name) for name, scheme in SCHEMES.items()),
        )

    def _weight_words(self, value: object) -> str:
        if value is not None:
            return scheme_title(str(value))
        architecture = self.workspace.evaluation.architecture
        if architecture is not None and architecture.kind == "diffusion":
            return f"As computed ({scheme_title(str(value_of(self.used, 'compute')))})"
        return f"As stored ({scheme_title(architecture.stored_as if architecture else 'bf16')})"


def _attention_summary(workload: Workload) -> str:
    options = attention_options(workload.profile) if isinstance(workload, Inference) else ()
    return words_of((*options, *ATTENTION), workload.attention)
