"""Evaluation of a plan against a catalog; the same plan and catalog always give the same evaluation."""

from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, NamedTuple

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from planner.base import Spec
from planner.errors import SpecError
from planner.hardware.gpu import Gpu
from planner.hardware.usable import UsableMemory
from planner.memory.corrections import Correction
from planner.memory.estimate import estimate_resolved, resolve_workload
from planner.memory.fit import CardFit
from planner.memory.parallel.placing import CardGroup
from planner.memory.result import MemoryResult, Verdict
from planner.models.architecture import Architecture
from planner.models.catalog import resolve_model
from planner.models.drafts import with_draft
from planner.performance.setting import TimeSetting
from planner.plan.catalog import Catalog
from planner.plan.plan import Plan
from planner.plan.sharing import SharedFit, resolve_sharing, shared_fits
from planner.workload.software.registry import DEFAULT
from planner.workload.speculation import Speculation
from planner.workload.workload import Inference, Workload

if TYPE_CHECKING:
    from planner.performance.result import TimeResult
    from planner.trace.recording import TracedFacts

_SMALLEST = 5


class ReplicaVerdict(Spec):
    """The memory verdict if each of several GPUs held the whole model."""

    verdict: Verdict | None
    total_bytes: int
    capacity_bytes: int | None
    free_bytes: int | None
    fit_probability: float | None


class ChosenSharing(Spec):
    """The sharing between several GPUs that was chosen for a plan that leaves it open.

    `scheme` names it, such as `tensor parallelism`; empty for replicas. The degrees are in the evaluation's workload.
    """

    scheme: str
    as_replicas: ReplicaVerdict


class Evaluation(Spec):
    """Estimated memory and time of a plan, and its `workload` with all defaults filled in.

    A traced module runs as traced, so only the memory used by other programs counts of its workload.
    """

    plan: Plan
    """The plan as given."""
    workload: Workload
    """The plan's workload with all defaults filled in."""
    parameters: int
    """Parameters of the model."""
    active_parameters: int
    """Parameters that one token passes through; fewer only in mixtures of experts."""
    memory: MemoryResult
    """Peak memory with its terms, and the verdict."""
    sharing: ChosenSharing | None = None
    """How several GPUs share a plan that leaves this open; None for other plans, and without a GPU."""
    smallest_fits: tuple[str, ...] = ()
    """Catalog ids of the smallest GPUs on which a plan without a GPU fits."""
    architecture: Architecture | None = Field(default=None, exclude=True, repr=False)
    """Structure of the model; None for a traced module."""
    gpu: Gpu | None = Field(default=None, exclude=True, repr=False)
    """GPU that the memory result is for; of several kinds, that with the least free memory."""
    cards: tuple[tuple[Gpu, int], ...] = Field(default=(), exclude=True, repr=False)
    """All kinds of GPUs with their numbers."""
    measured_on: Gpu | None = Field(default=None, exclude=True, repr=False)
    """GPU of the plan's measured speed."""

    @cached_property
    def time(self) -> "TimeResult | None":
        """Return the duration of one step or request, estimated on first use; None without a GPU."""
        if not self.cards:
            return None
        from planner.plan.timing import estimate_plan_time  # takes a while to load, and memory alone does not need it

        return estimate_plan_time(self.plan, self.workload, self.architecture, self.cards, self.measured_on)

    @model_serializer(mode="wrap")
    def _with_time(self, write: SerializerFunctionWrapHandler) -> dict[str, object]:
        return {**write(self), "time": self.time}

    @property
    def traced(self) -> "TracedFacts | None":
        """Return the facts from the trace if the plan is for a traced module, else None."""
        return self.plan.model.trace

    @property
    def correction_key(self) -> tuple[str, str, str, str] | None:
        """Return the kind of run that corrections apply to, as `Correction.key`; None without a GPU."""
        if self.plan.gpu is None or self.architecture is None:
            return None
        return self.workload.profile or DEFAULT, self.workload.task, self.plan.gpu, self.architecture.model_type

    @property
    def applied_corrections(self) -> tuple[Correction, ...]:
        """Return the plan's corrections that apply to its kind of run, and that its memory estimate includes."""
        return tuple(correction for correction in self.plan.corrections if correction.key == self.correction_key)

    @property
    def resolved_workload(self) -> Workload:
        """Return the plan's workload, unset fields left unset, with the sharing that was chosen."""
        plan = self.plan
        return plan.workload if self.sharing is None else plan.workload.evolve(parallel=self.workload.parallel)

    @property
    def max_context(self) -> int | None:
        """Return the maximum context length of the model in tokens, if it has one."""
        return None if self.architecture is None else self.architecture.max_context


