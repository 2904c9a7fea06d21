"""Types of the JSON that commands print: the results of the core, and the outputs that a command puts together."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, NamedTuple, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from planner.cost.carbon import RegionCarbon
from planner.cost.demand import Demand
from planner.cost.rent_or_buy.decision import Hybrid
from planner.cost.rent_or_buy.uncertainty import Simulation, Swing
from planner.cost.renting.offer import Offer
from planner.cost.renting.table import OfferRow
from planner.cost.result import CostResult
from planner.hardware.gpu import Gpu
from planner.hardware.own import OwnHardware
from planner.hardware.power import PowerFigure
from planner.hardware.system import System
from planner.launch.settings import LaunchSettings
from planner.launch.verify import PlanCheck
from planner.memory.fit import CardFit
from planner.models.architecture import Architecture
from planner.models.catalog import ModelRecord
from planner.monitor.diagnosis.verdict import VerdictKind
from planner.monitor.doctor import SetupCheck
from planner.monitor.readings.inventory import DeviceState
from planner.monitor.readings.latest import SharingKind
from planner.monitor.readings.reading import Cause
from planner.monitor.readings.sample import ProcessKind, SamplingCost
from planner.monitor.recording.records import RecordedMark
from planner.monitor.recording.summary import DiagnosedTime, Statistic
from planner.performance.result import TimeResult
from planner.plan.advice.advise import Advice
from planner.plan.comparison import PlanComparison
from planner.plan.cost import CardJob
from planner.plan.cost_alternatives import BatchedService, FasterRental
from planner.plan.evaluate import Evaluation
from planner.plan.logs.log_amounts import LogComparison
from planner.plan.plan import Plan
from planner.plan.recipes import Preset
from planner.plan.recommend.option import Recommendation
from planner.plan.serving.answer import ServingAnswer
from planner.plan.serving.measured import MeasuredComparison
from planner.plan.shared_gpus import Neighbour
from planner.plan.solve import SolveResult
from planner.plan.warnings import PlanWarning
from planner.serving.result import ServingCurve, ServingSimulation
from planner.serving_runs.record import ServingRun
from planner.trace.result import TraceResult
from planner.workload.recipes.recipe import Recipe
from planner.workload.workload import Workload


class Output(BaseModel):
    """An object that a command puts together; fields marked `OPTIONAL` are there only if an option requests them."""

    model_config = ConfigDict(extra="forbid")


class _OptionalMark(NamedTuple):
    """Mark of a field that is left out unless an option requests it."""


OPTIONAL: Final = _OptionalMark()


def _object_of(kind: type[Any], **more: Any) -> Any:  # noqa: ANN401  # types of fields
    """Return the type of the object that a named tuple is printed as, with further fields.

    Its name and module are those of the tuple, by which the descriptions of the fields are found.
    """
    fields: dict[str, Any] = {name: (annotation, ...) for name, annotation in get_type_hints(kind).items()}
    fields |= {name: (annotation, ...) for name, annotation in more.items()}
    return create_model(kind.__name__, __base__=Output, __doc__=kind.__doc__, __module__=kind.__module__, **fields)


if TYPE_CHECKING:
    # Types that are made below; a type checker only needs to know that they are objects.
    class _Evaluated(Output): ...

    class _CardFit(Output): ...

    class _CardJob(Output): ...

    class _SamplingCost(Output): ...

    class _Mark(Output): ...

    class _Statistic(Output): ...

    class _DiagnosedTime(Output): ...

    class _SetupCheck(Output): ...

else:
    _CardFit, _CardJob = _object_of(CardFit), _object_of(CardJob, usd=float | None)
    _SamplingCost, _Statistic, _Mark = _object_of(SamplingCost), _object_of(Statistic), _object_of(RecordedMark)
    _DiagnosedTime, _SetupCheck = _object_of(DiagnosedTime), _object_of(SetupCheck)
    _Evaluated = create_model(
        Evaluation.__name__,
        __base__=Output,
        __module__=Evaluation.__module__,
        **{name: (info.annotation, ...) for name, info in Evaluation.model_fields.items() if not info.exclude},
        # Printed, too, but no field: it is estimated on first use.
        time=(TimeResult | None, Field(description="duration of one step or request; null without a GPU")),
    )


class FitOutput(_Evaluated):
    """The evaluation of a plan, and what `--advise`, `--solve`, `--log`, `--preset`, `--versus` and `--beside` add."""

    advice: Annotated[tuple[Advice, ...], OPTIONAL] = ()
    """With `--advise`: changes that make the plan fit or save memory, the best first."""
    warnings: Annotated[tuple[PlanWarning, ...], OPTIONAL] = ()
    """With `--advise`: what is unusual in the plan."""
    solved: Annotated[tuple[SolveResult, ...], OPTIONAL] = ()
    """With `--solve`: the largest values that fit."""
    comparison: Annotated[LogComparison | None, OPTIONAL] = None
    """With `--log`: what was measured, beside the estimate."""
    recipe: Annotated[Recipe | None, OPTIONAL] = None
    """The keys of the training or launch file that the plan was read from."""
    preset: Annotated[Mapping[str, Any] | None, OPTIONAL] = Field(
        default=None, description="the fields of the preset that are set; see the schema of fit list-presets"
    )
    versus: Annotated[PlanComparison | None, OPTIONAL] = None
    """With `--versus`: the differences from the other plan."""
    beside: Annotated[tuple[Neighbour, ...], OPTIONAL] = ()
    """With `--beside`: what the other models take of each GPU."""


class CostAnswer(Output):
    """The cost of a plan's job, rented and owned."""

    plan: Plan
    time: TimeResult | None
    cost: CostResult
    demand: Demand
    offers: tuple[OfferRow, ...]
    hybrid: Hybrid | None
    batched_service: Annotated[BatchedService | None, OPTIONAL] = Field(default=None, description="for a service")
    faster_rental: Annotated[FasterRental | None, OPTIONAL] = Field(default=None, description="with --own")
    tornado: Annotated[tuple[Swing, ...] | None, OPTIONAL] = Field(default=None, description="with --tornado")
    simulation: Annotated[Simulation | None, OPTIONAL] = Field(default=None, description="with --tornado")
    carbon_by_region: Annotated[tuple[RegionCarbon, ...] | None, OPTIONAL] = Field(
        default=None, description="with --carbon"
    )


