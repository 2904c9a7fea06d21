"""Runs of built modules with their loss: training steps, the user's own steps, generation, or a forward pass."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional
from torch.optim import Optimizer

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.build import BuiltRun
from planner.trace.worker.hugging_face import (
    cache_names,
    hide_fake_tensors,
    is_hugging_face,
    parameters_of_forward,
)
from planner.trace.worker.observer import RunObserver, tensors_in
from planner.trace.worker.optimizers import CurrentStep, make_optimizer, watch_optimizers
from planner.trace.worker.targets import ForwardCall, load_function, random_integers

_STAGE: Final = "loss"
_CLASS_LOSSES: Final = ("cross_entropy", "nll_loss", "multi_margin_loss")
"""Losses whose target is a class index per example."""


class LossFunction:
    """Loss of a run's output; targets are generated at the first output and kept, as a data loader would keep them."""

    def __init__(self, requested: str | None, inputs: Any, watcher: RunObserver) -> None:
        self._inputs = inputs
        self._watcher = watcher
        self._own_function = load_function(requested) if requested is not None and ":" in requested else None
        self._loss_name = requested if self._own_function is None else None
        self._target: torch.Tensor | None = None

    def __call__(self, output: Any) -> torch.Tensor:
        """Return the loss of `output`.

        Raises:
            TraceError: If no loss can be computed.
        """
        if self._own_function is not None:
            return self._checked_scalar_loss(self._own_function(output, self._inputs))
        if self._loss_name is None and (network_loss := _network_loss(output)) is not None:
            return network_loss
        main_output = _main_output(output)
        if self._loss_name is None:
            self._loss_name = self._inferred_loss(main_output)
        if self._loss_name == "mean":
            return main_output.float().mean()
        return self._loss_with_target(main_output, self._loss_name)

    def _checked_scalar_loss(self, loss: Any) -> torch.Tensor:
        """Return the loss if it is a tensor of one element."""
        if isinstance(loss, torch.Tensor) and loss.numel() == 1:
            return loss
        raise TraceError(_STAGE, "the loss function did not return a scalar", "It must return a tensor of one element.")

    def _inferred_loss(self, main_output: torch.Tensor) -> str:
        """Return the name of the loss inferred from the output's shape, and add a note."""
        name, reason = _infer_loss(main_output, self._inputs)
        self._watcher.add_note(
            f"Loss: {name}, because the output has shape {reason}. To train with another, name it as Loss (--loss)."
        )
        return name

    def _loss_with_target(self, main_output: torch.Tensor, name: str) -> torch.Tensor:
        """Return the loss `name` of the output, with a target that is generated once."""
        loss = _functional_loss(name)
        if name in _CLASS_LOSSES and _has_token_logits(main_output, self._inputs):
            main_output = main_output.reshape(-1, main_output.shape[-1])
        if self._target is None:
            self._target = _make_target(main_output, name)
            self._watcher.label((self._target,), "inputs")
        return loss(main_output, self._target)


def _network_loss(output: Any) -> torch.Tensor | None:
    """Return the network's own loss: a scalar `output`, its `loss`, or its only scalar that requires gradients."""
    if isinstance(output, torch.Tensor):
        return output if output.dim() == 0 else None
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if isinstance(loss, torch.Tensor):
        return loss
    scalars = [tensor for tensor in tensors_in(output) if tensor.dim() == 0 and tensor.requires_grad]
    return scalars[0] if len(scalars) == 1 else None


def _main_output(output: Any) -> torch.Tensor:
    """Return the first tensor of `output` that requires gradients."""
    for tensor in tensors_in(output):
        if tensor.requires_grad:
            return tensor
    raise TraceError(
        _STAGE,
        "nothing in the output depends on trained parameters",
        "Check whether everything is frozen, or write a loss function: --loss file.py:function.",
    )