def evaluate(plan: Plan, catalog: Catalog) -> Evaluation:
    """Return the memory and time that `plan` needs and, if it names a GPU, whether it fits.

    Raises:
        SpecError: If the plan names a model or a GPU that the catalog does not have.
    """
    if plan.model.trace is None:
        return _evaluate_estimated(plan, catalog)
    gpu = catalog.hardware.gpu(plan.gpu) if plan.gpu else None
    return _evaluate_traced(plan, plan.model.trace, catalog, gpu)


def _evaluate_estimated(plan: Plan, catalog: Catalog) -> Evaluation:
    architecture, cards = architecture_of(plan, catalog), cards_of(plan, catalog)
    shared = _shared_fit(plan, architecture, cards) if _is_open(plan, cards) else None
    workload = plan.workload if shared is None else plan.workload.evolve(parallel=shared.parallel)
    settled = resolve_workload(architecture, workload, plan.count)
    memory, fullest = _estimate(settled, cards, plan.corrections)
    return Evaluation.model_construct(
        plan=plan,
        workload=settled.workload,
        parameters=architecture.parameters,
        active_parameters=architecture.active_parameters,
        memory=memory,
        sharing=None if shared is None else _chosen_sharing(shared),
        smallest_fits=_smallest_fits(plan, catalog),
        architecture=architecture,
        gpu=next((kind.gpu for kind in cards if kind.gpu == fullest), None),
        cards=tuple((kind.gpu, kind.number) for kind in cards if kind.gpu is not None),
        measured_on=_measured_gpu(plan, catalog),
    )


def resolved_fit(plan: Plan, catalog: Catalog, architecture: Architecture) -> SharedFit:
    """Return the memory verdict of `plan`, whose model is `architecture`, with its sharing settled.

    Raises:
        SpecError: If the workload does not allow the model or the number of GPUs.
    """
    return _shared_fit(plan, architecture, cards_of(plan, catalog))


def with_resolved_sharing(plan: Plan, catalog: Catalog) -> Plan:
    """Return `plan` with the degrees of parallelism that were chosen, or unchanged if it does not leave them open.

    Raises:
        SpecError: If the workload does not allow the model or the number of GPUs.
    """
    cards = cards_of(plan, catalog)
    if plan.model.trace is not None or not _is_open(plan, cards):
        return plan
    shared = _shared_fit(plan, architecture_of(plan, catalog), cards)
    return plan.evolve(workload=plan.workload.evolve(parallel=shared.parallel))


def _is_open(plan: Plan, cards: tuple[CardGroup, ...]) -> bool:
    """Return whether the sharing is to be chosen; without a GPU there is no verdict to choose by."""
    return plan.workload.parallel.is_open_for(plan.count) and cards[0].gpu is not None


def _shared_fit(plan: Plan, architecture: Architecture, cards: tuple[CardGroup, ...]) -> SharedFit:
    return _settle(architecture, plan.workload, cards, _links_setting(plan), plan.corrections)


def _links_setting(plan: Plan) -> TimeSetting:
    """Return the settings of time that decide how GPUs share a plan; the others change without a new estimate."""
    return TimeSetting(link=plan.timing.link, cards_per_node=plan.timing.cards_per_node)


def _chosen_sharing(shared: SharedFit) -> ChosenSharing:
    replicas = shared.replicas
    assert replicas is not None  # a choice is between replicas and other ways
    return ChosenSharing(
        scheme="" if shared.scheme is None else shared.scheme.name,
        as_replicas=ReplicaVerdict(
            verdict=replicas.verdict,
            total_bytes=replicas.total_bytes,
            capacity_bytes=replicas.capacity_bytes,
            free_bytes=replicas.free_bytes,
            fit_probability=replicas.fit_probability,
        ),
    )