class CostOutput(CostAnswer):
    """The cost of a plan's job, and of the one that `--versus` compares it with."""

    other: Annotated[CostAnswer | None, OPTIONAL] = Field(default=None, description="with --versus")


class _Rent(BaseModel):
    rent_usd_per_hour: Annotated[float | None, OPTIONAL] = Field(default=None, description="where a query uses a price")
    rent_source: Annotated[str | None, OPTIONAL] = None


class GpuOutput(Gpu, _Rent):
    """A GPU of a list: its record, prices if a query uses them, and with `--fits` the plan's verdict and job."""

    street_price_usd: Annotated[float | None, OPTIONAL] = None
    street_price_source: Annotated[str | None, OPTIONAL] = None
    used_price_usd: Annotated[float | None, OPTIONAL] = None
    used_price_source: Annotated[str | None, OPTIONAL] = None
    price_usd: Annotated[float | None, OPTIONAL] = Field(default=None, description="price of one GPU, new or used")
    price_source: Annotated[str | None, OPTIONAL] = None
    fit: Annotated[_CardFit | None, OPTIONAL] = Field(default=None, description="with --fits")
    job: Annotated[_CardJob | None, OPTIONAL] = Field(default=None, description="with --fits")


class SystemOutput(System, _Rent):
    """A system of a list: its record, its rent if a query uses it, and with `--fits` the plan's verdict."""

    fit: Annotated[_CardFit | None, OPTIONAL] = Field(default=None, description="with --fits")
    fit_reason: Annotated[str | None, OPTIONAL] = Field(
        default=None, description="with --fits: why there is no verdict"
    )


class DetectedCard(Output):
    """A GPU of this machine, with the ids of the catalog's GPUs that it may be."""

    index: int
    uuid: str
    name: str
    facts: Mapping[str, float | None]
    gpus: tuple[str, ...]


class BuildOutput(Output):
    """Power and cooling of a build."""

    figures: tuple[PowerFigure, ...]
    connectors: tuple[str, ...]
    warnings: tuple[str, ...]


class Quantities(Output):
    """Readings by name, null where `missing` has the cause; `implausible` names those that are impossible."""

    metrics: Mapping[str, float | None]
    missing: Mapping[str, Cause]
    implausible: tuple[str, ...]


class HostOutput(Quantities):
    """Readings of the host; `cores` are the used fractions of each core."""

    cores: tuple[float, ...]


class ProcessOutput(Output):
    """A process on a GPU."""

    pid: int
    kind: ProcessKind
    memory_bytes: float | None
    sm_fraction: float | None
    memory_controller_fraction: float | None
    encoder_fraction: float | None
    decoder_fraction: float | None
    missing: Mapping[str, Cause]
    is_reliable: bool
    host: Mapping[str, Any] | None = Field(description="what the operating system knows of it")


class XidOutput(Output):
    """An error that the driver reported, with NVIDIA's number."""

    number: int
    at: str


