"""The images of a prompt: what the vision tower works with, and what becomes of them for the language model."""

from typing import NamedTuple

from planner.memory.inference.scratch import tower_scratch_bytes
from planner.memory.precision import Precision
from planner.memory.result import Term
from planner.memory.terms import checked, library, model, term
from planner.memory.terms import workload as chosen
from planner.models.architecture import Architecture
from planner.models.images import elements_of_image, patches_of_image, reads_images, tokens_of_image
from planner.workload.workload import Inference

_TOWER_SOURCE = "transformers 5.23 modules: the tensors alive at once inside one layer, the widest block deciding"
_HELD_SOURCE = "transformers 5.23 LlavaModel.forward and its kin: image_features and inputs_embeds are referred to"


class Pictures(NamedTuple):
    """What is alive while the tower reads the images, and what of them is while the language model reads the prompt."""

    tower: Term
    embedded: Term
    encoded: Term


def pixels_term(architecture: Architecture, workload: Inference, precision: Precision) -> Term | None:
    """Return the images that an image encoder reads, which its caller holds; nothing for other networks."""
    tower = architecture.main
    if architecture.kind != "vision-encoder" or tower.positions is None:
        return None
    elements = elements_of_image(tower, tower.positions)
    return term(
        "buffers",
        workload.batch * elements * precision.compute_bytes,
        "B × p × w",
        (
            chosen("B", workload.batch, "images"),
            model("p", elements, "elements of an image: colours and pixels"),
            library("w", precision.compute_bytes, "bytes per element"),
        ),
        "pixel_values, the argument of transformers' image encoders",
    )


def pictures(architecture: Architecture, workload: Inference, precision: Precision) -> Pictures | None:
    """Return what the images of `workload` (defaults filled in) take; nothing where there are none, or no tower.

    The later stages of a pipeline have none.

    **Formula**: tower: images · patches · bytes of its widest layer, beside the embedded prompt; then the encoded
    images, images · tokens · h.

    **Assumes** that all images go through the tower together, as in one call of the processor.
    """
    images = workload.batch * (workload.images or 0)
    if not images or not reads_images(architecture):
        return None
    tower, size = architecture.stacks[0], precision.compute_bytes
    patches, tokens = patches_of_image(tower, workload.image_size), tokens_of_image(tower, workload.image_size)
    needed = tower_scratch_bytes(tower, images, patches, precision, workload.attention)
    every = chosen("m", images, "images of all sequences")
    prompt = workload.prompt_length or 0
    return Pictures(
        tower=checked(
            "activations",
            needed,
            "m × n × a",
            (
                every,
                model("n", patches, "patches of an image, and what stands beside them"),
                model("a", round(needed / (images * patches)), "bytes alive for each inside the tower's widest layer"),
            ),
            _TOWER_SOURCE,
        ),
        embedded=checked(
            "buffers",
            workload.batch * prompt * architecture.hidden * size,
            "B × s × h × w",
            (
                chosen("B", workload.batch, "sequences"),
                chosen("s", prompt, "tokens of the prompt, those of images among them"),
                model("h", architecture.hidden, "width of the language model"),
                library("w", size, "bytes per element"),
            ),
            _HELD_SOURCE,
        ),
        encoded=checked(
            "buffers",
            images * tokens * architecture.hidden * size,
            "m × t × h × w",
            (
                every,
                model("t", tokens, "tokens that an image becomes"),
                model("h", architecture.hidden, "width of the language model"),
                library("w", size, "bytes per element"),
            ),
            _HELD_SOURCE,
        ),
    )
