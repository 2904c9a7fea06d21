"""How a module is traced, in one phrase."""

from itertools import islice

from planner.present import format as fmt
from planner.trace.request import Input, TensorInput, TraceRequest


def request_phrase(request: TraceRequest) -> str:
    """Return `training, AdamW, batch 8, bf16 autocast, checkpointing` or `inference, batch 1, 16 tokens answered`."""
    return ", ".join((request.task, *_how(request), *_sizes(request), *_formats(request), *_spread(request)))


def _how(request: TraceRequest) -> list[str]:
    parts = [f"{request.step.rpartition(':')[2]} of one's own"] if request.step else []
    if request.task == "training" and not request.step:
        parts.append(request.optimizer)
    if request.lora is not None:
        parts.append(f"LoRA of rank {request.lora.rank}")
    if request.gradient_accumulation > 1:
        parts.append(f"{fmt.integer(request.gradient_accumulation)} times accumulated")
    if request.checkpointing != "none":
        parts.append("checkpointing" if request.checkpointing == "full" else "selective checkpointing")
    return parts


def _sizes(request: TraceRequest) -> list[str]:
    parts = _shape(request.inputs) if request.batch is None else [f"batch {fmt.integer(request.batch)}"]
    if request.sequence_length is not None:
        parts.append(f"{fmt.integer(request.sequence_length)} tokens")
    if request.decode_tokens:
        parts.append(f"{fmt.plural(request.decode_tokens, 'token')} answered")
    return parts


def _shape(inputs: tuple[Input, ...]) -> list[str]:
    """Return the shape of the first input that is a tensor: `8 × 3 × 224 × 224`."""
    shapes = (given.value.shape for given in inputs if isinstance(given.value, TensorInput) and given.value.shape)
    return [" × ".join(map(fmt.integer, shape)) for shape in islice(shapes, 1)]


def _formats(request: TraceRequest) -> list[str]:
    return [
        *([request.dtype] if request.dtype else []),
        *([f"{request.autocast} autocast"] if request.autocast else []),
    ]


def _spread(request: TraceRequest) -> list[str]:
    parallel = request.parallel
    return [f"{parallel.strategy.upper()} on {fmt.plural(parallel.ranks, 'rank')}"] if parallel.ranks > 1 else []
