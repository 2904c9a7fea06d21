"""Builds the modules, adapters, checkpointed blocks and inputs of a request, ready to run."""

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from itertools import chain
from typing import Any, Final

import torch
from torch import nn
from torch.utils.checkpoint import CheckpointPolicy, checkpoint, create_selective_checkpoint_contexts

from planner.errors import TraceError
from planner.trace.request import Precision, TraceLora, TraceRequest
from planner.trace.worker import hugging_face, targets
from planner.trace.worker.observer import RunObserver, tensors_in
from planner.trace.worker.targets import StepFunction, TargetOutput

_aten = torch.ops.aten


def enable_checkpointing(module: nn.Module, *, selective: bool = False) -> str:
    """Enable activation checkpointing in `module`, and return the method used, as the end of a sentence.

    With `selective`, outputs of matrix products and attention are saved, except those of every second `mm`.

    Raises:
        TraceError: If the module neither supports checkpointing nor has repeating blocks.
    """
    arguments: dict[str, Any] = {"use_reentrant": False}
    exception_text = ""
    if selective:
        arguments["context_fn"] = lambda: create_selective_checkpoint_contexts(_SelectiveCheckpointPolicy())
        exception_text = ", except outputs of matrix products and attention"
    if hugging_face.is_hugging_face(module):
        hugging_face.enable_network_checkpointing(module, arguments)
        return f"by the network's own method{exception_text}"
    enable_own = getattr(module, "gradient_checkpointing_enable", None)
    if callable(enable_own) and not selective:
        enable_own()
        return "by the module's own method"
    blocks = repeating_blocks(module)
    if not blocks:
        raise TraceError(
            _STAGE,
            f"{type(module).__name__} supports no activation checkpointing, and has no list of repeating blocks",
            "Add a method gradient_checkpointing_enable() to it.",
        )
    for block in blocks:
        _checkpoint_forward(block, arguments)
    return f"on {len(blocks)} repeating modules{exception_text}"


class _SelectiveCheckpointPolicy:
    """Selective checkpointing policy: which operators' results are saved, as torchtitan decides for each block.

    **Source**: torchtitan `distributed/activation_checkpoint.py` (b5bcd76, 2026-08), `_get_default_save_ops` and
    `SelectiveAC`: the compute-intensive operators of `torch._functorch.partitioners`, except every second `mm`.
    """

    def __init__(self) -> None:
        # It brings the compiler along, a second at the start of each trace, and few save by this policy.
        from torch._functorch.partitioners import get_default_op_list

        operators: Any = get_default_op_list().compute_intensive_ops
        self._saved_operators = {operator.default for operator in operators} | {
            _aten._scaled_dot_product_cudnn_attention.default,
            _aten._scaled_dot_product_attention_math.default,
            _aten._scaled_dot_product_fused_attention_overrideable.default,
            _aten.max.default,
            _aten.topk.default,
        }
        self._product_counts = {False: 0, True: 0}

    def __call__(self, context: Any, operator: Any, *_args: Any, **_kwargs: Any) -> CheckpointPolicy:
        if operator not in self._saved_operators:
            return CheckpointPolicy.PREFER_RECOMPUTE
        if operator == _aten.mm.default:
            self._product_counts[context.is_recompute] += 1
            if self._product_counts[context.is_recompute] % 2 == 0:
                return CheckpointPolicy.PREFER_RECOMPUTE
        return CheckpointPolicy.MUST_SAVE


def repeating_blocks(module: nn.Module) -> list[nn.Module]:
    """Return the outermost repeating modules: two or more of the same class in a list or a sequence."""
    children = list(module.children())
    blocks = _repeated_children(children) if isinstance(module, nn.ModuleList | nn.Sequential) else []
    return blocks + [inner for child in children if child not in blocks for inner in repeating_blocks(child)]


def _repeated_children(children: list[nn.Module]) -> list[nn.Module]:
    """Return the modules in `children` whose class occurs more than once among them."""
    classes = [type(child) for child in children]
    return [child for child in children if any(child.children()) and classes.count(type(child)) > 1]


def _checkpoint_forward(block: Any, arguments: dict[str, Any]) -> None:
    """Make the forward pass of `block` recompute its activations, with `arguments` of torch.utils.checkpoint."""
    # The method is replaced, not the module wrapped, so that paths and the module's own hooks stay as they are.
    block.forward = partial(checkpoint, block.forward, **arguments)


_STAGE: Final = "load"


