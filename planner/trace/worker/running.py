"""Runs of built modules: training steps, the user's own steps, generation, or a forward pass."""

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.optim import Optimizer

from planner.errors import TraceError
from planner.trace.request import TraceRequest
from planner.trace.worker.building.build import BuiltRun
from planner.trace.worker.hugging_face.networks import (
    cache_names,
    hide_fake_tensors,
    is_hugging_face,
    parameters_of_forward,
)
from planner.trace.worker.losses import LossFunction
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.optimizers import CurrentStep, make_optimizer, watch_optimizers
from planner.trace.worker.tensors import tensors_in


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