def _evaluate_traced(plan: Plan, facts: "TracedFacts", catalog: Catalog, gpu: Gpu | None) -> Evaluation:
    """Return the evaluation of a plan for a traced module, from the facts of its trace."""
    from planner.trace.analysis.memory import traced_memory  # few plans are of a trace

    usable = catalog.hardware.usable_memory(gpu) if gpu else None
    return Evaluation.model_construct(
        plan=plan,
        workload=plan.workload,
        parameters=facts.parameters,
        active_parameters=facts.parameters,
        memory=traced_memory(facts, gpu, usable, plan.count, plan.workload.other_processes_bytes),
        smallest_fits=_smallest_fits(plan, catalog),
        gpu=gpu,
        cards=() if gpu is None else ((gpu, plan.count),),
        measured_on=_measured_gpu(plan, catalog),
    )


def architecture_of(plan: Plan, catalog: Catalog) -> Architecture:
    """Return the model architecture in the plan, or else in the catalog, with the network that drafts for it.

    Raises:
        SpecError: If the catalog has no such model, the model was traced, or cannot be drafted for as the plan says.
    """
    if plan.model.trace is not None:
        reason = "a traced module has no memory formula in which settings could be varied"
        raise SpecError("model", reason, hint="Trace it again with other settings.")
    found = plan.model.architecture or catalog.models.model(plan.model.id)
    if not isinstance(plan.workload, Inference) or plan.workload.speculation.method is None:
        return found
    return _drafted(found, plan.workload.speculation, catalog)


@lru_cache(maxsize=64)
def _drafted(architecture: Architecture, speculation: Speculation, catalog: Catalog) -> Architecture:
    draft = None
    if speculation.method == "model" and speculation.model is not None:
        try:
            draft = catalog.models.model(resolve_model(catalog.models, speculation.model))
        except SpecError as error:
            raise SpecError("speculation.model", error.reason, "`gpu-planner models` lists all.") from error
    return with_draft(architecture, speculation.method, draft)


def cards_of(plan: Plan, catalog: Catalog) -> tuple[CardGroup, ...]:
    """Return the GPU groups of `plan`: its GPUs of several kinds in order, else one group of equal GPUs.

    Raises:
        SpecError: If the catalog does not have one of the GPUs.
    """
    if plan.workload.gpus:
        return tuple(_card_group(kind.id, kind.count, catalog) for kind in plan.workload.gpus)
    return (_card_group(plan.gpu, plan.count, catalog) if plan.gpu else CardGroup(None, None, plan.count),)


def _card_group(gpu_id: str, number: int, catalog: Catalog) -> CardGroup:
    gpu = catalog.hardware.gpu(gpu_id)
    return CardGroup(gpu, catalog.hardware.usable_memory(gpu), number)


def on_equal_cards(plan: Plan, gpu_id: str, count: int) -> Plan:
    """Return `plan` on `count` GPUs of the kind `gpu_id`, with its parallelism unchanged.

    Raises:
        SpecError: If `count` is not a valid number of GPUs.
    """
    return plan.evolve(gpu=gpu_id, count=count, workload=_without_unequal_gpus(plan.workload))


def fits_by_gpu(plan: Plan, catalog: Catalog) -> Mapping[str, CardFit]:
    """Return the memory verdict of `plan` on every GPU in `catalog`, with the plan's number of GPUs, by GPU id."""
    return fits_among(plan, catalog, None, plan.count)


def fits_among(plan: Plan, catalog: Catalog, ids: tuple[str, ...] | None, count: int) -> Mapping[str, CardFit]:
    """Return the memory verdict of `plan` on `count` GPUs of each kind in `ids`, by default all kinds, by GPU id.

    Raises:
        SpecError: If the catalog has no such GPU or model, or the plan cannot be split across so many GPUs.
    """
    if plan.model.trace is not None:
        return _traced_fits(plan.model.trace, plan.workload.other_processes_bytes, catalog, ids)
    shared = _shared_fits(_fit_inputs(plan, catalog, ids, count))
    return {gpu_id: each.fit for gpu_id, each in shared.items()}


