"""The trained tensors of a step: all parameters, parameters that match patterns, or adapters of linear layers."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal, NamedTuple

from planner.errors import SpecError
from planner.memory.training.autograd.network import is_run
from planner.memory.training.optimizer_states import Trained
from planner.models.architecture import Architecture, LatentAttention, Layer, LayerGroup, Mlp, Moe, Stack, Tensor
from planner.workload.choices import Method
from planner.workload.training import Lora, Training

Status = Literal["frozen", "trained", "adapted"]


class ReaderCounts(NamedTuple):
    """Number of projections that read one tensor, by status: trained, adapted or frozen."""

    trained: int = 0
    adapted: int = 0
    frozen: int = 0

    @property
    def total(self) -> int:
        """Return the number of projections that read the tensor, of any status."""
        return self.trained + self.adapted + self.frozen


class LayerTuning(NamedTuple):
    """Status of each tensor of a layer (frozen, trained or adapted), in the order of `Layer.tensors`.

    `reached` means that the gradient continues to what is before the layer, so that its first operations save
    activations even if they are frozen.

    **Source** for checkpoints: transformers `PreTrainedModel.enable_input_require_grads`, which
    `gradient_checkpointing_enable` calls where the main input are tokens.
    """

    statuses: tuple[Status, ...]
    reached: bool = True


class ProjectionIndices(NamedTuple):
    """Indices of a layer's projections by role: reading the normed stream, writing to the stream, in between.

    `inner` are those in between, which read another projection's output: of latents, of the indexer.
    """

    mixer_in: tuple[int, ...]
    mixer_out: tuple[int, ...]
    inner: tuple[int, ...]
    cross: tuple[int, ...]
    forward_in: tuple[int, ...]
    forward_out: tuple[int, ...]
    shared_gate: tuple[int, ...]
    router: tuple[int, ...]
    experts: tuple[int, ...]


@lru_cache(maxsize=1024)
def projection_indices(layer: Layer, hidden: int) -> ProjectionIndices:
    """Return the indices in `layer.tensors` of the projections of each role.

    **Assumes** the order that model readers produce: the mixer's projections come before the feed-forward block's, and
    each block's last is the one that writes to the stream.
    """
    every = [i for i, tensor in enumerate(layer.tensors) if tensor.role == "linear" and len(tensor.shape) == 2]
    indexing = [i for i in every if "indexer" in layer.tensors[i].name]
    linear = [i for i in every if i not in indexing]
    block = layer.feed_forward
    gate = [i for i, tensor in enumerate(layer.tensors) if _weighs_shared_expert(tensor)]
    linear = [i for i in linear if i not in gate]
    split = len(linear) - _feed_forward_projection_count(block)
    mixer, forward = linear[:split], linear[split:]
    cross = mixer[-4:] if layer.cross_attention is not None else []
    mixer = mixer[: len(mixer) - len(cross)]
    latent = isinstance(layer.mixer, LatentAttention)
    inside = [i for i in mixer[:-1] if not latent or layer.tensors[i].shape[1] == hidden]
    return ProjectionIndices(
        mixer_in=tuple(inside),
        mixer_out=tuple(mixer[-1:]),
        inner=(*(i for i in mixer[:-1] if i not in inside), *indexing),
        cross=tuple(cross),
        forward_in=tuple(forward[:-1]),
        forward_out=tuple(forward[-1:]),
        shared_gate=tuple(gate),
        router=tuple(i for i, tensor in enumerate(layer.tensors) if tensor.role == "router" and i not in gate),
        experts=tuple(i for i, tensor in enumerate(layer.tensors) if tensor.role == "expert"),
    )


def is_linear(tensor: Tensor) -> bool:
    """Return whether `tensor` is a matrix of a linear layer, to which an adapter can be added.

    Routers hold a plain parameter, but the gate of a shared expert is a linear layer with one output.

    **Source**: transformers 5.23, `TopKRouter` classes and `Qwen2MoeSparseMoeBlock.shared_expert_gate`.
    """
    return len(tensor.shape) == 2 and (tensor.role == "linear" or _weighs_shared_expert(tensor))


def layer_name(path: str) -> str:
    """Return the last part of a layer's name by the name of its weights: `to_q`, or `to_out.0` before a number."""
    parts = path.removesuffix(".weight").split(".")
    return ".".join(parts[-2:] if parts[-1].isdigit() else parts[-1:])


