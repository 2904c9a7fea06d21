"""What to ask about images: those that are read, and those that a diffusion pipeline makes."""

from functools import partial
from typing import Final

from planner.gui.memory.questions.questions import Questions, new_form
from planner.gui.memory.words import YES_OR_NO, Options
from planner.gui.widgets.inputs.choice_field import ChoiceField
from planner.gui.widgets.inputs.number_field import NumberField
from planner.models.architecture import Architecture
from planner.models.images import reads_images
from planner.plan.evaluate import Evaluation
from planner.present import format as fmt
from planner.workload.workload import Inference, Workload

_SIZE: Final = "image_size"
_NUMBER: Final = "images"
_OF_PIPELINES: Final = "diffusion."
_SIZES: Final = (
    (512, 512),
    (768, 768),
    (1024, 1024),
    (1152, 896),
    (1216, 832),
    (1344, 768),
    (1536, 1536),
    (2048, 2048),
)
_OFFLOAD: Final[Options] = (
    ("none", "Nothing"),
    ("model", "Components that do not run"),
    ("sequential", "All but the running module"),
)
_TEXT: Final[Options] = ((None, "As computed"), ("int8", "INT8"), ("nf4", "NF4"), ("fp8", "FP8"))
_GUIDANCE: Final[Options] = ((None, "As usual"), (True, "Two, one without the prompt"), (False, "One"))


def ask_images(questions: Questions) -> None:
    """Ask for the images' number and size and what is offloaded; the rest unfolds below."""
    theme = questions.theme
    form = new_form(theme)
    number = partial(NumberField, 0, 100_000, placeholder=fmt.UNKNOWN)
    size, offload = partial(ChoiceField, theme, sizes(None, None)), partial(ChoiceField, theme, _OFFLOAD)
    ask = questions.ask_where_it_matters
    ask(form, _NUMBER, "Images in a prompt", number, "The vision tower reads them before the prompt is read.")
    ask(form, _SIZE, "Image si&ze", size, "Pixels, width by height. Activations grow with them.")
    ask(form, f"{_OF_PIPELINES}offload", "Waits in &RAM", offload, "What is copied to the card only to run.")
    questions.add_form(form)
    more = new_form(theme)
    for name, label, options, hint in (
        ("guidance", "Passes in a step", _GUIDANCE, "Guidance compares the image with one made without the prompt."),
        ("text_weights", "Text encoders in", _TEXT, "The format of the text encoders' weights."),
        ("vae_slicing", "Image by image", YES_OR_NO, "Decode the images of a batch one after the other."),
        ("vae_tiling", "In tiles", YES_OR_NO, "Decode large images in tiles, one after the other."),
    ):
        ask(more, f"{_OF_PIPELINES}{name}", label, partial(ChoiceField, theme, options), hint)
    questions.add_section("Passes and decoding", more, _summary)


def makes_images(evaluation: Evaluation) -> bool:
    """Return whether the model of a plan makes images: a pipeline with a denoiser."""
    return evaluation.architecture is not None and evaluation.architecture.kind == "diffusion"


def offer_images(questions: Questions, evaluation: Evaluation) -> None:
    """Say which size applies where it is left open, and offer what was chosen elsewhere."""
    asked, used = evaluation.plan.workload, evaluation.workload
    if isinstance(asked, Inference) and isinstance(used, Inference):
        questions.offer(_SIZE, sizes(asked.image_size, used.image_size))
        questions.offer(f"{_OF_PIPELINES}text_weights", _TEXT)


def image_question_has_meaning(name: str, architecture: Architecture) -> bool | None:
    """Return whether the question about images makes a difference for a model; nothing for other questions."""
    if name.startswith(_OF_PIPELINES):
        return architecture.kind == "diffusion"
    if name == _NUMBER:
        return reads_images(architecture)
    if name == _SIZE:
        free = reads_images(architecture) and architecture.stacks[0].positions is None
        return free or architecture.kind in ("diffusion", "vision-encoder")
    return None


def sizes(chosen: tuple[int, int] | None, used: tuple[int, int] | None) -> Options:
    """Return the sizes to choose from, with the one that was chosen elsewhere; `used` applies where none is."""
    own = f"Own ({_phrase(used)})" if used else "Its own"
    values = sorted({*_SIZES, *((chosen,) if chosen else ())})
    return ((None, own), *((size, _phrase(size)) for size in values))


def _phrase(size: tuple[int, int]) -> str:
    return f"{fmt.integer(size[0])} × {fmt.integer(size[1])}"


def _summary(workload: Workload) -> str:
    if not isinstance(workload, Inference):
        return ""
    text = workload.diffusion.text_weights or workload.compute
    decoded = [words for name, words in _DECODED if getattr(workload.diffusion, name)]
    passes = "Two passes" if workload.diffusion.guidance else "One pass"
    return ", ".join((passes, f"text in {text}", *decoded))


_DECODED: Final = (("vae_slicing", "image by image"), ("vae_tiling", "in tiles"))
