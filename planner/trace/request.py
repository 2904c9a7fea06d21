"""Trace requests: a module, its inputs and sizes, and how it is run."""

import re
from collections.abc import Callable
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import Field, field_validator, model_validator

from planner.base import Spec
from planner.workload.optimizers import OPTIMIZERS, Optimizer, OptimizerStep

DTYPES: Final = (
    "float32",
    "float64",
    "float16",
    "bfloat16",
    "int64",
    "int32",
    "int16",
    "int8",
    "uint8",
    "bool",
    "complex64",
)
"""Element types of inputs, by PyTorch's names."""

Value = None | bool | int | float | str
Precision = Literal["fp32", "fp64", "bf16", "fp16"]
AssumptionKind = Literal["mask", "condition", "choice", "number", "integer", "distinct"]
UnknownValues = Literal["bounded", "typical", "drawn", "fewest", "most", "slowest"]


class TensorInput(Spec):
    """A tensor by its shape and element type; `high` is the exclusive upper bound of random integers."""

    kind: Literal["tensor"] = "tensor"
    shape: tuple[Annotated[int, Field(ge=0)], ...]
    dtype: Literal[DTYPES] = "float32"  # type: ignore[valid-type]  # the names are listed once
    high: int | None = Field(default=None, ge=1)


class ListInput(Spec):
    """A tuple or list of inputs."""

    kind: Literal["tuple", "list"]
    items: "tuple[InputValue, ...]"


class PlainInput(Spec):
    """An input that is a number, a boolean, a text or None."""

    kind: Literal["plain"] = "plain"
    value: Value = None


InputValue = Annotated[TensorInput | ListInput | PlainInput, Field(discriminator="kind")]


class Input(Spec):
    """An argument of `forward`: by keyword, or positional if `name` is empty."""

    name: str = ""
    value: InputValue


class Argument(Spec):
    """A named argument of a constructor, function or optimizer, with a JSON value."""

    name: str = Field(min_length=1)
    value: Value | tuple[Value, ...]


class AssumedValue(Spec):
    """A value that is not known without data, given by its kind or by its source line, such as `net.py:42`.

    It is the fraction that a mask selects or that differs, how many times in a row a condition is true, the position
    that is chosen, or a number.
    """

    name: str
    value: float = Field(ge=0)

    @field_validator("name")
    @classmethod
    def _check_name(cls, name: str) -> str:
        if name not in get_args(AssumptionKind) and not re.fullmatch(r".+:\d+", name):
            kinds = ", ".join(get_args(AssumptionKind))
            raise ValueError(f"{name!r} is neither a source line, such as net.py:42, nor one of {kinds}")
        return name


class Target(Spec):
    """The subject of a trace: a module, by the source that it is loaded from, or a script, as it runs.

    `file`: `place` is a Python file and `name` a class or function in it. `import`: `place` is a package's module.
    `config`: `place` names a Hugging Face model, and `config` is the text of its config.json. `script`: `place` is a
    Python file that is run as a whole; `program`: `place` is a package's module that is run, as by `python -m`. A
    script has its own `command_arguments`, the words of the `launcher` before it, such as `torchrun`, and the working
    `folder` that it is run in, by default the current one.
    """

    kind: Literal["file", "import", "config", "script", "program"]
    place: str = Field(min_length=1)
    name: str = ""
    config: str | None = None
    command_arguments: tuple[str, ...] = ()
    launcher: tuple[str, ...] = ()
    folder: str = ""

    @property
    def is_script(self) -> bool:
        """Return whether the target is a script, run as a whole, which decides itself what it builds and trains."""
        return self.kind in ("script", "program")

    @property
    def has_file(self) -> bool:
        """Return whether `place` is the path of a Python file."""
        return self.kind in ("file", "script")

    @property
    def short_title(self) -> str:
        """Return the title without the folders of a file: `net.py:ConvNet`."""
        if not self.has_file:
            return self.title
        file = re.split(r"[/\\]", self.place)[-1]
        return f"{file}:{self.name}" if self.name else file

    @property
    def title(self) -> str:
        """Return the title for display."""
        return f"{self.place}:{self.name}" if self.name else self.place


class TraceLora(Spec):
    """Low-rank adapters (LoRA) on linear layers; every other parameter is frozen."""

    rank: int = Field(default=16, ge=1, le=65_536)
    targets: tuple[str, ...] = Field(
        default=("all-linear",), description="linear layers with adapters: all-linear, or ends of module paths"
    )
    dtype: Precision = "fp32"
    dropout: float = Field(default=0.0, ge=0, lt=1)


