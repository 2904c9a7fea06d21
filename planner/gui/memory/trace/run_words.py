"""What the choices of a trace are called."""

from typing import Final

from planner.gui.memory.words import Options, words_of
from planner.trace.request import Argument, Parallel, TraceRequest

Optimizer = tuple[str, tuple[Argument, ...]]
Precision = tuple[str | None, str | None]
Device = tuple[str, str | None]

ZERO_GRAD: Final[Options] = (
    ("after-step", "Freed after the step"),
    ("before-backward", "Freed before the next backward"),
    ("zeros", "Kept, set to zero"),
)
CHECKPOINTING: Final[Options] = (
    ("none", "None"),
    ("selective", "Selective, by operators"),
    ("full", "Full, where it is offered"),
)
STRATEGIES: Final[Options] = (("ddp", "DDP (whole copies)"), ("fsdp", "FSDP2 (sharded)"))
_MOMENTUM: Final = (Argument(name="momentum", value=0.9),)
_OPTIMIZERS: Final[Options] = (
    (("AdamW", ()), "AdamW"),
    (("AdamW", (Argument(name="fused", value=True),)), "AdamW, fused"),
    (("AdamW", (Argument(name="foreach", value=False),)), "AdamW, one by one"),
    (("Adam", ()), "Adam"),
    (("SGD", ()), "SGD"),
    (("SGD", _MOMENTUM), "SGD with momentum"),
    (("Adafactor", ()), "Adafactor"),
    (("Adagrad", ()), "Adagrad"),
    (("Adamax", ()), "Adamax"),
    (("NAdam", ()), "NAdam"),
    (("RAdam", ()), "RAdam"),
    (("RMSprop", ()), "RMSprop"),
)
_PRECISIONS: Final[Options] = (
    ((None, None), "As built"),
    ((None, "bf16"), "BF16 autocast"),
    ((None, "fp16"), "FP16 autocast"),
    (("fp32", None), "FP32"),
    (("bf16", None), "BF16 throughout"),
    (("fp16", None), "FP16 throughout"),
    (("fp64", None), "FP64"),
)


def optimizer_of(request: TraceRequest) -> Optimizer:
    """Return the optimizer with its arguments."""
    return request.optimizer, request.optimizer_arguments


def with_optimizer(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with another optimizer and its arguments."""
    name, arguments = value if isinstance(value, tuple) else (value, ())
    return request.evolve(optimizer=name, optimizer_arguments=arguments)


def optimizer_options(request: TraceRequest) -> Options:
    """Return the optimizers to choose from, the request's own among them."""
    return _with(_OPTIMIZERS, optimizer_of(request), optimizer_words(request))


def optimizer_words(request: TraceRequest) -> str:
    """Return the optimizer as it would be written: `SGD(momentum=0.9)`."""
    named = ", ".join(f"{argument.name}={argument.value}" for argument in request.optimizer_arguments)
    return f"{request.optimizer}({named})" if named else request.optimizer


def precision_of(request: TraceRequest) -> Precision:
    """Return the formats of the parameters and of autocast."""
    return request.dtype, request.autocast


def with_precision(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with other formats of parameters and of autocast."""
    dtype, autocast = value if isinstance(value, tuple) else (value, None)
    return request.evolve(dtype=dtype, autocast=autocast)


def precision_options(request: TraceRequest) -> Options:
    """Return the formats to choose from, the request's own among them."""
    dtype, autocast = precision_of(request)
    own = f"{(dtype or '').upper()} parameters, {(autocast or '').upper()} autocast"
    return _with(_PRECISIONS, (dtype, autocast), own)


def device_of(request: TraceRequest) -> Device:
    """Return whose operators are assumed."""
    return request.device, request.compute_capability


def with_device(request: TraceRequest, value: object) -> TraceRequest:
    """Return the request with another device's operators."""
    device, capability = value if isinstance(value, tuple) else (value, None)
    return request.evolve(device=device, compute_capability=capability)


def device_options(request: TraceRequest, capability: str | None) -> Options:
    """Return the devices to choose from; `capability` is that of the plan's card, where it is one by NVIDIA."""
    card: Options = () if capability is None else ((("cuda", capability), f"CUDA {capability}, this card"),)
    options = (*card, (("cuda", None), "CUDA, any card"), (("cpu", None), "CPU, as on this computer"))
    return _with(options, device_of(request), f"CUDA {request.compute_capability}")


def strategy_of(request: TraceRequest) -> str:
    """Return the strategy for several ranks."""
    return "ddp" if request.parallel.strategy == "none" else request.parallel.strategy


def with_ranks(request: TraceRequest, ranks: object) -> TraceRequest:
    """Return the request on so many ranks; one alone needs no strategy."""
    strategy = "none" if ranks == 1 else strategy_of(request)
    return request.evolve(parallel=request.parallel.evolve(ranks=ranks, strategy=strategy))


def with_strategy(request: TraceRequest, strategy: object) -> TraceRequest:
    """Return the request with another strategy; one rank alone needs none."""
    return (
        request if request.parallel.ranks == 1 else request.evolve(parallel=request.parallel.evolve(strategy=strategy))
    )


def parallel_words(parallel: Parallel) -> str:
    """Return `one rank` or `FSDP on 8 ranks`."""
    return "one rank" if parallel.ranks == 1 else f"{parallel.strategy.upper()} on {parallel.ranks:,} ranks"


def gradients_words(request: TraceRequest) -> str:
    """Return when gradients are let go, and what else decides how long they live."""
    kept = words_of(ZERO_GRAD, request.zero_grad).lower()
    words = {"none": "", "selective": ", selective checkpointing", "full": ", checkpointing"}
    full = words[request.checkpointing]
    steps = f", {request.gradient_accumulation:,} times accumulated" if request.gradient_accumulation > 1 else ""
    return f"{kept}{full}{steps}"


def _with(options: Options, own: object, words: str) -> Options:
    return options if any(value == own for value, _ in options) else (*options, (own, words))
