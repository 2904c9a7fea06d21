"""The values of a workload that depend on the model, filled in so that results can echo them."""

from typing import Final

from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.models.architecture import Architecture
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.parallel import Parallel
from planner.workload.training import Lora, Loss, TrainingProfile
from planner.workload.workload import Inference, Training

DEFAULT_SEQUENCE: Final = 2_048
DEFAULT_CONTEXT: Final = 4_096
_LOSS_OF_PROFILE: Final[dict[TrainingProfile, Loss]] = {
    "liger": "fused-linear",
    "unsloth": "fused-linear",
    "torchtune": "chunked",
}


def with_defaults(workload: Training | Inference, architecture: Architecture, count: int) -> Training | Inference:
    """Return `workload` with every open choice made for `architecture` on `count` cards.

    Inference: weights as the checkpoint stores them, else bf16; context and prompt 4,096 tokens or the model's
    maximum if that is smaller. Training: sequences of 2,048 tokens or the model's maximum; parameters in fp32 under
    autocast, else in the computing format; adapters of rank 16 on all linear layers, on a network in 16 bits or NF4;
    the loss and the step as the profile has them. A model of fixed input length (an image encoder) uses that length.

    Raises:
        SpecError: If the workload asks for another number of replicas than there are cards.
    """
    replicas = workload.parallel.data or count
    if replicas != count:
        reason = f"{replicas:,} replicas need as many cards, not {count:,}"
        raise SpecError("parallel.data", reason, hint="Leave it out, or change the number of cards.")
    parallel = Parallel(data=replicas)
    if isinstance(workload, Training):
        return workload.evolve(
            sequence_length=_length(workload.sequence_length, architecture, DEFAULT_SEQUENCE),
            weights=workload.weights or default_weights(workload),
            lora=workload.lora or (Lora() if workload.adapts else None),
            optimizer_step=workload.optimizer_step or OPTIMIZERS[workload.optimizer].steps[0],
            loss=workload.loss or _LOSS_OF_PROFILE.get(workload.profile, "full-logits"),
            parallel=parallel,
        )
    context = _length(workload.context_length, architecture, DEFAULT_CONTEXT)
    prompt = _length(workload.prompt_length, architecture, min(context, DEFAULT_CONTEXT))
    return workload.evolve(
        weights=architecture.stored_as if workload.weights in (None, AS_STORED) else workload.weights,
        context_length=context if architecture.kind == "encoder-decoder" else max(context, prompt),
        prompt_length=prompt,
        parallel=parallel,
    )


def _length(asked: int | None, architecture: Architecture, default: int) -> int:
    fixed = architecture.main.positions
    if fixed is not None:
        return fixed
    if asked is not None:
        return asked
    return min(default, architecture.max_context or default)


def default_weights(workload: Training) -> str:
    """Return the format that parameters are kept in unless the workload says otherwise.

    The frozen network under adapters is in 16 bits, as checkpoints are loaded, or in NF4; bitsandbytes quantises its
    scales again only when asked to.
    """
    if workload.method == "qlora":
        return "nf4"
    if workload.compute == "tf32":
        return "fp32"
    computed = workload.compute.removeprefix("amp-")
    return "fp32" if computed != workload.compute and not workload.adapts else computed