class TraceParallel(Spec):
    """Data-parallel ranks in a process group; one rank is traced."""

    ranks: int = Field(default=1, ge=1, le=100_000)
    strategy: Literal["none", "ddp", "fsdp"] = "none"
    units: tuple[str, ...] = Field(
        default=(), description="class names of the modules that are sharded individually; by default repeating blocks"
    )
    reshard_after_forward: bool = True

    @model_validator(mode="after")
    def _check_strategy(self) -> Self:
        if self.ranks > 1 and self.strategy == "none":
            raise ValueError("several ranks need a strategy: ddp or fsdp")
        return self


class TracedCard(Spec):
    """Figures of the chosen GPU that code asks `torch.cuda` for; the memory is what `cudaMemGetInfo` says is there."""

    name: str
    memory_bytes: int | None = Field(default=None, gt=0)
    multiprocessors: int | None = Field(default=None, gt=0)


class TraceRequest(Spec):
    """A run to trace; where `batch` or `sequence_length` is None, the target's own inputs decide.

    `batch` and `sequence_length` are for Hugging Face models; for a target function that returns inputs they replace
    the first and second dimension of those inputs.
    """

    target: Target
    arguments: tuple[Argument, ...] = ()
    inputs: tuple[Input, ...] = ()
    task: Literal["training", "inference"] = "inference"
    batch: int | None = Field(default=None, ge=1, le=1_000_000_000)
    sequence_length: int | None = Field(
        default=None, ge=1, le=1_000_000_000, description="sequence length in tokens; for generation, the prompt length"
    )
    decode_tokens: int = Field(
        default=0, ge=0, le=100_000, description="number of tokens generated one by one, with the KV cache"
    )
    dtype: Precision | None = Field(
        default=None, description="element type that parameters are cast to; by default they are not cast"
    )
    autocast: Literal["bf16", "fp16"] | None = None
    attention: Literal["sdpa", "eager"] = Field(
        default="sdpa", description="attention implementation of Hugging Face models"
    )
    optimizer: str = Field(default="AdamW", description="name of a class in torch.optim")
    optimizer_arguments: tuple[Argument, ...] = ()
    gradient_accumulation: int = Field(default=1, ge=1, le=10_000)
    zero_grad: Literal["after-step", "before-backward", "zeros"] = Field(
        default="after-step",
        description="when gradients are freed; with zeros, they are set to zero instead",
    )
    checkpointing: Literal["none", "selective", "full"] = Field(
        default="none", description="activation checkpointing; selective decides by operator, as in torchtitan"
    )
    loss: str | None = Field(
        default=None, description="loss: cross_entropy, mse, … of torch.nn.functional, or file.py:name"
    )
    step: str | None = Field(
        default=None, description="the user's function that runs a complete training step, as file.py:function"
    )
    freeze: tuple[str, ...] = Field(default=(), description="patterns of parameter names to freeze")
    lora: TraceLora | None = None
    steps: int = Field(default=2, ge=1, le=100)
    parallel: TraceParallel = TraceParallel()
    assume: tuple[AssumedValue, ...] = Field(default=(), description="given values that depend on the data")
    unknown_values: UnknownValues = Field(
        default="bounded",
        description="what is assumed of values that depend on the data; bounded traces the others too, for the bounds, "
        "and drawn computes them from random numbers where tensors are small",
    )
    device: Literal["cpu", "cuda"] = Field(default="cuda", description="device whose operators are emulated")
    compute_capability: str | None = Field(default=None, pattern=r"^\d+\.\d+$")
    card: TracedCard | None = Field(default=None, description="what torch.cuda says of the GPU")

    @model_validator(mode="after")
    def _check_script(self) -> Self:
        if self.target.is_script:
            changed = [name for name in self.model_fields_set if getattr(self, name) != _default(name)]
            refused = sorted(set(changed) - _FIELDS_OF_SCRIPTS)
            if refused:
                raise ValueError(f"a script itself decides its {', '.join(refused)}")
        return self

    @property
    def runs_user_code(self) -> bool:
        """Return whether tracing runs the user's code."""
        return self.target.kind != "config" or any(":" in place for place in (self.loss or "", self.step or ""))


_FIELDS_OF_SCRIPTS: Final = frozenset(
    ("target", "task", "steps", "device", "compute_capability", "card", "assume", "unknown_values")
)


def _default(name: str) -> object:
    """Return the default of a request's field; None if the field has none."""
    return TraceRequest.model_fields[name].get_default()