def _infer_loss(main_output: torch.Tensor, inputs: Any) -> tuple[str, str]:
    """Return the name of a loss that suits the output's shape, and the reason."""
    shape_text = "×".join(map(str, main_output.shape))
    if any(tensor.shape == main_output.shape and tensor.is_floating_point() for tensor in _input_tensors(inputs)):
        return "mse_loss", f"{shape_text}, like an input"
    if _has_token_logits(main_output, inputs):
        return "cross_entropy", f"{shape_text}, scores for each token"
    if main_output.dim() == 2 and main_output.shape[1] > 1:
        return "cross_entropy", f"{shape_text}, class scores"
    if main_output.dim() in (4, 5):
        return "mse_loss", f"{shape_text}, like images"
    return "mean", f"{shape_text}, which suggests no loss"


def _has_token_logits(main_output: torch.Tensor, inputs: Any) -> bool:
    """Return whether the output has scores for each token of an integer input."""
    return main_output.dim() == 3 and any(
        tensor.shape == main_output.shape[:2] and not tensor.is_floating_point() for tensor in _input_tensors(inputs)
    )


def _input_tensors(inputs: Any) -> Iterator[torch.Tensor]:
    """Yield the tensors among a run's inputs."""
    call = ForwardCall.from_inputs(inputs)
    yield from tensors_in((call.args, call.kwargs))


def _functional_loss(name: str) -> Callable[..., torch.Tensor]:
    """Return the function of torch.nn.functional for the loss `name`."""
    loss_function: Callable[..., torch.Tensor] | None = getattr(functional, name, None) or getattr(
        functional, f"{name}_loss", None
    )
    if loss_function is None or "target" not in inspect.signature(loss_function).parameters:
        raise TraceError(
            _STAGE,
            f"torch.nn.functional has no loss {name!r} with one target",
            "Use cross_entropy, mse_loss, l1_loss or another one.",
        )
    return loss_function


def _make_target(main_output: torch.Tensor, name: str) -> torch.Tensor:
    """Return a random target for the loss `name`."""
    if name in _CLASS_LOSSES:
        return random_integers((*main_output.shape[:1], *main_output.shape[2:]), main_output.shape[1])
    # Autocast computes the output in lower precision, but the target comes from a data loader.
    dtype = torch.float32 if torch.is_autocast_enabled("cpu") else main_output.dtype
    return torch.zeros_like(main_output, dtype=dtype, requires_grad=False)


def generates_tokens(built: BuiltRun, request: TraceRequest) -> bool:
    """Return whether the run is prefill and decoding with a cache, rather than one forward pass.

    Raises:
        TraceError: If tokens are requested, but the network cannot generate.
    """
    can_generate = len(built.modules) == 1 and is_hugging_face(built.module) and _can_generate(built.module)
    if request.decode_tokens and not can_generate:
        raise TraceError("load", "only causal networks from transformers can generate tokens", "Omit the tokens.")
    return can_generate and (request.target.kind == "config" or request.decode_tokens > 0)


def generate(
    built: BuiltRun, request: TraceRequest, watcher: RunObserver, autocast: AbstractContextManager[Any]
) -> None:
    """Run the prompt through the network, then `request.decode_tokens` tokens one by one, with the cache.

    **Source**: `transformers.generation.utils.GenerationMixin._sample`: only the last logits are computed if the
    network supports it, and they are copied to fp32.
    """
    model: Any = built.module
    parameters = parameters_of_forward(model)
    options: dict[str, Any] = {"use_cache": True} | ({"logits_to_keep": 1} if "logits_to_keep" in parameters else {})
    inputs = built.forward_call.arguments_by_name(parameters)
    has_encoder = model.config.is_encoder_decoder
    token_argument = "decoder_input_ids" if has_encoder else "input_ids"
    watcher.begin_phase("prefill", 0)
    with autocast:
        if has_encoder:
            options["encoder_outputs"] = _encoder_outputs(model, inputs, token_argument)
            inputs = {token_argument: inputs[token_argument]}
        cache, token = _run_pass(model, inputs | options, watcher)
        for number in range(request.decode_tokens):
            watcher.begin_phase("decode", number)
            if "cache_position" in parameters and token_argument in inputs:
                # Mamba of transformers 4 does not count the tokens in its cache, and asks for the position.
                position = inputs[token_argument].shape[1] + number
                options["cache_position"] = torch.tensor([position], device=token.device)
            cache, token = _run_pass(model, {token_argument: token} | cache | options, watcher)


def _can_generate(model: Any) -> bool:
    return bool(model.can_generate()) and bool(cache_names(model))