def _weighs_shared_expert(tensor: Tensor) -> bool:
    """Return whether `tensor` is the gate that weights a shared expert."""
    return len(tensor.shape) == 2 and tensor.shape[0] == 1 and tensor.role in ("linear", "router")


def _feed_forward_projection_count(block: Mlp | Moe | None) -> int:
    """Return the number of linear layers in a feed-forward block, without routed experts."""
    if isinstance(block, Mlp):
        return 3 if block.gated and not block.fused_gate_up else 2
    return 3 if isinstance(block, Moe) and block.shared_intermediate else 0


def count_readers(tuning: LayerTuning, places: tuple[int, ...]) -> ReaderCounts:
    """Return how many of the projections at the indices `places` are trained, adapted and frozen."""
    found = [tuning.statuses[place] for place in places]
    return ReaderCounts(found.count("trained"), found.count("adapted"), found.count("frozen"))


class TunedLayers(NamedTuple):
    """A number of equal layers with the same trained tensors, which a gradient reaches."""

    stack: Stack
    layer: Layer
    tuning: LayerTuning
    number: int


class Tuning(NamedTuple):
    """The trained part of a network: its layers, and every trained tensor with its count.

    `adapters` are the trained tensors if they are adapters. `behind` is the status of the
    tensors after the layers by name, `head` that of the output head. `whole` means that every
    parameter is trained, `starts_before` that a tensor before the layers is. `trained_parameters` is their number.
    """

    layers: tuple[TunedLayers, ...]
    trained: tuple[tuple[Tensor, int], ...]
    adapters: tuple[tuple[Tensor, int], ...]
    behind: tuple[tuple[str, Status], ...]
    head: Status
    whole: bool
    starts_before: bool
    trained_parameters: int


def tuning_of(architecture: Architecture, workload: Training) -> Tuning:
    """Return the part of the network that `workload` (defaults filled in) trains.

    Raises:
        SpecError: If no linear layer has one of the names, or no parameter matches one of the patterns.
    """
    return _tuning_with_options(
        architecture,
        workload.method,
        workload.lora,
        workload.trainable,
        workload.activation_checkpointing != "none",
    )


def full_tuning(architecture: Architecture) -> Tuning:
    """Return the tuning that trains every parameter of the network."""
    return _tuning_with_options(architecture, "full", None, ())