class LinkOutput(Output):
    """One NVLink of a GPU; errors are counted since the driver was loaded."""

    number: int
    is_active: bool
    bytes_per_s: float | None = Field(description="speed in one direction")
    replay_errors: int | None
    recovery_errors: int | None
    crc_errors: int | None


class EvidenceOutput(Output):
    """A reading that a diagnosis rests on, and the threshold that it was compared with."""

    metric: str
    statistic: str
    seen: float
    sign: Annotated[str, OPTIONAL] = ""
    threshold: Annotated[float, OPTIONAL] = 0.0
    source: Annotated[str, OPTIONAL] = ""
    is_heuristic: Annotated[bool, OPTIONAL] = False


class OtherFindingOutput(Output):
    """Another finding on the same GPU."""

    kind: VerdictKind
    severity: str
    title: str


class DiagnosisOutput(Output):
    """The verdict on a GPU, with its evidence; times are monotonic seconds."""

    kind: VerdictKind
    severity: str
    title: str
    sentence: str
    since: float
    at: float
    is_heuristic: bool
    evidence: tuple[EvidenceOutput, ...]
    advice: tuple[str, ...]
    unreported: tuple[str, ...] = Field(description="quantities that the GPU's driver does not report")
    also: tuple[OtherFindingOutput, ...]


class DeviceOutput(Quantities):
    """A GPU or MIG instance with its readings, processes, errors and diagnosis."""

    uuid: str
    name: str
    index: int
    pci_bus_id: str | None
    mig_parent: str | None
    mig_instance: tuple[int, int] | None
    mig_profile: str | None
    driver: str | None = Field(description="kernel driver or library that reads the GPU; null for NVIDIA's")
    sharing: SharingKind | None = Field(description="how processes share the GPU, if several do")
    state: DeviceState
    facts: Mapping[str, float | None]
    facts_missing: Mapping[str, Cause]
    clock_reasons: tuple[str, ...] | None
    processes: tuple[ProcessOutput, ...]
    nvlinks: tuple[LinkOutput, ...]
    xids: tuple[XidOutput, ...]
    diagnosis: DiagnosisOutput


class FaultOutput(Output):
    """An obstacle to reading the GPUs, and what to do about it."""

    kind: str
    severity: str
    title: str
    advice: str
    detail: str
    uuid: str | None
    since: str


class StateOutput(Output):
    """The monitor's own state: time, versions, faults, and what sampling costs."""

    at: str | None
    monotonic_seconds: float | None
    machine: str | None = Field(description="name of another machine, null for this one")
    driver_version: str | None
    nvml_version: str | None
    cuda_version: str | None
    faults: tuple[FaultOutput, ...]
    sampler: _SamplingCost | None


class MonitorOutput(Output):
    """The GPUs of this machine or of a recording at one time; without `--once`, one such object a line."""

    devices: tuple[DeviceOutput, ...]
    host: HostOutput
    state: StateOutput


class WorkOutput(Output):
    """The work on a GPU of a fleet, as its exporter says; empty where it does not."""

    pod: str
    namespace: str
    container: str
    job: str


class FleetCardOutput(Output):
    """A GPU or MIG instance of a fleet; `seen` is when it was last read, times are ISO 8601 in UTC."""

    key: str
    host: str
    exporter: str
    name: str
    index: int
    mig_parent: str | None
    is_silent: bool
    seen: str
    xid: int | None
    work: tuple[WorkOutput, ...]
    readings: Mapping[str, float | None]
    facts: Mapping[str, float | None]
    diagnosis: DiagnosisOutput | None
    not_exported: str
    rent_usd_per_hour: float | None


class FleetServerOutput(Output):
    """An inference server of a fleet: what it measured over the last minutes, and what its tokens cost."""

    instance: str
    pod: str
    measured: ServingRun
    running: float | None
    waiting: float | None
    cache_usage_fraction: float | None
    output_tokens_per_s: float | None
    input_tokens_per_s: float | None
    cards: int
    usd_per_hour: float | None
    usd_per_million_tokens: float | None


class FleetCostsOutput(Output):
    """Power, energy and rent of a fleet, and what its idle GPUs cost."""

    power_watts: float
    power_cards: int
    kwh_per_day: float
    electricity_usd_per_day: float | None
    rent_usd_per_hour: float
    priced: int
    idle: int
    idle_usd_per_day: float
    price_date: str | None
    kwh_last_day: float | None
    last_day_held_fraction: float | None
    electricity_usd_last_day: float | None
    idle_usd_last_day: float | None