def _encoder_outputs(model: Any, inputs: dict[str, Any], decoder_tokens: str) -> Any:
    """Run the encoder on the inputs of an encoder-decoder network, and return its outputs."""
    return model.get_encoder()(**{name: value for name, value in inputs.items() if name != decoder_tokens})


def _run_pass(model: Any, inputs: dict[str, Any], watcher: RunObserver) -> tuple[dict[str, Any], torch.Tensor]:
    """Return the cache after one pass, by argument name, and the next token."""
    output = model(**inputs)
    cache = {name: value for name in cache_names(model) if (value := getattr(output, name, None)) is not None}
    watcher.label(tensors_in(cache), "kv_cache")
    logits = output.logits[:, -1].to(dtype=torch.float32, copy=True)
    return cache, logits.argmax(dim=-1, keepdim=True)


def train(built: BuiltRun, request: TraceRequest, watcher: RunObserver, autocast: AbstractContextManager[Any]) -> None:
    """Run `request.steps` optimizer steps of `request.gradient_accumulation` passes.

    Lifetimes are those of a typical script: the output lives until its backward pass ends, the loss (one number) until
    the next one replaces it, and the graph as long as autograd holds it.

    Raises:
        TraceError: If nothing is trainable, or the loss or the optimizer cannot be made.
    """
    module = built.module
    label_gradients(module, watcher)
    optimizer = _make_optimizer(module, request)
    run_pass = _make_training_pass(built, LossFunction(request.loss, built.inputs, watcher), request, watcher, autocast)
    step = CurrentStep()
    with watch_optimizers(watcher, step):
        for step.number in range(request.steps):
            for pass_index in range(request.gradient_accumulation):
                clear = request.zero_grad == "before-backward" and pass_index == 0
                loss = run_pass(step.number, optimizer.zero_grad if clear else None)  # noqa: F841  # lives as in a script
            optimizer.step()
            if request.zero_grad != "before-backward":
                optimizer.zero_grad(set_to_none=request.zero_grad == "after-step")


def _make_optimizer(module: nn.Module, request: TraceRequest) -> Optimizer:
    """Return the requested optimizer for a module's trainable parameters."""
    if not any(parameter.requires_grad for parameter in module.parameters()):
        raise TraceError("load", "no parameter is trainable", "Freeze fewer parameters, or trace inference.")
    optimizer = make_optimizer(request.optimizer, request.optimizer_arguments, module.parameters(), request.device)
    if inspect.signature(optimizer.step).parameters["closure"].default is inspect.Parameter.empty:
        raise TraceError(
            "load",
            f"{type(optimizer).__name__} recomputes the loss within its step",
            "Write a function step(modules, inputs), and pass it: --step file.py:step.",
        )
    return optimizer


def label_gradients(module: nn.Module, watcher: RunObserver) -> None:
    """Report each gradient to `watcher` when it has been accumulated."""

    def label_gradient(parameter: torch.Tensor) -> None:
        if parameter.grad is not None:
            watcher.label((parameter.grad,), "gradients", parameter)

    for parameter in module.parameters():
        if parameter.requires_grad:
            parameter.register_post_accumulate_grad_hook(label_gradient)


def _make_training_pass(
    built: BuiltRun,
    loss_of: LossFunction,
    request: TraceRequest,
    watcher: RunObserver,
    autocast: AbstractContextManager[Any],
) -> Callable[[int, Callable[[], None] | None], torch.Tensor]:
    """Return a function that runs one forward and backward pass, and returns the loss."""
    module, call = built.module, built.forward_call

    def run_pass(step: int, before_backward: Callable[[], None] | None) -> torch.Tensor:
        watcher.begin_phase("forward", step)
        with autocast:
            output = module(*call.args, **call.kwargs)
            watcher.begin_phase("loss", step)
            loss = loss_of(output)
        if request.gradient_accumulation > 1:
            loss = loss / request.gradient_accumulation
        watcher.begin_phase("backward", step)
        if before_backward is not None:
            before_backward()
        loss.backward()
        return loss

    return run_pass