class LoraLinear(nn.Module):
    """A linear layer with a low-rank adapter.

    **Formula**: base(x) + B(A(dropout(x))) × scaling, where x is first cast to the adapter's dtype.

    **Source**: `peft.tuners.lora.layer.Linear.forward`.
    """

    def __init__(self, base: nn.Module, rank: int, dtype: torch.dtype, dropout: float) -> None:
        super().__init__()
        in_features, out_features = _feature_counts(base)
        self.base_layer = base
        self.lora_dropout = nn.Dropout(dropout) if dropout else nn.Identity()
        self.lora_A = nn.Linear(in_features, rank, bias=False, dtype=dtype)
        self.lora_B = nn.Linear(rank, out_features, bias=False, dtype=dtype)
        self.scaling = 1.0
        nn.init.zeros_(self.lora_B.weight)

    @property
    def weight(self) -> Any:
        """Return the base layer's weight, which T5 accesses, as `peft.tuners.tuners_utils.BaseTunerLayer` does."""
        return self.base_layer.weight

    @property
    def bias(self) -> Any:
        """Return the base layer's bias, which PyTorch's `MultiheadAttention` accesses."""
        return self.base_layer.bias

    def forward(self, x: torch.Tensor, *args: Any, **kwargs: Any) -> torch.Tensor:
        """Return the sum of the base layer's and the adapter's outputs, in the base layer's dtype."""
        result: torch.Tensor = self.base_layer(x, *args, **kwargs)
        dtype = result.dtype
        x = x.to(self.lora_A.weight.dtype)
        result = result + self.lora_B(self.lora_A(self.lora_dropout(x))) * self.scaling
        return result.to(dtype)


def add_adapters(module: nn.Module, lora: TraceLora, dtype: torch.dtype) -> list[torch.Tensor]:
    """Freeze `module`, add adapters to the targeted linear layers, and return the adapters' parameters.

    `all-linear` is every linear layer except the output head, as in PEFT.

    Raises:
        TraceError: If no linear layer matches.
    """
    module.requires_grad_(False)
    targeted = _targeted_linears(module, lora.targets)
    adapted: list[torch.Tensor] = []
    for path, base in targeted.items():
        parent, _, name = path.rpartition(".")
        adapter = LoraLinear(base, lora.rank, dtype, lora.dropout)
        setattr(module.get_submodule(parent), name, adapter)
        adapted += [adapter.lora_A.weight, adapter.lora_B.weight]
    return adapted


def _targeted_linears(module: nn.Module, targets: tuple[str, ...]) -> dict[str, nn.Module]:
    """Return the linear layers that `targets` match, by path."""
    linears = {path: inner for path, inner in module.named_modules() if path and _is_linear(inner)}
    head = _output_head(module)
    if "all-linear" in targets:
        targeted = {path: inner for path, inner in linears.items() if inner is not head}
    else:
        targeted = {
            path: inner for path, inner in linears.items() if f".{path}".endswith(tuple(f".{t}" for t in targets))
        }
    if not targeted:
        ends = ", ".join(sorted({path.rpartition(".")[2] for path in linears})) or "none"
        raise TraceError(
            _STAGE, f"no linear layer matches {' or '.join(targets)}", f"Its linear layers end in: {ends}."
        )
    return targeted


def _is_linear(module: nn.Module) -> bool:
    """Return whether `module` is a linear layer: PyTorch's, or the Conv1D from transformers, which GPT-2 uses."""
    return isinstance(module, nn.Linear) or _is_conv1d(module)


def _is_conv1d(module: nn.Module) -> bool:
    return type(module).__module__ == "transformers.pytorch_utils" and type(module).__name__ == "Conv1D"


def _feature_counts(base: Any) -> tuple[int, int]:
    """Return the numbers of input and output features of a linear layer."""
    if _is_conv1d(base):
        in_features, out_features = base.weight.shape
        return in_features, out_features
    return base.in_features, base.out_features


def _output_head(module: Any) -> object:
    """Return the module's output head, which receives no adapter, or None."""
    return module.get_output_embeddings() if hasattr(module, "get_output_embeddings") else None


DTYPES: Final[Mapping[Precision, torch.dtype]] = {
    "fp32": torch.float32,
    "fp64": torch.float64,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}


@dataclass
class BuiltRun:
    """Built modules of a run, by name and in the structure that the target returned, with inputs and optional step."""

    modules: dict[str, nn.Module]
    returned_modules: Any
    inputs: Any
    step: StepFunction | None = None

    @property
    def module(self) -> nn.Module:
        """Return the run's only module.

        Raises:
            TraceError: If there are several modules.
        """
        if len(self.modules) > 1:
            raise TraceError(
                "load",
                f"the target returns {len(self.modules)} modules without a step that runs them",
                "Write a function step(modules, inputs), and pass it: --step file.py:step.",
            )
        return next(iter(self.modules.values()))

    @property
    def forward_call(self) -> targets.ForwardCall:
        """Return the arguments with which `forward` is called."""
        return targets.ForwardCall.from_inputs(self.inputs)