_TOKEN_DTYPES = ("int64", "int32")
_ResizeTensor = Callable[[TensorInput], TensorInput]


def requested_batch_size(request: TraceRequest) -> int | None:
    """Return the batch size: the first dimension of the first input, else `batch`; None if the target decides."""
    first = _first_tensor(request)
    return request.batch if first is None else first.shape[0]


def with_batch_size(request: TraceRequest, batch: int | None) -> TraceRequest:
    """Return the request with another batch size; inputs with the first input's first dimension are resized."""
    first_tensor = _first_tensor(request)
    if first_tensor is None or batch is None:
        return request.evolve(batch=batch)
    return _with_resized_inputs(request, lambda tensor: _with_dimension(tensor, 0, first_tensor.shape[0], batch))


def has_sequence_length(request: TraceRequest) -> bool:
    """Return whether the request has a sequence length: a Hugging Face model, a set length, or token ids as input."""
    return (
        request.target.kind == "config" or request.sequence_length is not None or _token_ids_input(request) is not None
    )


def requested_sequence_length(request: TraceRequest) -> int | None:
    """Return the sequence length: that of token ids, else `sequence_length`; None if the model decides."""
    token_ids = _token_ids_input(request)
    return request.sequence_length if token_ids is None else token_ids.shape[1]


def with_sequence_length(request: TraceRequest, length: int | None) -> TraceRequest:
    """Return the request with another sequence length; inputs with the token ids' second dimension are resized."""
    token_ids = _token_ids_input(request)
    if token_ids is None or length is None:
        return request.evolve(sequence_length=length)
    return _with_resized_inputs(request, lambda tensor: _with_dimension(tensor, 1, token_ids.shape[1], length))


def _with_dimension(tensor: TensorInput, dimension: int, old_size: int, new_size: int) -> TensorInput:
    """Return `tensor` with `new_size` in `dimension` if it has `old_size` there, else unchanged."""
    if len(tensor.shape) <= dimension or tensor.shape[dimension] != old_size:
        return tensor
    return tensor.evolve(shape=(*tensor.shape[:dimension], new_size, *tensor.shape[dimension + 1 :]))


def _with_resized_inputs(request: TraceRequest, resize: _ResizeTensor) -> TraceRequest:
    """Return the request with `resize` applied to each tensor input."""
    inputs = tuple(Input(name=input_.name, value=_resize_value(input_.value, resize)) for input_ in request.inputs)
    return request.evolve(inputs=inputs)


def _resize_value(value: InputValue, resize: _ResizeTensor) -> InputValue:
    """Return an input value with `resize` applied to each of its tensors."""
    if isinstance(value, ListInput):
        return value.evolve(items=tuple(_resize_value(item, resize) for item in value.items))
    return resize(value) if isinstance(value, TensorInput) else value


def _token_ids_input(request: TraceRequest) -> TensorInput | None:
    """Return the first tensor if it has the form of token ids: two dimensions of integers."""
    first = _first_tensor(request)
    return first if first is not None and first.dtype in _TOKEN_DTYPES and len(first.shape) == 2 else None


def _first_tensor(request: TraceRequest) -> TensorInput | None:
    """Return the first tensor among the inputs, also inside tuples and lists, or None."""
    queue = [input_.value for input_ in request.inputs]
    while queue:
        value = queue.pop(0)
        if isinstance(value, TensorInput) and value.shape:
            return value
        if isinstance(value, ListInput):
            queue = [*value.items, *queue]
    return None


TORCH_NAMES: Final[dict[str, str]] = {
    name: f"{kind.torch_class}(momentum={kind.momentum})" if kind.momentum else kind.torch_class
    for name, kind in OPTIMIZERS.items()
    if kind.torch_class
}
"""Class of torch.optim by the workload's optimizer, with the arguments that reproduce it."""
_STEP_ARGUMENTS: Final[dict[OptimizerStep, Argument]] = {
    "fused": Argument(name="fused", value=True),
    "foreach": Argument(name="foreach", value=True),
    "loop": Argument(name="foreach", value=False),
}


def torch_optimizer(name: Optimizer, step: OptimizerStep) -> tuple[str, tuple[Argument, ...]] | None:
    """Return the torch.optim class and arguments for an optimizer and step; None if PyTorch lacks the optimizer."""
    kind = OPTIMIZERS[name]
    if not kind.torch_class:
        return None
    momentum = (Argument(name="momentum", value=kind.momentum),) if kind.momentum else ()
    return kind.torch_class, (*momentum, _STEP_ARGUMENTS[step])
