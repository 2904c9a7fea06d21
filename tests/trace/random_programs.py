"""Small random networks, as source text with how it is trained, and their real and traced peaks."""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple

import torch
from hypothesis import strategies as st
from torch.profiler import ProfilerActivity, profile

from planner.trace.analysis.live_memory import live_memory, peak_moment
from planner.trace.request import Argument, Target, TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.cpu.convolutions import vector_units
from planner.trace.worker.job import record_trace
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.running import run

Shape = tuple[int, ...]
TOLERANCE = 0.005
SLACK_BYTES = 8192
"""What kernels keep on whole pages of memory, whatever they compute."""


class Program(NamedTuple):
    """Source text of a network with its inputs, and the fields of the request that runs it."""

    source: str
    fields: dict[str, object]

    def request(self, folder: Path) -> TraceRequest:
        """Write the source to a file in `folder`, and return the request that runs it."""
        path = folder / f"program_{abs(hash(self.source)):x}.py"
        path.write_text(self.source, encoding="utf-8")
        target = Target(kind="file", place=str(path), name="make")
        return TraceRequest.model_validate({"target": target, "device": "cpu", "steps": 2, **self.fields})


class Peaks(NamedTuple):
    """Real and traced peak of a program, with the bounds that the trace states."""

    real_bytes: int
    traced_bytes: int
    low_bytes: int
    high_bytes: int

    @property
    def error(self) -> float:
        """Return the signed error of the traced peak, as a fraction."""
        return self.traced_bytes / self.real_bytes - 1

    @property
    def is_right(self) -> bool:
        """Return whether the traced peak is exact enough, or the real one lies inside the stated bounds."""
        is_exact = abs(self.traced_bytes - self.real_bytes) <= max(TOLERANCE * self.real_bytes, SLACK_BYTES)
        return is_exact or self.low_bytes <= self.real_bytes <= self.high_bytes


@contextmanager
def one_thread() -> Iterator[None]:
    """Run kernels on one thread: their threads share work in ways that no formula follows to the byte."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    vector_units.cache_clear()
    try:
        yield
    finally:
        torch.set_num_threads(before)
        vector_units.cache_clear()


def peaks_of(request: TraceRequest) -> Peaks:
    """Run `request` for real and trace it, in this process."""

    def work() -> None:
        torch.manual_seed(0)
        run(build_run(request, RunObserver()), request, RunObserver())

    gc.collect()
    gc.freeze()  # the next search need not look at all of PyTorch again
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        work()
    events = [event for event in profiler.profiler.kineto_results.events() if event.name() == "[memory]"]
    real = max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())))
    recording = record_trace(request, lambda *_: None)
    traced = peak_moment(recording, live_memory(recording.allocations)).bytes
    low, high = (
        sum(getattr(difference, field) - difference.bytes for difference in recording.differences)
        for field in ("low_bytes", "high_bytes")
    )
    return Peaks(real, traced, traced + low, traced + high)


class Layer(NamedTuple):
    """A layer's statement in `__init__`, if any, its statement in `forward`, and the shape that it makes of `x`."""

    construct: str
    call: str
    shape: Shape


def _applied(module: str, shape: Shape) -> Layer:
    """Return a layer of one module, which is applied to `x`."""
    return Layer(module, "x = {layer}(x)", shape)


def _computed(call: str, shape: Shape) -> Layer:
    """Return a layer without a module."""
    return Layer("", call, shape)