def shared_fits_among(plan: Plan, catalog: Catalog, ids: tuple[str, ...] | None, count: int) -> Mapping[str, SharedFit]:
    """Return the verdicts of `fits_among`, with the sharing that was chosen for each kind of GPU.

    Raises:
        SpecError: If the catalog has no such GPU or model, or the plan cannot be split across so many GPUs.
    """
    if plan.model.trace is not None:
        fits = fits_among(plan, catalog, ids, count)
        return {gpu_id: SharedFit(plan.workload.parallel, fit) for gpu_id, fit in fits.items()}
    return _shared_fits(_fit_inputs(plan, catalog, ids, count))


class _FitInputs(NamedTuple):
    """The inputs on which the verdicts on GPUs of several kinds depend."""

    architecture: Architecture
    workload: Workload
    catalog: Catalog
    ids: tuple[str, ...] | None
    cards: int
    links: TimeSetting
    corrections: tuple[Correction, ...]


def _fit_inputs(plan: Plan, catalog: Catalog, ids: tuple[str, ...] | None, count: int) -> _FitInputs:
    workload = _without_unequal_gpus(plan.workload)
    return _FitInputs(
        architecture_of(plan, catalog), workload, catalog, ids, count, _links_setting(plan), plan.corrections
    )


def find_fits(plan: Plan, catalog: Catalog) -> tuple[CardFit, ...]:
    """Return the verdicts for the GPUs on which `plan` likely fits, the smallest first."""
    return smallest_first(fits_by_gpu(plan, catalog).values(), catalog)


def smallest_first(fits: Iterable[CardFit], catalog: Catalog) -> tuple[CardFit, ...]:
    """Return those of `fits` that are likely, by their memory: first where it surely fits, GPUs, and what is sold."""

    def place(fit: CardFit) -> tuple[bool, bool, bool, int, str]:
        gpu = catalog.hardware.gpu(fit.gpu_id)
        return fit.verdict != "fits", gpu.is_whole_computer, gpu.preliminary, fit.capacity_bytes or 0, fit.gpu_id

    return tuple(sorted((fit for fit in fits if fit.likely), key=place))


# Prices, time settings and names change without changing the memory estimate.
_estimate = lru_cache(maxsize=256)(estimate_resolved)
_settle = lru_cache(maxsize=256)(resolve_sharing)


def _without_unequal_gpus(workload: Workload) -> Workload:
    """Return the workload without its list of GPUs of several kinds."""
    return workload.evolve(gpus=()) if workload.gpus else workload


def _measured_gpu(plan: Plan, catalog: Catalog) -> Gpu | None:
    measured = plan.timing.measured
    return catalog.hardware.gpu(measured.gpu) if measured and measured.gpu else None


@lru_cache(maxsize=128)
def _shared_fits(inputs: _FitInputs) -> Mapping[str, SharedFit]:
    architecture, workload, catalog, ids, count, links, corrections = inputs
    found = shared_fits(architecture, workload, _cards_with_memory(catalog, ids), count, links, corrections)
    return {shared.fit.gpu_id: shared for shared in found}


@lru_cache(maxsize=128)
def _traced_fits(
    facts: "TracedFacts", other_processes_bytes: int, catalog: Catalog, ids: tuple[str, ...] | None
) -> Mapping[str, CardFit]:
    """Return the memory verdict for a traced module on each GPU in `ids`, by default all GPUs, by GPU id."""
    from planner.trace.analysis.memory import traced_fits_on  # few plans are of a trace

    return {fit.gpu_id: fit for fit in traced_fits_on(facts, _cards_with_memory(catalog, ids), other_processes_bytes)}


def _cards_with_memory(catalog: Catalog, ids: tuple[str, ...] | None) -> Iterator[tuple[Gpu, UsableMemory | None]]:
    """Yield the GPUs in `ids`, by default all GPUs of the catalog, with their usable memory if known."""
    hardware = catalog.hardware
    gpus = hardware.gpus if ids is None else map(hardware.gpu, ids)
    return ((gpu, hardware.usable_memory(gpu)) for gpu in gpus)


def _smallest_fits(plan: Plan, catalog: Catalog) -> tuple[str, ...]:
    """Return the ids of the smallest GPUs that a plan without a GPU surely fits on."""
    if plan.gpu or plan.workload.gpus:
        return ()
    return tuple(fit.gpu_id for fit in find_fits(plan, catalog)[:_SMALLEST] if fit.verdict == "fits")
