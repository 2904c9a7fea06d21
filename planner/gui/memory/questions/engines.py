"""What to ask about the engine that runs a model, and its own settings."""

from collections.abc import Callable
from functools import partial
from typing import Final, get_args

from planner.gui.memory.questions.questions import Questions, new_form
from planner.gui.memory.words import ATTENTION, Options, kv_cache_options, words_of
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.field import Field
from planner.gui.widgets.inputs.number_field import NumberField
from planner.memory.software import serving_memory
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.workload.software.registry import servers, serving, setting_names
from planner.workload.software.vllm import VllmVersion
from planner.workload.workload import Inference, Workload

PROFILES: Final[Options] = ((None, "By the weights"), *((name, one.title) for name, one in servers().items()))
_SHARES: Final = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.92, 0.95, 0.98)
_LLAMA_ATTENTION: Final[Options] = (("sdpa", "Flash attention"), ("eager", "Without flash attention"))
_OF_ENGINE: Final = "engine."
_MOST: Final = 1_000_000


def ask_engine(questions: Questions) -> None:
    """Ask which engine runs the model; what it can be told unfolds below."""
    form = new_form(questions.theme)
    profile = ChoiceField(questions.theme, PROFILES)
    questions.ask(form, "profile", "Engine", profile, "The software that runs the model. It decides what is reserved.")
    questions.ask_where_it_matters(
        form,
        "gpu_layers",
        "Layers on the card",
        partial(NumberField, 0, 100_000, placeholder="all"),
        "The last layers stand on the card, the others in RAM; the output counts as one.",
    )
    for name, label, make, hint in _settings(questions):
        questions.ask_where_it_matters(form, f"{_OF_ENGINE}{name}", label, make, hint)
    questions.add_section("Engine", form, _summary)


def _settings(questions: Questions) -> tuple[tuple[str, str, Callable[[], Field], str], ...]:
    theme = questions.theme
    versions = tuple((version, f"vLLM {version}") for version in get_args(VllmVersion))

    def number(maximum: int) -> Callable[[], Field]:
        return partial(NumberField, 1, maximum, placeholder=fmt.UNKNOWN)

    yes_or_no = partial(ChoiceField, theme, ((None, "As usual"), (True, "Yes"), (False, "No")))

    return (
        (
            "version",
            "Version",
            partial(ChoiceField, theme, ((None, "As usual"), *versions)),
            "What is reserved differs between versions.",
        ),
        (
            "max_num_seqs",
            "Sequences in a step",
            number(_MOST),
            "vLLM warms up for this many, and reserves logits.",
        ),
        ("max_num_batched_tokens", "Tokens in a step", number(100_000_000), "The activations of a step grow with it."),
        (
            "memory_utilization",
            "Share of the card",
            partial(ChoiceField, theme, shares(None)),
            "What is left holds the cache.",
        ),
        ("block_size", "Tokens in a page", number(4096), "The cache is kept in pages of this many tokens."),
        ("enforce_eager", "No CUDA graphs", yes_or_no, "Graphs are faster, and take memory of their own."),
        ("slots", "Slots", number(256), "Sequences that llama-server answers at once."),
        ("n_batch", "Tokens in a batch", number(_MOST), "What is handed to the model in one call."),
        ("n_ubatch", "Tokens at once", number(_MOST), "The compute buffer grows with it."),
        ("kv_unified", "One cache", yes_or_no, "Slots share one cache, or have one of their own each."),
        (
            "swa_full",
            "Full sliding layers",
            yes_or_no,
            "Keep the whole context in layers with a window.",
        ),
        ("n_outputs_max", "Rows of logits", number(_MOST), "Rows of a batch whose logits are made."),
    )


def shares(chosen: float | None) -> Options:
    """Return the shares of the card to choose from, with the one that was chosen elsewhere."""
    values = sorted({*_SHARES, *((chosen,) if chosen else ())})
    return ((None, "As usual"), *((value, fmt.percent(value)) for value in values))


def imply_settings(questions: Questions, evaluation: Evaluation) -> None:
    """Say in the empty fields of settings what applies."""
    workload = evaluation.workload
    if evaluation.architecture is None or not isinstance(workload, Inference):
        return
    program = serving_memory(workload.profile, evaluation.architecture)
    used = program.settings_in_use(evaluation.architecture, workload, evaluation.gpu)
    for name in setting_names():
        field = questions.asked(f"{_OF_ENGINE}{name}")
        if isinstance(field, NumberField):
            field.set_implied(getattr(used, name, None))


def belongs(name: str, profile: str | None) -> bool:
    """Return whether the field `name` of the workload is a question about `profile`."""
    if any(name in serving(other).own_fields for other in servers()):
        return profile is not None and name in serving(profile).own_fields
    setting = name.removeprefix(_OF_ENGINE)
    return setting == name or (profile is not None and setting in serving(profile).settings.model_fields)


def attention_options(profile: str | None) -> Options:
    """Return the ways to attend; llama.cpp has its own flash attention, which can be switched off."""
    return ATTENTION if "safetensors" in serving(profile).containers else _LLAMA_ATTENTION


def cache_options(profile: str | None) -> Options:
    """Return the cache formats that the engine has."""
    formats = serving(profile).cache_formats if profile is not None else ()
    return tuple(option for option in kv_cache_options() if not formats or option[0] in formats)


def _summary(workload: Workload) -> str:
    if not isinstance(workload, Inference):
        return ""
    parts = [words_of(PROFILES, workload.profile)]
    if workload.gpu_layers is not None:
        parts.append(f"{fmt.plural(workload.gpu_layers, 'layer')} on the card")
    given = len(workload.engine.given())
    return ", ".join([*parts, fmt.plural(given, "setting")] if given else parts)