_ACTIVATIONS = (
    *("relu", "gelu", "silu", "tanh", "sigmoid", "leaky_relu", "elu"),
    *("softplus", "hardswish", "hardtanh", "logsigmoid", "mish", "selu"),
)
_ELEMENTWISE = (
    "x = x * 2.0",
    "x = x + x.tanh()",
    "x = x * x.sigmoid()",
    "x = x - x.mean()",
    "x = x.clamp(-1.0, 1.0)",
    "x = torch.where(x > 0, x, 0.1 * x)",
    "x = x.abs().sqrt()",
    "x = x ** 3",
    "x = x.exp().log1p()",
    "x = x / (1.0 + x.abs())",
    "x = (x * 1.5).add_(1.0)",
    "x = (x + 1.0).mul_(0.5)",
    "x = functional.relu(x * 1.0, inplace=True)",
    "x = (x * 1.0).clamp_(-2.0, 2.0)",
    "x = (x * 1.0).masked_fill_(torch.arange(x.shape[-1]) % 3 == 0, 0.0)",
    "x = x.masked_fill(torch.arange(x.shape[-1]) % 2 == 0, 0.0)",
    "x = x.flip(-1)",
    "x = x.roll(1, -1)",
    "x = x.softmax(-1)",
    "x = x.log_softmax(-1)",
    "x = x.cumsum(-1)",
    "x = x.sigmoid().cumprod(-1)",
    "x = x * x.max()",
    "x = x * (1.0 + x.sigmoid().prod(-1, keepdim=True))",
    "x = x - x.median()",
    "x = functional.normalize(x, dim=-1)",
    "x = x - x.logsumexp(-1, keepdim=True)",
    "x = (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1.0)",
    "x = x.sort(-1).values",
    "x = functional.dropout(x, 0.1)",
    "x = torch.stack([x, x * 2.0]).mean(0)",
    "x = torch.cat(x.chunk(2, -1)[::-1], -1)",
    "x = x.transpose(0, 1).contiguous().transpose(0, 1)",
    "x = x.transpose(-1, -2).contiguous().transpose(-1, -2)",
    "x = x.clone(); x[..., 0] = 0.0",
    "x = x.clone(); x[..., ::2] *= 0.5",
    "x = x.index_fill(-1, torch.arange(0, x.shape[-1], 3), 0.0)",
    "x = x + x.detach()",
    "x = checkpoint(lambda y: (y * y.sigmoid()).tanh(), x, use_reentrant=False)",
)


def _elementwise(shape: Shape) -> st.SearchStrategy[Layer]:
    """Return layers of any shape that keep it."""
    calls = [*_ELEMENTWISE, *(f"x = functional.{name}(x)" for name in _ACTIVATIONS)]
    return st.sampled_from(calls).map(lambda call: _computed(call, shape))