def build_run(request: TraceRequest, watcher: RunObserver) -> BuiltRun:
    """Build the modules and inputs of `request`, and report their storages to `watcher`.

    Raises:
        TraceError: If something that the request names does not exist or does not fit.
    """
    watcher.begin_phase("load", 0)
    target_output = _target_output(request, watcher)
    built = BuiltRun(target_output.modules_by_name, target_output.modules, None, _step_function(request, target_output))
    _prepare_modules(built, request, watcher)
    built.inputs = _run_inputs(built, target_output, request, watcher)
    watcher.register_modules(built.modules)
    watcher.label(tensors_in((built.forward_call.args, built.forward_call.kwargs)), "inputs")
    if shapes := targets.describe_inputs(built.forward_call):
        watcher.add_note(f"Inputs: {shapes}.")
    return built


def _target_output(request: TraceRequest, watcher: RunObserver) -> TargetOutput:
    """Load the target, or build the Hugging Face network, that `request` names."""
    if request.target.kind != "config":
        target_output = targets.load_target(request.target, request.arguments)
        if request.dtype is not None:
            for module in target_output.modules_by_name.values():
                module.to(DTYPES[request.dtype])
        return target_output
    dtype = DTYPES[request.dtype] if request.dtype is not None else None
    if dtype is None and request.autocast is not None:
        # Autocast is for parameters in fp32; a configuration's format is the format of the stored weights.
        dtype = torch.float32
    module = hugging_face.build_network(request, dtype)
    watcher.add_note(f"Built as {type(module).__name__} in {str(module.dtype).removeprefix('torch.')}.")
    if hugging_face.states_quantization(request):
        watcher.add_note("The checkpoint is quantized; the trace has its weights as not quantized.")
    attention = module.config._attn_implementation
    if attention != request.attention and hasattr(module.config, "num_attention_heads"):
        watcher.add_note(f"{type(module).__name__} has no {request.attention} attention; {attention} is used.")
    return TargetOutput(module)


def _step_function(request: TraceRequest, target_output: TargetOutput) -> StepFunction | None:
    """Return the user's step function: the requested one, else the target's own, or None."""
    if request.step is not None:
        return targets.load_function(request.step)
    return target_output.step if request.task == "training" else None


def _prepare_modules(built: BuiltRun, request: TraceRequest, watcher: RunObserver) -> None:
    """Cast, freeze, adapt and checkpoint the modules as `request` specifies, and label their tensors."""
    for module in built.modules.values():
        watcher.label(module.parameters(), "parameters")
        watcher.label(module.buffers(), "buffers")
        if request.lora is not None:
            watcher.label(add_adapters(module, request.lora, DTYPES[request.lora.dtype]), "adapters")
        module.train(request.task == "training")
    _freeze_parameters(built.modules, request.freeze)
    if request.checkpointing != "none" and request.task == "training":
        for module in built.modules.values():
            method = enable_checkpointing(module, selective=request.checkpointing == "selective")
            watcher.add_note(f"Activation checkpointing {method}.")


def _freeze_parameters(modules: Mapping[str, nn.Module], patterns: tuple[str, ...]) -> None:
    """Freeze parameters whose name, or the path of a module that contains them, matches a pattern.

    Names count with and without the prefix of the network's body, such as `bert.`.
    """
    named_parameters = dict(
        chain.from_iterable(module.named_parameters(prefix=name) for name, module in modules.items())
    )
    bodies = tuple(f"{getattr(module, 'base_model_prefix', '')}." for module in modules.values())
    for pattern in patterns:
        frozen = [
            value
            for full_name, value in named_parameters.items()
            for name in {full_name, *(full_name.removeprefix(body) for body in bodies)}
            if fnmatchcase(name, pattern) or name.startswith(f"{pattern}.")
        ]
        if not frozen:
            raise TraceError(
                "load",
                f"no parameter matches {pattern!r}",
                f"Parameter names look like {', '.join([*named_parameters][:3])}.",
            )
        for parameter in frozen:
            parameter.requires_grad_(False)


def _run_inputs(built: BuiltRun, target_output: TargetOutput, request: TraceRequest, watcher: RunObserver) -> Any:
    """Return the run's inputs: from the request, from the target, or derived from the network."""
    if request.inputs:
        run_inputs = targets.inputs_from_shapes(request.inputs, built.modules)
    elif target_output.inputs is not None:
        run_inputs = targets.resize_inputs(target_output.inputs, request.batch, request.sequence_length)
    elif len(built.modules) == 1 and hugging_face.is_hugging_face(built.module):
        if built.step is not None:
            raise TraceError(
                "load",
                "which inputs the step takes is not known",
                'Specify them, for example --input "input_ids=8x512:int64".',
            )
        return hugging_face.make_inputs(built.module, request, watcher.add_note)
    elif built.step is not None:
        return None
    else:
        raise TraceError(
            "load", "the module's inputs are not known", 'Specify them, for example --input "x=8x3x224x224:float32".'
        )
    return run_inputs if request.dtype is None else targets.cast_floating_point(run_inputs, DTYPES[request.dtype])