class FleetOutput(Output):
    """The GPUs of a fleet at one time, the worst first."""

    source: str
    at: str
    interval_seconds: float
    notes: tuple[str, ...]
    cards: tuple[FleetCardOutput, ...]
    hosts: Mapping[str, Mapping[str, float | None]]
    servers: tuple[FleetServerOutput, ...]
    costs: FleetCostsOutput


class CardSummaryOutput(Output):
    """Energy, cost, averages and peaks of a GPU."""

    uuid: str
    name: str
    index: int
    seconds: float
    energy_joules: float | None
    is_energy_estimated: bool
    usd: float | None
    metrics: Mapping[str, _Statistic]
    slowed_seconds: Mapping[str, float]


class SummaryOutput(Output):
    """The summary of a recording."""

    file: str
    seconds: float
    samples: int
    is_cut: bool
    notes: tuple[str, ...]
    marks: tuple[_Mark, ...]
    energy_joules: float | None
    is_energy_estimated: bool
    usd_per_kwh: float | None
    usd: float | None
    diagnoses: tuple[_DiagnosedTime, ...]
    devices: tuple[CardSummaryOutput, ...]


class TableExport(Output):
    """A recording that was exported as a table."""

    file: str
    rows: int


class TrackerExport(Output):
    """A recording that was exported to an experiment tracker."""

    place: str
    values: int
    view_command: str


class ImportOutput(Output):
    """A log that was converted to a recording."""

    file: str
    samples: int
    notes: tuple[str, ...]


class ReportOutput(Output):
    """A report that was written."""

    file: str
    format: Literal["html", "pdf", "md"]
    title: str


class ScriptOutput(Output):
    """A completion script."""

    shell: Literal["bash", "zsh", "fish"]
    script: str


class PageOutput(Output):
    """The manual page."""

    page: str


class Described(NamedTuple):
    """A JSON output or file: its type, and a sentence on it; of a file, fields with a default may be absent."""

    kind: Any
    about: str
    is_file: bool = False


OUTPUTS: Final[Mapping[str, Described]] = {
    "completion": Described(ScriptOutput, "a completion script"),
    "cost": Described(CostOutput, "the cost of a plan's job"),
    "fit": Described(FitOutput, "the evaluation of a plan"),
    "fit list-presets": Described(tuple[Preset, ...], "the presets, with those fields that they set", is_file=True),
    "fleet": Described(FleetOutput, "the GPUs of a fleet"),
    "gpus": Described(tuple[GpuOutput, ...], "a list of GPUs"),
    "gpus build": Described(BuildOutput, "power and cooling of a build"),
    "gpus here": Described(tuple[DetectedCard, ...], "the GPUs of this machine"),
    "gpus own": Described(OwnHardware, "your own GPUs and changes", is_file=True),
    "gpus systems": Described(tuple[SystemOutput, ...], "a list of systems"),
    "launch": Described(LaunchSettings, "launch files and their settings"),
    "man": Described(PageOutput, "the manual page"),
    "models": Described(tuple[ModelRecord, ...], "a list of models"),
    "models show": Described(ModelRecord | Architecture, "a model of the catalog, or the architecture that a file has"),
    "models supported": Described(tuple[str, ...], "the types of models that are read"),
    "monitor": Described(MonitorOutput, "the GPUs at one time; one object a line without --once"),
    "monitor doctor": Described(tuple[_SetupCheck, ...], "what can be monitored, and how to fix the rest"),
    "monitor export": Described(TableExport | TrackerExport, "an exported recording"),
    "monitor import": Described(ImportOutput, "a log that became a recording"),
    "monitor summary": Described(SummaryOutput, "the summary of a recording"),
    "plan": Described(Plan, "the file of a plan", is_file=True),
    "prices": Described(tuple[Offer, ...], "a list of rental offers, also for --add"),
    "recommend": Described(Recommendation, "recommended hardware"),
    "report": Described(ReportOutput, "a written report"),
    "serve-plan": Described(ServingAnswer, "hardware that meets the latency targets of a service"),
    "serve-plan curve": Described(ServingCurve, "given GPUs, simulated at several rates of requests"),
    "serve-plan measured": Described(
        tuple[MeasuredComparison, ...], "measured runs of servers beside their simulations"
    ),
    "serve-plan simulation": Described(ServingSimulation, "given GPUs, simulated with a service"),
    "trace": Described(TraceResult, "a traced peak"),
    "verify": Described(tuple[PlanCheck, ...], "commands that measure a plan, with what they should show"),
    "verify log": Described(LogComparison, "a log compared with the plan"),
    "workload": Described(Workload, "the file of a workload", is_file=True),
}
"""What is described, by command and the option that selects the output, and the files of plans and workloads."""
