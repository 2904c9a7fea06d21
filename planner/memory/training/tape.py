"""Live bytes of a network's forward and backward pass, operator by operator, as PyTorch's autograd keeps them.

A network is written as calls of a `Tape`, in the order and with the variables of its own code: a storage is alive while
a variable or a node of the graph refers to it, here as there. The backward pass then runs the nodes in reverse order.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from sys import maxsize
from typing import Final, NamedTuple

_FP32: Final = 4
_MASK: Final = 1


class Load(NamedTuple):
    """Live bytes at a moment: those of each image, those of any number of images, and parameters with gradients."""

    per_image: int
    fixed: int
    gradients: int


class PassLoads(NamedTuple):
    """The highest loads of a forward pass, the load at its end, the highest ones of the backward pass, and its end."""

    forward: tuple[Load, ...]
    kept: Load
    backward: tuple[Load, ...]
    end: Load


class TapeFormats(NamedTuple):
    """Bytes of an element of parameters, of products and of adapters, and the rank of these.

    `autocast` casts what products read to the format of products, and what norms read to fp32. `dropout` means that
    adapters drop some of their inputs.
    """

    parameter: int
    computed: int
    autocast: bool
    adapter: int = 0
    rank: int = 0
    dropout: bool = False

    @property
    def casts_weights(self) -> bool:
        """Return whether products read copies of the parameters."""
        return self.autocast and self.parameter == _FP32


class _Ledger:
    """The bytes that are alive, and the highest loads so far by what does not depend on the images.

    A gradient of a parameter has `gradient_bytes` per element.
    """

    def __init__(self, gradient_bytes: int) -> None:
        self.gradient_bytes = gradient_bytes
        self.per_image = self.fixed = self.gradients = 0
        self.highest: dict[tuple[int, int], int] = {}

    def add(self, per_image: int, fixed: int, gradients: int = 0) -> None:
        """Count a new storage or new gradients of parameters, or with negative sizes a freed storage."""
        self.per_image += per_image
        self.fixed += fixed
        self.gradients += gradients
        at = (self.fixed, self.gradients)
        if self.per_image > self.highest.get(at, -1):
            self.highest[at] = self.per_image

    def now(self) -> Load:
        """Return what is alive."""
        return Load(self.per_image, self.fixed, self.gradients)

    def loads(self) -> tuple[Load, ...]:
        """Return the loads since the last call that are the highest for some number of images.

        That is asked with the gradients that there are, and with those of all parameters throughout.
        """
        met = [Load(per_image, *at) for at, per_image in self.highest.items()]
        self.highest = {}
        found: list[Load] = []
        for size in (self.gradient_bytes, 0):
            found += _highest_lines(met, size)
        return tuple(dict.fromkeys(found))


def _highest_lines(loads: Sequence[Load], gradient_bytes: int) -> list[Load]:
    """Return those of `loads` that are the highest for some number of images: the upper hull of their lines."""

    def fixed(load: Load) -> int:
        return load.fixed + load.gradients * gradient_bytes

    hull: list[Load] = []
    for load in sorted(loads, key=lambda one: (one.per_image, fixed(one))):
        while hull and fixed(hull[-1]) <= fixed(load):
            hull.pop()
        # The last line is nowhere the highest if the new one overtakes the line before it first.
        while len(hull) > 1 and (fixed(hull[-2]) - fixed(load)) * (hull[-1].per_image - hull[-2].per_image) <= (
            fixed(hull[-2]) - fixed(hull[-1])
        ) * (load.per_image - hull[-2].per_image):
            hull.pop()
        hull.append(load)
    return hull


class _Storage:
    """Bytes of a tensor and its views, alive as long as this object: CPython frees it with the last reference to it.

    `holders` are the nodes that it waits for as their gradient.
    """

    __slots__ = ("fixed", "holders", "ledger", "per_image")

    def __init__(self, ledger: _Ledger, per_image: int, fixed: int = 0) -> None:
        self.ledger, self.per_image, self.fixed, self.holders = ledger, per_image, fixed, 0
        ledger.add(per_image, fixed)

    def __del__(self) -> None:
        self.ledger.add(-self.per_image, -self.fixed)


class _Node:
    """An operator of the graph: where the gradients of its inputs go, and the storages that it saved for them.

    It hands on its own gradient to inputs of at least `passes_from` bytes. `scratch` are bytes of an image that live
    while it runs, `trained` its trained parameters, `uncast` the bytes of their gradient before it is cast to their
    format. With a `checkpoint` it saves nothing until its block is computed again.
    """

    __slots__ = ("checkpoint", "inputs", "passes_from", "pending", "saved", "scratch", "trained", "uncast")

    def __init__(
        self,
        inputs: "Sequence[Value]" = (),
        saved: Sequence[_Storage] = (),
        *,
        outputs: int = 1,
        trained: int = 0,
        uncast: int = 0,
        scratch: int = 0,
        passes_from: int = maxsize,
    ) -> None:
        self.inputs = [(one.node, one.slot, one.bytes) for one in inputs if one.node is not None]
        self.saved = list(saved)
        self.pending: list[_Storage | None] = [None] * outputs
        self.trained, self.uncast, self.scratch, self.passes_from = trained, uncast, scratch, passes_from
        self.checkpoint: _Checkpoint | None = None


class Value:
    """A tensor: its storage, elements of an image, bytes of each, and the output of the node that it is.

    Without a node it needs no gradient.
    """

    __slots__ = ("elements", "node", "slot", "storage", "width")

    def __init__(self, storage: _Storage, elements: int, width: int, node: _Node | None = None, slot: int = 0) -> None:
        self.storage, self.elements, self.width, self.node, self.slot = storage, elements, width, node, slot

    @property
    def bytes(self) -> int:
        """Return the bytes of the values of one image."""
        return self.elements * self.width


Block = Callable[..., tuple[Value, ...]]
"""Part of a network that is checkpointed as a whole, from values to values."""
_UNRECORDED: Final = _Node()
"""Node of values that need a gradient while a block is computed again."""


class _Checkpoint:
    """A block whose nodes saved nothing: its inputs, and the nodes that are to save something, in their order."""

    __slots__ = ("block", "inputs", "nodes")

    def __init__(self, block: Block, inputs: tuple[Value, ...]) -> None:
        self.block, self.inputs = block, inputs
        self.nodes: list[_Node] = []


class _Saved(Exception):  # noqa: N818  # it ends a computation, and is no error
    """Everything that a checkpointed block saves was computed again."""


class Tape:
    """Records the operators of a network, and runs them backward.

    The linear layers whose names are in `adapted` have adapters, with the rest frozen; None trains all parameters.
    `checkpointed` blocks save their inputs alone, and are recomputed in the backward pass.
    """

    def __init__(self, formats: TapeFormats, adapted: frozenset[str] | None, *, checkpointed: bool = False) -> None:
        self.formats, self.adapted, self.checkpointed = formats, adapted, checkpointed
        self.trains_all = adapted is None
        self._ledger = _Ledger(formats.adapter or formats.parameter)
        self._nodes: list[_Node] = []
        self._checkpoint: _Checkpoint | None = None
        self._unsaved: list[_Node] | None = None
        self._casts: list[_Storage] = []

    def value(self, elements: int, width: int) -> Value:
        """Return an input of the network, which needs no gradient."""
        return Value(_Storage(self._ledger, elements * width), elements, width)

    def parameter(self, elements: int) -> Value:
        """Return a parameter of its own, such as a table that is added to the embedded time."""
        node = self._node((), trained=elements) if self.trains_all else None
        return Value(_Storage(self._ledger, 0), elements, self.formats.parameter, node)

    def run(self, network: Callable[[], Value]) -> PassLoads:
        """Return the loads of a forward pass through `network` and of the backward pass from its output."""
        output = network()
        forward, kept = self._ledger.loads(), self._ledger.now()
        self._casts = []
        if output.node is not None:
            self._send(output.node, output.slot, _Storage(self._ledger, output.bytes))
        del output
        self._ledger.loads()
        self._run_backward()
        return PassLoads(forward, kept, self._ledger.loads(), self._ledger.now())

    def linear(self, x: Value, into: int, out: int, name: str, *, bias: bool = True) -> Value:
        """Return the output of a linear layer, with its adapter if it has one."""
        result = self._product(x, x.elements // into * out, into * out + out * bias)
        return self._with_adapter(x, result, into, out) if self.adapted and name in self.adapted else result

    def convolution(self, x: Value, elements: int, weights: int) -> Value:
        """Return the `elements` that a convolution of `weights` parameters makes; it saves its input in any case."""
        return self._product(x, elements, weights, keeps_input=True)

    def _product(self, x: Value, elements: int, weights: int, *, keeps_input: bool = False) -> Value:
        read = self.cast(x, self.formats.computed) if self.formats.autocast else x
        saved = [read.storage] if self.trains_all or keeps_input else []
        uncast = weights * self.formats.computed if self.formats.casts_weights else 0
        if uncast:
            self._casts.append(_Storage(self._ledger, 0, uncast))
            saved += [self._casts[-1]] if x.node else []
        trained = weights if self.trains_all else 0
        width = self.formats.computed
        return self._made((read,), elements, width, saved, trained=trained, uncast=uncast if trained else 0)

    def _with_adapter(self, x: Value, result: Value, into: int, out: int) -> Value:
        """Return `result` with the output of an adapter that reads `x`.

        **Source**: peft 0.21 `tuners.lora.layer.Linear.forward`.
        """
        adapter, rank, width = self.formats.adapter, self.formats.rank, result.width
        x = self.cast(x, adapter)
        if self.formats.dropout:
            mask = _Storage(self._ledger, x.elements * _MASK)
            x = self._made((x,), x.elements, adapter, [mask] if x.node else [])
            del mask
        low = self._adapter_product(x, x.elements // into * rank, into * rank)
        up = self._adapter_product(low, result.elements, rank * out)
        return self.cast(self.add(result, self.scaled(up)), width)

    def _adapter_product(self, x: Value, elements: int, weights: int) -> Value:
        formats = self.formats
        width = formats.computed if formats.autocast else formats.adapter
        read = self.cast(x, width)
        saved = [read.storage]
        if formats.autocast and formats.adapter != width:
            self._casts.append(_Storage(self._ledger, 0, weights * width))
            saved.append(self._casts[-1])
        return self._made((read,), elements, width, saved, trained=weights)

    def norm(self, x: Value, parameters: int) -> Value:
        """Return the output of a fused norm with `parameters`, which saves its input; autocast runs it in fp32."""
        read = self.cast(x, _FP32) if self.formats.autocast else x
        trained = parameters if self.trains_all else 0
        return self._made((read,), read.elements, read.width, [read.storage], trained=trained)

    def activation(self, x: Value) -> Value:
        """Return the output of an activation function, which saves its input."""
        return self._made((x,), x.elements, x.width, [x.storage])

    def scaled(self, x: Value) -> Value:
        """Return `x` multiplied or divided by a number, which saves nothing."""
        return self._made((x,), x.elements, x.width)

    def multiply(self, x: Value, by: Value) -> Value:
        """Return the product of two tensors, each of which is saved if the other needs a gradient.

        The gradient of the smaller one, which is broadcast, is as large as the other's before it is summed.
        """
        saved = [one.storage for one, other in ((x, by), (by, x)) if other.node]
        width = max(x.width, by.width)
        summed = by.node is not None and by.elements < x.elements
        return self._made((x, by), x.elements, width, saved, scratch=x.elements * width if summed else 0)

    def add(self, x: Value, *others: Value) -> Value:
        """Return the sum of tensors, whose gradient is the same for each that is not broadcast."""
        width = max(one.width for one in (x, *others))
        return self._made((x, *others), x.elements, width, passes_from=x.elements * width)

    def copy(self, x: Value) -> Value:
        """Return a copy of `x`."""
        return self.add(x)

    def cast(self, x: Value, width: int) -> Value:
        """Return `x` in a format of `width` bytes, itself if it has that format."""
        return x if x.width == width else self._made((x,), x.elements, width)

    def resized(self, x: Value, elements: int) -> Value:
        """Return `x` with another number of elements, such as of enlarged feature maps, which saves nothing."""
        return self._made((x,), elements, x.width)

    def concatenate(self, *parts: Value) -> Value:
        """Return the concatenation of `parts`, whose gradients are views of its own."""
        elements, width = sum(one.elements for one in parts), max(one.width for one in parts)
        return self._made(parts, elements, width, passes_from=0)

    def split(self, x: Value, *elements: int) -> tuple[Value, ...]:
        """Return views of `x`, whose gradients are concatenated."""
        node = self._node((x,), outputs=len(elements)) if x.node else None
        return tuple(Value(x.storage, count, x.width, node, slot) for slot, count in enumerate(elements))

    def part(self, x: Value, elements: int) -> Value:
        """Return a view of some elements of `x`, whose gradient is that of all of `x` with zeros elsewhere."""
        return Value(x.storage, elements, x.width, self._node((x,)) if x.node else None)

    def attention(self, query: Value, key: Value, value: Value, statistics: int) -> Value:
        """Return the result of fused attention, which saves all of its tensors and `statistics` numbers in fp32."""
        width = self.formats.computed if self.formats.autocast else query.width
        reads = tuple(self.cast(one, width) for one in (query, key, value))
        sums = _Storage(self._ledger, statistics * _FP32)
        result = Value(_Storage(self._ledger, query.elements * width), query.elements, width)
        if any(one.node for one in reads):
            result.node = self._node(reads, [*(one.storage for one in reads), sums, result.storage])
        return result

    def checkpoint(self, block: Block, *inputs: Value) -> tuple[Value, ...]:
        """Return the outputs of `block`; if blocks are checkpointed, its nodes save nothing but refer to its inputs.

        **Source**: torch.utils.checkpoint without reentrance: the graph is that of the first pass, whose nodes find no
        tensors; the first that needs one has the block computed again, up to the last tensor that a node saved.
        """
        self._checkpoint = _Checkpoint(block, inputs) if self.checkpointed else None
        outputs = block(*inputs)
        self._checkpoint = None
        return outputs

    def _node(self, inputs: Sequence[Value], saved: Sequence[_Storage] = (), **sizes: int) -> _Node:
        """Return a new node of the graph; in a block that is computed again the next one there is saves `saved`."""
        if self._unsaved is not None:
            if saved:
                self._unsaved.pop(0).saved = list(saved)
                if not self._unsaved:
                    raise _Saved
            return _UNRECORDED
        node = _Node(inputs, () if self._checkpoint else saved, **sizes)
        if self._checkpoint and saved:
            node.checkpoint = self._checkpoint
            self._checkpoint.nodes.append(node)
        self._nodes.append(node)
        return node

    def _made(
        self, inputs: Sequence[Value], elements: int, width: int, saved: Sequence[_Storage] = (), **sizes: int
    ) -> Value:
        """Return a new tensor, made by a node if an input or a parameter needs a gradient."""
        storage = _Storage(self._ledger, elements * width)
        needs_gradient = sizes.get("trained") or any(one.node for one in inputs)
        return Value(storage, elements, width, self._node(inputs, saved, **sizes) if needs_gradient else None)

    def _run_backward(self) -> None:
        """Run the backward pass of all nodes, from the last to the first, and forget them."""
        while self._nodes:
            node = self._nodes.pop()
            gradients = [one for one in node.pending if one is not None]
            if gradients:
                if node.checkpoint and node.checkpoint.nodes:
                    self._compute_again(node.checkpoint)
                self._run_node(node, gradients)

    def _run_node(self, node: _Node, gradients: list[_Storage]) -> None:
        """Send the gradients of the inputs of `node`, and free what it saved."""
        for one in gradients:
            one.holders -= 1
        sent = []
        for target, slot, size in node.inputs:
            passed = gradients[0] if size >= node.passes_from else _Storage(self._ledger, size)
            sent.append((target, slot, passed))
        short = [_Storage(self._ledger, node.scratch, node.uncast)] if node.scratch or node.uncast else []
        if not node.uncast:
            self._ledger.add(0, 0, node.trained)
        node.saved, node.pending = [], []
        shared = gradients.pop() if node.passes_from < maxsize and len(sent) > 1 else None
        gradients.clear()
        if node.uncast:
            self._ledger.add(0, 0, node.trained)
        short.clear()
        # What is handed on twice is not added to in place.
        if shared is not None:
            shared.holders += 1
        while sent:
            self._send(*sent.pop(0))
        if shared is not None:
            shared.holders -= 1

    def _send(self, node: _Node, slot: int, gradient: _Storage) -> None:
        """Add `gradient` to what `node` waits for; in place where no other node waits for one of both.

        **Source**: torch/csrc/autograd/input_buffer.cpp, `accumulate`.
        """
        there = node.pending[slot]
        if there is not None and there.holders == 1:
            return
        if there is not None:
            there.holders -= 1
            if gradient.holders:
                gradient = _Storage(self._ledger, gradient.per_image)
        gradient.holders += 1
        node.pending[slot] = gradient

    def _compute_again(self, checkpoint: _Checkpoint) -> None:
        """Compute a checkpointed block again, up to the last tensor that it saves."""
        self._unsaved, checkpoint.nodes = checkpoint.nodes, []
        with suppress(_Saved):
            checkpoint.block(*checkpoint.inputs)
        self._unsaved, self._casts = None, []