@lru_cache(maxsize=256)
def _tuning_with_options(
    architecture: Architecture, method: Method, lora: Lora | None, patterns: tuple[str, ...], checkpointed: bool = False
) -> Tuning:
    """Return the trained part of a network, cached by the workload fields that determine it."""
    chosen = _TensorSelector(lora if method != "full" else None, patterns)
    layers: list[TunedLayers] = []
    trained = [item for stack in architecture.stacks for item in _trained_outside_layers(stack, chosen, behind=False)]
    starts_before = bool(trained)
    # Checkpoints need an input that requires a gradient: transformers sets that on the embedding, unless of images.
    checkpointed = checkpointed and architecture.kind != "vision-encoder"
    reached = starts_before or checkpointed
    for stack in architecture.stacks:
        # A decoder has an input of its own; the encoder's gradient arrives through cross-attention.
        decodes = architecture.kind == "encoder-decoder" and stack is architecture.main
        entered = starts_before or checkpointed if decodes else reached
        tuned, reached, own = _tune_stack(stack, chosen, entered, gradient_from_decoder=decodes and reached)
        if architecture.kind != "vision-language" or is_run(stack):
            layers += tuned
        trained += own
        behind = _trained_outside_layers(stack, chosen, behind=True)
        trained += behind
        reached = reached or bool(behind)
    head = [(tensor, tensor.copies, chosen.status(tensor.name, tensor)) for tensor in architecture.head]
    trained += [(tensor, count) for tensor, count, status in head if status == "trained"]
    chosen.check()
    is_trained = chosen.lora is None and (not patterns or any(status == "trained" for *_, status in head))
    if architecture.tied_head and patterns:
        is_trained = any(tensor.role == "embedding" for tensor, _ in trained)
    return Tuning(
        layers=tuple(layers),
        trained=tuple(trained),
        adapters=tuple(trained) if chosen.lora else (),
        behind=tuple(
            (tensor.name, chosen.status(tensor.name, tensor)) for stack in architecture.stacks for tensor in stack.after
        ),
        head="trained" if is_trained else "frozen",
        whole=chosen.lora is None and not patterns,
        starts_before=starts_before,
        trained_parameters=sum(tensor.size * count for tensor, count in trained),
    )


class _TensorSelector:
    """Chooses the trained tensors by name, and records targets and patterns that matched no tensor."""

    def __init__(self, lora: Lora | None, patterns: tuple[str, ...]) -> None:
        self.lora = lora
        self.patterns = patterns
        self._unmatched = set(patterns)
        if lora is not None and not isinstance(lora.targets, str):
            self._unmatched = set(lora.targets)
        self._seen: dict[str, None] = {}

    @property
    def by_place(self) -> bool:
        """Return whether equal layers may be trained differently, because patterns name single layers."""
        return bool(self.patterns)

    def status(self, path: str, tensor: Tensor) -> Status:
        """Return the status (frozen, trained or adapted) of `tensor`, whose dotted name is `path`."""
        if self.lora is not None:
            return "adapted" if self._is_adapted(path, tensor) else "frozen"
        if not self.patterns:
            return "frozen" if tensor.frozen else "trained"
        met = [pattern for pattern in self.patterns if matches_pattern(path, pattern)]
        self._unmatched.difference_update(met)
        self._seen.setdefault(path)
        return "trained" if met and not tensor.frozen else "frozen"

    def _is_adapted(self, path: str, tensor: Tensor) -> bool:
        """Return whether a LoRA target names the linear layer at `path`."""
        if self.lora is None or tensor.frozen or not is_linear(tensor):
            return False
        self._seen.setdefault(layer_name(path))
        if isinstance(self.lora.targets, str):
            return True
        met = [target for target in self.lora.targets if f".{path}".removesuffix(".weight").endswith(f".{target}")]
        self._unmatched.difference_update(met)
        return bool(met)

    def check(self) -> None:
        """Raise an error if a LoRA target or a parameter pattern matched no tensor."""
        if not self._unmatched:
            return
        first = sorted(self._unmatched)[0]
        known = list(self._seen)
        if self.lora is not None:
            raise SpecError(
                "lora.targets",
                f"no linear layer of the model is named {first!r}",
                f"Available names: {', '.join(known)}.",
            )
        raise SpecError(
            "trainable",
            f"no parameter of the model matches {first!r}",
            f"Examples of parameter names: {', '.join(known[:3])}.",
        )


def tune_tensors(tensors: tuple[Tensor, ...], lora: Lora | None) -> tuple[Trained, tuple[str, ...]]:
    """Return the trained tensors among `tensors`, or the adapters of those that `lora` names, and the latter's names.

    Raises:
        SpecError: If no linear layer has one of the names.
    """
    selector = _TensorSelector(lora, ())
    statuses = [(tensor, selector.status(tensor.name, tensor)) for tensor in tensors]
    selector.check()
    trained = tuple(made for tensor, status in statuses for made in _trained_tensors(tensor, status, selector))
    return trained, tuple(tensor.name for tensor, status in statuses if status == "adapted")


