"""What a step trains: every parameter, those that patterns name, or adapters beside linear layers."""

from collections.abc import Iterator
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Final, Literal, NamedTuple

from planner.errors import SpecError
from planner.models.architecture import Architecture, LatentAttention, Layer, LayerGroup, Mlp, Moe, Stack, Tensor
from planner.workload.choices import Method
from planner.workload.training import Lora, Training

Status = Literal["frozen", "trained", "adapted"]


class Uses(NamedTuple):
    """How many projections read one tensor, by what becomes of them."""

    trained: int = 0
    adapted: int = 0
    frozen: int = 0

    @property
    def total(self) -> int:
        """Return all of them."""
        return self.trained + self.adapted + self.frozen


class LayerTuning(NamedTuple):
    """What is trained in a layer: the status of each of its tensors, in their order.

    `reached` says whether the derivative goes on to what is before the layer, so that its first operations keep
    something even where they are frozen.

    **Source** for checkpoints: transformers `PreTrainedModel.enable_input_require_grads`.
    """

    statuses: tuple[Status, ...]
    reached: bool = True


class Sites(NamedTuple):
    """The projections of a layer by where they stand: what reads the normed stream, and what writes back to it.

    `inner` are those in between, which read what another one put out: of latents, of the indexer.
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
def sites_of(layer: Layer, hidden: int) -> Sites:
    """Return the places of `layer.tensors` at which each kind of projection stands.

    **Assumes** what readers do: the mixer's projections come before the feed-forward block's, and each block's last
    is the one that writes to the stream.
    """
    every = [i for i, tensor in enumerate(layer.tensors) if tensor.role == "linear" and len(tensor.shape) == 2]
    indexing = [i for i in every if "indexer" in layer.tensors[i].name]
    linear = [i for i in every if i not in indexing]
    block = layer.feed_forward
    gate = [i for i, tensor in enumerate(layer.tensors) if _weighs_shared_expert(tensor)]
    linear = [i for i in linear if i not in gate]
    split = len(linear) - _forward_count(block)
    mixer, forward = linear[:split], linear[split:]
    cross = mixer[-4:] if layer.cross_attention is not None else []
    mixer = mixer[: len(mixer) - len(cross)]
    latent = isinstance(layer.mixer, LatentAttention)
    inside = [i for i in mixer[:-1] if not latent or layer.tensors[i].shape[1] == hidden]
    return Sites(
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
    """Return whether `tensor` is the matrix of a linear layer inside the network, to which adapters can be added.

    Routers hold a plain parameter, but what weighs a shared expert is a linear layer with one output.

    **Source**: transformers 5.23, `TopKRouter` classes and `Qwen2MoeSparseMoeBlock.shared_expert_gate`.
    """
    return len(tensor.shape) == 2 and (tensor.role == "linear" or _weighs_shared_expert(tensor))


def _weighs_shared_expert(tensor: Tensor) -> bool:
    return len(tensor.shape) == 2 and tensor.shape[0] == 1 and tensor.role in ("linear", "router")


def _forward_count(block: Mlp | Moe | None) -> int:
    if isinstance(block, Mlp):
        return 3 if block.gated and not block.fused_gate_up else 2
    return 3 if isinstance(block, Moe) and block.shared_intermediate else 0


def uses(tuning: LayerTuning, places: tuple[int, ...]) -> Uses:
    """Return how many of the projections at `places` are trained, adapted and frozen."""
    found = [tuning.statuses[place] for place in places]
    return Uses(found.count("trained"), found.count("adapted"), found.count("frozen"))


_TOWERS: Final = ("vision", "audio")


class TunedLayers(NamedTuple):
    """`number` layers of one kind that are trained alike; those that no derivative reaches are left out."""

    stack: Stack
    layer: Layer
    tuning: LayerTuning
    number: int


class Tuning(NamedTuple):
    """What a step trains: its layers, and every trained tensor with its number.

    `adapters` are the trained tensors if they are beside the network's own. `behind` says what
    becomes of the tensors behind the layers by their names, `head` of the output head. `whole` says that every
    parameter is trained, `starts_before` that something before the layers is. `trained_parameters` have a gradient.
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
    """Return what `workload`, its defaults filled in, trains of `architecture`.

    Raises:
        SpecError: If no linear layer has one of the names, or no parameter matches one of the patterns.
    """
    return _tuning(
        architecture,
        workload.method,
        workload.lora,
        workload.trainable,
        workload.activation_checkpointing != "none",
    )


@lru_cache(maxsize=256)
def _tuning(
    architecture: Architecture, method: Method, lora: Lora | None, patterns: tuple[str, ...], checkpointed: bool = False
) -> Tuning:
    chosen = _Chosen(lora if method != "full" else None, patterns)
    layers: list[TunedLayers] = []
    trained = [item for stack in architecture.stacks for item in _outside(stack, chosen, behind=False)]
    starts_before = bool(trained)
    # Checkpoints need an input with a derivative: transformers asks for one of the embedding.
    reached = starts_before or checkpointed
    for stack in architecture.stacks:
        # A decoder has an input of its own; the encoder's derivative comes in by cross-attention.
        decodes = architecture.kind == "encoder-decoder" and stack is architecture.main
        entered = starts_before or checkpointed if decodes else reached
        tuned, reached, own = _stack(stack, chosen, entered, crossed=decodes and reached)
        if not (architecture.kind == "vision-language" and stack.name in _TOWERS):
            layers += tuned
        trained += own
        behind = _outside(stack, chosen, behind=True)
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


