"""Sharing of a plan that leaves it open: replicas if one GPU is enough, else what its software would do."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, partial
from math import isqrt
from typing import Final, NamedTuple

from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.corrections import Correction
from planner.memory.estimate import estimate_on, fits_on
from planner.memory.fit import CardFit
from planner.memory.parallel.placing import CardGroup
from planner.models.architecture import Architecture
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.workload.defaults import resolve_parallel, with_defaults
from planner.workload.parallel import Parallel
from planner.workload.software.registry import serving_support, training_support
from planner.workload.workload import Inference, Training, Workload

_POWERS: Final = (2, 4, 8, 16, 32, 64)
_NODE: Final = 8
_PAIR: Final = 2
_ZERO: Final = "Rajbhandari et al. 2020, arXiv 1910.02054 §7: ZeRO-1 and 2 send as much as replicas, ZeRO-3 50 % more"
_TENSOR: Final = "Shoeybi et al. 2019, arXiv 1909.08053: each matrix is split, with all-reduces in every layer"
_STAGES: Final = "Narayanan et al. 2021, arXiv 2104.04473 §3.2: matrices split within a node, stages between nodes"
_LAYERS: Final = "Hugging Face Accelerate, device_map; llama.cpp --split-mode layer: GPUs work one after another"


class SharingScheme(NamedTuple):
    """A way to share the model between GPUs, such as `tensor parallelism`; `settings` are fields of `parallel`."""

    name: str
    title: str
    sentence: str
    settings: Mapping[str, object]
    costs: str
    source: str


class SharedFit(NamedTuple):
    """The memory verdict of a workload whose sharing is settled.

    `scheme` is the chosen one, None for replicas. `replicas` is the verdict if each GPU held the whole model, None if
    the workload does not leave the sharing open.
    """

    parallel: Parallel
    fit: CardFit
    scheme: SharingScheme | None = None
    replicas: CardFit | None = None


def tensor_domain(gpus: Iterable[Gpu | None], timing: TimeSetting) -> int:
    """Return the most GPUs that split matrices with each other: all that NVLink or its like connects, or a PCIe pair.

    **Source**: vLLM's guide *Parallelism and scaling* (tensor parallelism within a node, stages between nodes and
    between GPUs without NVLink); its custom_all_reduce.py supports no more than two GPUs over PCIe.
    """
    domains = [_NODE if gpu is None else _links_domain(gpu, timing) for gpu in gpus]
    return min(domains, default=_NODE)


def _links_domain(gpu: Gpu, timing: TimeSetting) -> int:
    links = links_of(gpu, timing)
    return links.cards_per_node if links.kind in ("nvlink", "xgmi") else min(links.cards_per_node, _PAIR)


def sharing_schemes(
    workload: Workload, architecture: Architecture, count: int, domain: int = _NODE
) -> tuple[SharingScheme, ...]:
    """Return the ways in which the software shares the model between `count` GPUs, the smallest groups first.

    `workload` has its defaults filled in. Groups that leave GPUs over become replicas. Programs that split matrices
    do so within `domain` GPUs, and split the layers between such groups; others share between all GPUs.
    """
    return tuple(
        scheme
        for scheme in _proposed_schemes(workload, architecture, count, domain)
        if _is_possible(workload, architecture, scheme.settings, count)
    )


def sharing_counts(workload: Workload, architecture: Architecture) -> Iterator[int]:
    """Yield the numbers of GPUs, up to 64, between which the software can share the model in one group."""
    by_layers = _default_split(workload) == "layers"
    counts = range(2, min(architecture.depth, _POWERS[-1]) + 1) if by_layers else _POWERS
    return (count for count in counts if sharing_schemes(workload, architecture, count))


def resolve_sharing(
    architecture: Architecture,
    workload: Workload,
    cards: tuple[CardGroup, ...],
    timing: TimeSetting,
    corrections: tuple[Correction, ...] = (),
) -> SharedFit:
    """Return the verdict of `workload` on `cards`, with the sharing that its software chooses if it is open.

    Raises:
        SpecError: If the workload does not allow the model or the number of GPUs.
    """
    count = sum(kind.number for kind in cards)

    def fit(parallel: Parallel) -> CardFit:
        return _fit_on(architecture, workload.evolve(parallel=parallel), cards, corrections)

    if not workload.parallel.is_open_for(count):
        return SharedFit(workload.parallel, _fit_on(architecture, workload, cards, corrections))
    domain = tensor_domain((kind.gpu for kind in cards), timing)
    as_replicas = workload.parallel.evolve(data=count)
    replicas = SharedFit(as_replicas, fit(as_replicas))
    return _choose(workload, replicas, lambda: _open_schemes(workload, architecture, count, domain), fit)


def shared_fits(
    architecture: Architecture,
    workload: Workload,
    cards: Iterable[tuple[Gpu, UsableMemory | None]],
    count: int,
    timing: TimeSetting,
    corrections: tuple[Correction, ...] = (),
) -> Iterator[SharedFit]:
    """Yield what `resolve_sharing` returns on `count` of each of `cards`: fast enough for a whole catalog."""
    if not workload.parallel.is_open_for(count):
        for own in fits_on(architecture, workload, cards, count, corrections):
            yield SharedFit(workload.parallel, own)
        return
    known = tuple(cards)
    as_replicas = workload.parallel.evolve(data=count)
    replicas = list(fits_on(architecture, workload.evolve(parallel=as_replicas), known, count, corrections))
    lacking = [card for card, own in zip(known, replicas, strict=True) if _may_be_shared(own)]

    @cache
    def fits(parallel: Parallel) -> dict[str, CardFit]:
        shared = workload.evolve(parallel=parallel)
        return {own.gpu_id: own for own in fits_on(architecture, shared, lacking, count, corrections)}

    @cache
    def schemes(domain: int) -> tuple[SharingScheme, ...]:
        return _open_schemes(workload, architecture, count, domain)

    for (gpu, _), own in zip(known, replicas, strict=True):

        def fit(parallel: Parallel, gpu_id: str = gpu.id) -> CardFit:
            return fits(parallel)[gpu_id]

        domain = tensor_domain((gpu,), timing)
        yield _choose(workload, SharedFit(as_replicas, own), partial(schemes, domain), fit)


def _may_be_shared(replicas: CardFit) -> bool:
    return replicas.verdict in ("tight", "does-not-fit")


def _open_schemes(workload: Workload, architecture: Architecture, count: int, domain: int) -> tuple[SharingScheme, ...]:
    """Return the schemes for a workload whose defaults are not filled in."""
    return sharing_schemes(with_defaults(workload, architecture, count), architecture, count, domain)


def _choose(
    workload: Workload,
    replicas: SharedFit,
    schemes: Callable[[], tuple[SharingScheme, ...]],
    fit: Callable[[Parallel], CardFit],
) -> SharedFit:
    """Return the first sharing that fits, replicas first; else the first that is tight, else that of the least need.

    Of the schemes that fit, the first whose KV cache has room for the batch takes precedence.
    """
    candidates = [replicas]
    sequences = workload.batch if isinstance(workload, Inference) else 1
    if _may_be_shared(replicas.fit):
        for scheme in schemes():
            parallel = workload.parallel.evolve(**scheme.settings)
            try:
                own = fit(parallel)
            except SpecError:
                continue  # a combination that the software allows, but whose memory cannot be estimated
            if own.verdict is not None:
                candidates.append(SharedFit(parallel, own, scheme))
            if own.verdict == "fits" and own.has_cache_for(sequences):
                break
    fitting = [shared for shared in candidates if shared.fit.verdict == "fits"]
    roomy = [shared for shared in fitting if shared.fit.has_cache_for(sequences)]
    tight = [shared for shared in candidates if shared.fit.verdict == "tight"]
    least = min(candidates, key=lambda shared: shared.fit.total_bytes)
    return (*roomy, *fitting, *tight, least)[0]._replace(replicas=replicas.fit)


def _fit_on(
    architecture: Architecture, workload: Workload, cards: tuple[CardGroup, ...], corrections: tuple[Correction, ...]
) -> CardFit:
    """Return the verdict of the full estimate on `cards`; of several kinds, on the one with the least free memory."""
    first = cards[0]
    if len(cards) == 1 and first.gpu is not None:
        card = [(first.gpu, first.usable)]
        return next(iter(fits_on(architecture, workload, card, first.number, corrections)))
    memory = estimate_on(architecture, workload, cards, corrections)
    if first.gpu is None:
        return CardFit("", None, memory.total_bytes, None, None, ())
    fullest = memory.per_gpu[memory.fullest]
    return CardFit(
        fullest.gpu or "",
        memory.verdict,
        memory.total_bytes,
        memory.capacity_bytes,
        memory.free_bytes,
        memory.unsupported,
        memory.fit_probability,
        pool_sequences=None if memory.cache_pool is None else memory.cache_pool.sequences,
    )


def _is_possible(workload: Workload, architecture: Architecture, settings: Mapping[str, object], count: int) -> bool:
    parallel = workload.parallel.evolve(**settings)
    try:
        resolve_parallel(workload.evolve(parallel=parallel), architecture, count)
    except SpecError:
        return False
    return True


def _default_split(workload: Workload) -> str:
    if isinstance(workload, Training):
        return training_support(workload.profile).default_split
    return serving_support(workload.profile).default_split


def _proposed_schemes(
    workload: Workload, architecture: Architecture, count: int, domain: int
) -> Iterator[SharingScheme]:
    """Yield the schemes of the software, some of which the model may not allow."""
    split = _default_split(workload)
    if split == "layers":
        stages = next((group for group in divisors(count, from_largest=True) if group <= architecture.depth), 1)
        if stages > 1:
            yield _layer_scheme(stages)
        return
    if isinstance(workload, Training):
        yield _state_scheme(training_support(workload.profile).zero_limit)
    if split == "matrices":
        for group in divisors(count):
            degrees = (degree for degree in divisors(group, from_largest=True) if degree <= domain)
            schemes = (_matrix_scheme(workload, degree, group // degree) for degree in degrees)
            allowed = (scheme for scheme in schemes if _is_possible(workload, architecture, scheme.settings, count))
            if group > 1 and (scheme := next(allowed, None)) is not None:
                yield scheme


def divisors(count: int, *, from_largest: bool = False) -> list[int]:
    """Return the divisors of `count`, in ascending order unless `from_largest`."""
    small = [number for number in range(1, isqrt(count) + 1) if count % number == 0]
    return sorted({*small, *(count // number for number in small)}, reverse=from_largest)


def _state_scheme(stage: int) -> SharingScheme:
    return SharingScheme(
        name=f"ZeRO-{stage}",
        title=f"with ZeRO-{stage}",
        sentence="Shard parameters, gradients and states across the GPUs and gather each layer when it runs."
        if stage == 3
        else "Shard the optimizer states across the GPUs.",
        settings={"zero": stage, "data": None},
        costs="50 % more communication" if stage == 3 else "",
        source=_ZERO,
    )


def _matrix_scheme(workload: Workload, tensor: int, stages: int) -> SharingScheme:
    """Return the scheme that splits matrices across `tensor` GPUs, and layers across `stages` such groups."""
    states: dict[str, object] = {}
    if isinstance(workload, Training):
        own = training_support(workload.profile)
        limit = min(own.zero_limit, own.zero_limit_in_pipeline) if stages > 1 else own.zero_limit
        states = {"zero": limit, "sequence": tensor > 1}
    name = " and ".join(kind for kind, size in (("tensor", tensor), ("pipeline", stages)) if size > 1)
    return SharingScheme(
        name=f"{name} parallelism",
        title=f"with {name} parallelism",
        sentence="Split every matrix across the GPUs."
        if stages == 1
        else "Split the layers across groups of GPUs, and every matrix within a group."
        if tensor > 1
        else "Split the layers across the GPUs.",
        settings={**states, "tensor": tensor, "pipeline": stages, "pipeline_layers": (), "interleave": 1, "data": None},
        costs="an all-reduce in every layer" if tensor > 1 else "GPUs work one after another",
        source=_TENSOR if stages == 1 else _STAGES,
    )


def _layer_scheme(stages: int) -> SharingScheme:
    return SharingScheme(
        name="layer split",
        title="with the layers split across them",
        sentence="Split the layers across the GPUs.",
        settings={"pipeline": stages, "pipeline_layers": (), "interleave": 1, "data": None},
        costs="GPUs work one after another",
        source=_LAYERS,
    )