def matches_pattern(path: str, pattern: str) -> bool:
    """Return whether `pattern`, such as `layers.3` or `*norm*`, matches whole parts of the dotted name `path`."""
    return fnmatchcase(f".{path}.", f"*.{pattern}.*")


def _trained_outside_layers(stack: Stack, chosen: _TensorSelector, *, behind: bool) -> list[tuple[Tensor, int]]:
    """Return the trained tensors before (or, if `behind`, after) a stack's layers, each with its count."""
    tensors = stack.after if behind else stack.before
    return [item for tensor in tensors for item in _trained_tensors(tensor, chosen.status(tensor.name, tensor), chosen)]


def _tune_stack(
    stack: Stack, selector: _TensorSelector, reached: bool, *, gradient_from_decoder: bool
) -> tuple[list[TunedLayers], bool, list[tuple[Tensor, int]]]:
    """Return a stack's tuned layers, whether a gradient continues after the stack, and the trained tensors.

    `gradient_from_decoder` means that a gradient enters through cross-attention.
    """
    runs: dict[tuple[Layer, LayerTuning], int] = {}
    trained: dict[Tensor, int] = {}
    for group, place, count in _groups_in_order(stack, selector.by_place or not reached):
        layer = group.layer
        statuses = tuple(selector.status(f"layers.{place}.{tensor.name}", tensor) for tensor in layer.tensors)
        touched = any(status != "frozen" for status in statuses) or (
            gradient_from_decoder and layer.cross_attention is not None
        )
        if touched or reached:
            key = (layer, LayerTuning(statuses, reached))
            runs[key] = runs.get(key, 0) + count
        reached = reached or touched
        for tensor, status in zip(layer.tensors, statuses, strict=True):
            for made, copies in _trained_tensors(tensor, status, selector):
                trained[made] = trained.get(made, 0) + copies * count
    tuned = [TunedLayers(stack, layer, tuning, count) for (layer, tuning), count in runs.items()]
    return tuned, reached, list(trained.items())


def _groups_in_order(stack: Stack, one_by_one: bool) -> Iterator[tuple[LayerGroup, int, int]]:
    """Yield layer groups with index and count; a layer alone where patterns name single layers."""
    if not one_by_one:
        yield from ((group, group.places[0] if group.places else 0, group.count) for group in stack.groups)
        return
    placed = [(place, group) for group in stack.groups for place in group.places or range(group.count)]
    yield from ((group, place, 1) for place, group in sorted(placed, key=lambda item: item[0]))


def _trained_tensors(tensor: Tensor, status: Status, chosen: _TensorSelector) -> list[tuple[Tensor, int]]:
    """Return the trained tensors for `tensor`, with counts: itself, its adapters, or none."""
    if status == "adapted" and chosen.lora is not None:
        return [(made, tensor.copies) for made in adapter_tensors(tensor, chosen.lora)]
    return [(tensor.evolve(copies=1), tensor.copies)] if status == "trained" else []


def adapter_tensors(tensor: Tensor, lora: Lora) -> tuple[Tensor, ...]:
    """Return the LoRA tensors A and B (with DoRA also the magnitude) of the linear layer `tensor`.

    **Formula**: r · (in + out) parameters; DoRA adds a magnitude for each output.

    **Source**: `peft.tuners.lora.layer.LoraLayer.update_layer`.
    """
    outside, inside = tensor.shape
    down = Tensor(name=f"{tensor.name}.lora_A", shape=(lora.rank, inside), role="linear")
    up = Tensor(name=f"{tensor.name}.lora_B", shape=(outside, lora.rank), role="linear")
    magnitude = Tensor(name=f"{tensor.name}.magnitude", shape=(outside,), role="other")
    return (down, up, magnitude) if lora.dora else (down, up)