class _Chosen:
    """Tells what becomes of a tensor by its name, and which names and patterns were never met."""

    def __init__(self, lora: Lora | None, patterns: tuple[str, ...]) -> None:
        self.lora = lora
        self.patterns = patterns
        self._unmet = set(patterns)
        if lora is not None and not isinstance(lora.targets, str):
            self._unmet = set(lora.targets)
        self._seen: dict[str, None] = {}

    @property
    def by_place(self) -> bool:
        """Return whether equal layers may be trained differently."""
        return bool(self.patterns)

    def status(self, path: str, tensor: Tensor) -> Status:
        """Return what becomes of `tensor`, found at `path`."""
        if self.lora is not None:
            return "adapted" if self._is_adapted(path, tensor) else "frozen"
        if not self.patterns:
            return "trained"
        met = [pattern for pattern in self.patterns if matches(path, pattern)]
        self._unmet.difference_update(met)
        self._seen.setdefault(path)
        return "trained" if met else "frozen"

    def _is_adapted(self, path: str, tensor: Tensor) -> bool:
        if self.lora is None or not is_linear(tensor):
            return False
        self._seen.setdefault(path.removesuffix(".weight").rpartition(".")[2])
        if isinstance(self.lora.targets, str):
            return True
        met = [target for target in self.lora.targets if f".{path}".removesuffix(".weight").endswith(f".{target}")]
        self._unmet.difference_update(met)
        return bool(met)

    def check(self) -> None:
        """Raise an error if a name or a pattern was never met."""
        if not self._unmet:
            return
        first = sorted(self._unmet)[0]
        known = list(self._seen)
        if self.lora is not None:
            raise SpecError("lora.targets", f"no linear layer is named {first!r}", f"There are {', '.join(known)}.")
        raise SpecError("trainable", f"no parameter matches {first!r}", f"Names are such as {', '.join(known[:3])}.")


def matches(path: str, pattern: str) -> bool:
    """Return whether `pattern` describes whole parts of the dotted `path`: `layers.3`, `lm_head` or `*norm*`."""
    return fnmatchcase(f".{path}.", f"*.{pattern}.*")


def _outside(stack: Stack, chosen: _Chosen, *, behind: bool) -> list[tuple[Tensor, int]]:
    """Return what is trained of the tensors before, or behind, the layers."""
    tensors = stack.after if behind else stack.before
    return [item for tensor in tensors for item in _trained_of(tensor, chosen.status(tensor.name, tensor), chosen)]


def _stack(
    stack: Stack, chosen: _Chosen, reached: bool, *, crossed: bool
) -> tuple[list[TunedLayers], bool, list[tuple[Tensor, int]]]:
    """Return the layers that a derivative goes through, whether it goes beyond them, and what is trained of them.

    `crossed` says that one comes in by cross-attention.
    """
    runs: dict[tuple[Layer, LayerTuning], int] = {}
    trained: dict[Tensor, int] = {}
    for group, place, count in _in_order(stack, chosen.by_place or not reached):
        layer = group.layer
        statuses = tuple(chosen.status(f"layers.{place}.{tensor.name}", tensor) for tensor in layer.tensors)
        touched = any(status != "frozen" for status in statuses) or (crossed and layer.cross_attention is not None)
        if touched or reached:
            key = (layer, LayerTuning(statuses, reached))
            runs[key] = runs.get(key, 0) + count
        reached = reached or touched
        for tensor, status in zip(layer.tensors, statuses, strict=True):
            for made, copies in _trained_of(tensor, status, chosen):
                trained[made] = trained.get(made, 0) + copies * count
    tuned = [TunedLayers(stack, layer, tuning, count) for (layer, tuning), count in runs.items()]
    return tuned, reached, list(trained.items())


def _in_order(stack: Stack, one_by_one: bool) -> Iterator[tuple[LayerGroup, int, int]]:
    """Yield groups with a place and the number of layers: each layer alone where their places matter."""
    if not one_by_one:
        yield from ((group, group.places[0] if group.places else 0, group.count) for group in stack.groups)
        return
    placed = [(place, group) for group in stack.groups for place in group.places or range(group.count)]
    yield from ((group, place, 1) for place, group in sorted(placed, key=lambda item: item[0]))


def _trained_of(tensor: Tensor, status: Status, chosen: _Chosen) -> list[tuple[Tensor, int]]:
    if status == "adapted" and chosen.lora is not None:
        return [(made, tensor.copies) for made in adapter_tensors(tensor, chosen.lora)]
    return [(tensor.evolve(copies=1), tensor.copies)] if status == "trained" else []


def adapter_tensors(tensor: Tensor, lora: Lora) -> tuple[Tensor, ...]:
    """Return the adapters beside the linear layer of `tensor`.

    **Formula**: r · (in + out) parameters; DoRA adds a magnitude for each output.

    **Source**: `peft.tuners.lora.layer.LoraLayer.update_layer`.
    """
    outside, inside = tensor.shape
    down = Tensor(name=f"{tensor.name}.lora_A", shape=(lora.rank, inside), role="linear")
    up = Tensor(name=f"{tensor.name}.lora_B", shape=(outside, lora.rank), role="linear")
    magnitude = Tensor(name=f"{tensor.name}.magnitude", shape=(outside,), role="other")
    return (down, up, magnitude) if lora.dora else (down, up)