def run_own_steps(
    built: BuiltRun, request: TraceRequest, watcher: RunObserver, autocast: AbstractContextManager[Any]
) -> None:
    """Call the user's step function `request.steps` times; a third parameter receives the optimizers.

    Phases are observed from outside: a module's forward pass, what follows it (`loss`), the backward pass, and
    optimizer steps.

    Raises:
        TraceError: If the step takes other arguments.
    """
    if built.step is None:
        raise TraceError("load", "the target has no step function")
    arguments = [built.returned_modules, built.inputs]
    if _argument_count(built.step) == 3:
        arguments.append(_make_optimizers(built, request))
    if request.task == "training":
        for module in built.modules.values():
            label_gradients(module, watcher)
    step = CurrentStep()
    with watch_optimizers(watcher, step), _observed_phases(built.modules, watcher, step), autocast:
        for step.number in range(request.steps):
            watcher.begin_phase("forward", step.number)
            built.step(*arguments)


def _argument_count(step: Any) -> int:
    """Return how many arguments the user's step function takes, two or three."""
    signature = inspect.signature(step)
    for count in (2, 3):
        try:
            signature.bind(*range(count))
        except TypeError:
            continue
        return count
    raise TraceError(
        "load",
        f"the step function takes {signature}",
        "It must take (modules, inputs) or (modules, inputs, optimizers).",
    )


def _make_optimizers(built: BuiltRun, request: TraceRequest) -> Any:
    """Return an optimizer for each module, in the structure of the modules; None for frozen modules."""

    def make_for_module(module: nn.Module) -> Any:
        if not any(parameter.requires_grad for parameter in module.parameters()):
            return None
        return make_optimizer(request.optimizer, request.optimizer_arguments, module.parameters(), request.device)

    if isinstance(built.returned_modules, nn.Module):
        return make_for_module(built.returned_modules)
    if isinstance(built.returned_modules, Mapping):
        return {name: make_for_module(module) for name, module in built.returned_modules.items()}
    return [make_for_module(module) for module in built.returned_modules]


@contextmanager
def _observed_phases(modules: Mapping[str, nn.Module], watcher: RunObserver, step: CurrentStep) -> Iterator[None]:
    """Report forward, loss and backward phases of the user's own steps to `watcher`."""
    hooks = []
    for module in modules.values():
        hooks.append(module.register_forward_pre_hook(lambda *_: watcher.begin_phase("forward", step.number)))
        hooks.append(module.register_forward_hook(lambda *_: watcher.begin_phase("loss", step.number)))
    original_backward = torch.autograd.backward

    def observed_backward(*args: Any, **kwargs: Any) -> None:
        watcher.begin_phase("backward", step.number)
        original_backward(*args, **kwargs)

    torch.autograd.backward = observed_backward
    try:
        yield
    finally:
        torch.autograd.backward = original_backward
        for hook in hooks:
            hook.remove()


def run(built: BuiltRun, request: TraceRequest, watcher: RunObserver) -> None:
    """Run `built` as `request` specifies, and report each phase to `watcher`.

    Raises:
        TraceError: If the request cannot be run.
    """
    with hide_fake_tensors():
        if request.task == "training":
            (train if built.step is None else run_own_steps)(built, request, watcher, autocast_context(request))
            return
        with torch.no_grad():
            if built.step is not None:
                run_own_steps(built, request, watcher, autocast_context(request))
            elif generates_tokens(built, request):
                generate(built, request, watcher, autocast_context(request))
            else:
                _run_forward(built, watcher, autocast_context(request))


def autocast_context(request: TraceRequest) -> AbstractContextManager[Any]:
    """Return the autocast context that `request` asks for, which can be entered repeatedly, or an empty context.

    Even disabled, autocast would keep the copies of weights that autocast within it makes, until the outermost ends.
    """
    if request.autocast is None:
        return nullcontext()
    return torch.autocast("cpu", dtype={"bf16": torch.bfloat16, "fp16": torch.float16}[request.autocast])


def _run_forward(built: BuiltRun, watcher: RunObserver, autocast: AbstractContextManager[Any]) -> None:
    """Run one forward pass without gradients."""
    watcher.begin_phase("forward", 0)
    call = built.forward_call
    with autocast:
        built.module(*call.args, **call.kwargs)