@st.composite
def _selection(draw: st.DrawFn, shape: Shape) -> Layer:
    """Return a layer that selects elements along a dimension other than the first."""
    dim = draw(st.integers(1, len(shape) - 1))
    size, count = shape[dim], max(1, shape[dim] // draw(st.sampled_from((2, 3))))
    chosen = (*shape[:dim], count, *shape[dim + 1 :])
    index = f"torch.arange({count}) * 7 % {size}"
    shown = ", ".join(map(str, chosen))
    spread = ", ".join("-1" if axis == dim else "1" for axis in range(len(shape)))
    return draw(
        st.sampled_from(
            [
                _computed(f"x = x.index_select({dim}, {index})", chosen),
                _computed(f"x = x[{':, ' * dim}{index}]", chosen),
                _computed(f"x = x.topk({count}, {dim}).values", chosen),
                _computed(f"x = x.gather({dim}, ({index}).view({spread}).expand({shown}))", chosen),
                _computed(f"x = x.narrow({dim}, 0, {count})", chosen),
                _computed(f"x = x * x.max({dim}, keepdim=True).values", shape),
                _computed(f"x = x - x.median({dim}, keepdim=True).values", shape),
            ]
        )
    )


@st.composite
def _dense(draw: st.DrawFn, shape: Shape) -> Layer:
    """Return a layer of rows or tokens with parameters."""
    width = shape[-1]
    wider = draw(st.sampled_from((16, 48, 64, 96, 128)))
    bias = draw(st.booleans())
    layers = [
        _applied(f"nn.Linear({width}, {wider}, bias={bias})", (*shape[:-1], wider)),
        Layer(f"nn.Linear({width}, {width}, bias={bias})", "x = x + functional.gelu({layer}(x))", shape),
        Layer(f"nn.Linear({width}, {2 * width})", "x = functional.glu({layer}(x))", shape),
        Layer(f"nn.Linear({width}, {width})", "x = x * {layer}(x).sigmoid_()", shape),
        _applied(f"nn.LayerNorm({width})", shape),
        _applied(f"nn.RMSNorm({width})", shape),
        Layer(f"nn.Parameter(torch.randn({width}, {wider}))", "x = x @ {layer}", (*shape[:-1], wider)),
    ]
    if len(shape) == 2:
        layers.append(_applied(f"nn.BatchNorm1d({width})", shape))
        layers.append(_applied(f"nn.PReLU({width})", shape))
    else:
        layers += [
            Layer(f"nn.LSTM({width}, {wider}, batch_first=True)", "x = {layer}(x)[0]", (*shape[:-1], wider)),
            Layer(f"nn.GRU({width}, {wider}, batch_first=True)", "x = {layer}(x)[0]", (*shape[:-1], wider)),
        ]
        if width % 4 == 0:
            attention = f"nn.MultiheadAttention({width}, 4, batch_first=True)"
            layers += [
                Layer(attention, "x = x + {layer}(x, x, x, need_weights=False)[0]", shape),
                Layer(attention, "x = {layer}(x, x, x)[0]", shape),
                _applied(f"nn.TransformerEncoderLayer({width}, 4, {wider}, batch_first=True)", shape),
                _computed(
                    "y = x.unflatten(-1, (4, -1)).transpose(1, 2); "
                    "x = functional.scaled_dot_product_attention(y, y, y, is_causal=True).transpose(1, 2).flatten(2)",
                    shape,
                ),
            ]
    return draw(st.sampled_from(layers))


@st.composite
def _convolutional(draw: st.DrawFn, shape: Shape) -> Layer:
    """Return a layer of sounds, images or volumes: a convolution, a norm, a pooling or an enlargement."""
    axes, channels, size = len(shape) - 2, shape[1], shape[2:]
    more = draw(st.sampled_from((3, 8, 16, 24, 32)))
    kernel = draw(st.sampled_from((1, 3, 5) if axes < 3 else (1, 3)))
    bias = draw(st.booleans())
    kept = (shape[0], more, *size)
    layers = [
        _applied(f"nn.Conv{axes}d({channels}, {more}, {kernel}, padding={kernel // 2}, bias={bias})", kept),
        _applied(f"nn.BatchNorm{axes}d({channels})", shape),
        _applied(f"nn.GroupNorm(1, {channels})", shape),
        _applied(f"nn.InstanceNorm{axes}d({channels})", shape),
        _applied(f"nn.Dropout{axes}d(0.1)", shape),
    ]
    if min(size) >= 8:
        half = (shape[0], more, *((width + 1) // 2 for width in size))
        pooled = (*shape[:2], *(width // 2 for width in size))
        layers += [
            _applied(f"nn.Conv{axes}d({channels}, {more}, 3, stride=2, padding=1, bias={bias})", half),
            _applied(f"nn.MaxPool{axes}d(2)", pooled),
            _applied(f"nn.AvgPool{axes}d(2)", pooled),
            _applied(f"nn.AdaptiveAvgPool{axes}d(4)", (*shape[:2], *(4,) * axes)),
        ]
    if max(size) <= 16:
        double = (shape[0], more, *(2 * width for width in size))
        layers += [
            _applied(f"nn.ConvTranspose{axes}d({channels}, {more}, 2, stride=2, bias={bias})", double),
            _computed("x = functional.interpolate(x, scale_factor=2)", (*shape[:2], *double[2:])),
        ]
    if axes == 2 and channels % 4 == 0:
        layers.append(_applied("nn.PixelShuffle(2)", (shape[0], channels // 4, *(2 * width for width in size))))
        layers.append(
            _applied(f"nn.Conv2d({channels}, {channels}, {kernel}, padding={kernel // 2}, groups={channels})", shape)
        )
    return draw(st.sampled_from(layers))


_KINDS: dict[str, tuple[st.SearchStrategy[Shape], Callable[[Shape], st.SearchStrategy[Layer]]]] = {
    "rows": (st.tuples(st.sampled_from((64, 256, 1000)), st.sampled_from((32, 64, 100))), _dense),
    "tokens": (st.tuples(st.sampled_from((2, 4)), st.sampled_from((32, 60)), st.sampled_from((32, 64))), _dense),
    "sounds": (
        st.tuples(st.sampled_from((1, 4)), st.sampled_from((3, 16)), st.sampled_from((256, 1000))),
        _convolutional,
    ),
    "images": (
        st.tuples(st.sampled_from((1, 4)), st.sampled_from((3, 16)), st.sampled_from((16, 30))).map(
            lambda sizes: (*sizes, sizes[2])
        ),
        _convolutional,
    ),
    "volumes": (
        st.tuples(st.sampled_from((1, 2)), st.sampled_from((1, 8, 16)), st.sampled_from((8, 12))).map(
            lambda sizes: (*sizes, sizes[2], sizes[2])
        ),
        _convolutional,
    ),
}
_OPTIMIZERS = (
    ("AdamW", {}),
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("Adam", {"amsgrad": True}),
    ("Adagrad", {}),
    ("RMSprop", {"momentum": 0.9}),
    ("Adam", {"foreach": False}),
    ("AdamW", {"fused": True}),
    ("NAdam", {}),
    ("Adafactor", {}),
)
_LOSSES = ("mse_loss", "l1_loss", "smooth_l1_loss", "huber_loss", "binary_cross_entropy_with_logits", "cross_entropy")


@st.composite
def programs(draw: st.DrawFn) -> Program:
    """Networks of one to six layers of mixed kinds, with a loss, an optimizer, a precision and accumulation."""
    shapes, kind_layer = _KINDS[draw(st.sampled_from([*_KINDS]))]
    first = shape = draw(shapes)
    layers: list[Layer] = []
    for _ in range(draw(st.integers(1, 6))):
        kinds = [kind_layer(shape), kind_layer(shape), _elementwise(shape)]
        if shape[-1] >= 4:
            kinds.append(_selection(shape))
        layer = draw(st.one_of(kinds))
        layers.append(layer)
        shape = layer.shape
    loss = draw(st.sampled_from(_LOSSES))
    optimizer, arguments = draw(st.sampled_from(_OPTIMIZERS))
    fields: dict[str, object] = {
        "task": draw(st.sampled_from(("training", "training", "training", "inference"))),
        "optimizer": optimizer,
        "optimizer_arguments": tuple(Argument(name=name, value=value) for name, value in arguments.items()),
        "autocast": draw(st.sampled_from((None, None, "bf16"))),
        "gradient_accumulation": draw(st.sampled_from((1, 1, 2))),
        "zero_grad": draw(st.sampled_from(("after-step", "before-backward", "zeros"))),
    }
    return Program(_source(layers, first, shape, loss), fields)


def _source(layers: list[Layer], first: Shape, last: Shape, loss: str) -> str:
    """Return the source text of a network: a module whose forward pass returns its loss."""
    built = [f"self.layer{number} = {layer.construct}" for number, layer in enumerate(layers) if layer.construct]
    calls = [layer.call.replace("{layer}", f"self.layer{number}") for number, layer in enumerate(layers)]
    return "\n".join(
        [
            "import torch",
            "from torch import nn",
            "from torch.nn import functional",
            "from torch.utils.checkpoint import checkpoint",
            "",
            "class Net(nn.Module):",
            "    def __init__(self):",
            "        super().__init__()",
            f"        self.scale = nn.Parameter(torch.ones({first[-1]}))",
            *(f"        {line}" for line in built),
            "    def forward(self, x):",
            "        x = x * self.scale",
            *(f"        {line}" for line in calls),
            f"        return functional.{loss}(x, torch.full({tuple(last)}, 0.5))",
            "",
            "def make():",
            f"    return Net(), torch.randn{first}",
            "",
        ]
    )
