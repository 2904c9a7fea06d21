"""Content of the detail pane: a record's verdict under the plan, its figures and its notes."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from planner.errors import PlannerError
from planner.hardware.gpu import Gpu
from planner.hardware.kinds import KINDS
from planner.hardware.power import DEFAULT_CIRCUIT, Circuit
from planner.hardware.published_speeds import speeds_of
from planner.hardware.software_support import software_of
from planner.memory.result import Verdict
from planner.plan.catalog import Catalog
from planner.plan.evaluate import evaluate, fits_among, on_equal_cards
from planner.plan.plan import Plan
from planner.present import format as fmt
from planner.present.catalog.gpu_columns import GPU_COLUMNS, SEGMENT_TITLES
from planner.present.catalog.gpu_details import fact_groups, gpu_details, slice_group
from planner.present.catalog.gpu_row import GpuRow, product_kind
from planner.present.catalog.system_columns import SYSTEM_COLUMNS
from planner.present.catalog.system_details import power_group, system_details
from planner.present.catalog.system_row import SystemRow
from planner.present.columns import Column, Detail, DetailGroup, Row
from planner.present.memory.verdict import VERDICT_TITLES, detail_sentence, fewest_cards_note, verdict_phrase

_GPU_GLANCE: Final = ("buy", "rent", "memory", "bandwidth", "job_time", "job_cost", "power")
_SYSTEM_GLANCE: Final = ("price", "rent", "cards", "memory", "bandwidth", "power")
"""Keys of the columns that the details begin with."""


@dataclass(frozen=True, slots=True)
class RecordSummary:
    """Texts about a card or system; `use` labels the button that puts the record into the plan; empty hides it."""

    name: str
    kind: str
    verdict: Verdict | None
    phrase: str
    sentence: str
    use: str
    in_plan: bool
    groups: tuple[DetailGroup, ...]
    notes: tuple[str, ...]

    def as_text(self) -> str:
        """Return the whole summary as plain text, one line per figure."""
        lines = [self.name, self.kind, fmt.sentence(self.phrase), self.sentence]
        for group in self.groups:
            lines += ["", group.title, *(f"{detail.title}: {detail.text}" for detail in group.details)]
        return "\n".join((*lines, "", *self.notes)).strip() + "\n"


def describe_gpu(row: GpuRow, plan: Plan, catalog: Catalog, circuit: Circuit = DEFAULT_CIRCUIT) -> RecordSummary:
    """Describe a card, with the verdict for `plan` on this card instead of its own.

    `circuit` is the electrical circuit that would power the plan's number of these cards.
    """
    gpu = row.gpu
    verdict, phrase, sentence = _verdict_with_texts(on_equal_cards(plan, gpu.id, plan.count), gpu, catalog)
    return RecordSummary(
        name=gpu.name,
        kind=_vendor_and_class_text(gpu),
        verdict=verdict,
        phrase=phrase,
        sentence=sentence,
        use="&Use this GPU",
        in_plan=plan.gpu == gpu.id,
        groups=(
            _glance(GPU_COLUMNS, _GPU_GLANCE, row),
            *gpu_details(gpu, row.usable, row.lacks),
            *_slice_groups(gpu, plan, catalog),
            *_detail_groups(row, plan.count, catalog, circuit),
        ),
        notes=(*_gpu_note_texts(gpu), *gpu.notes),
    )


def describe_system(row: SystemRow, plan: Plan, catalog: Catalog) -> RecordSummary:
    """Describe a system, with the verdict for `plan` on the system's accelerators instead of its own cards."""
    system, gpu = row.system, row.gpu
    verdict, phrase, sentence = (
        None,
        fmt.UNKNOWN.capitalize(),
        "The catalog does not name the accelerator of this system.",
    )
    if gpu is not None:
        verdict, phrase, sentence = _verdict_with_texts(
            on_equal_cards(plan, gpu.id, system.gpu_count or 1), gpu, catalog
        )
    return RecordSummary(
        name=system.name,
        kind=" · ".join(part for part in (system.vendor, system.kind, row.accelerators, str(row.year or "")) if part),
        verdict=verdict,
        phrase=phrase,
        sentence=sentence,
        use=f"&Use {fmt.count_of(system.gpu_count or 1, gpu.name)}" if gpu else "",
        in_plan=gpu is not None and (plan.gpu, plan.count) == (gpu.id, system.gpu_count or 1),
        groups=(_glance(SYSTEM_COLUMNS, _SYSTEM_GLANCE, row), *system_details(row)),
        notes=system.notes,
    )


def _glance(columns: Iterable[Column[Row]], keys: Iterable[str], row: Row) -> DetailGroup:
    """Return what decides for or against a record: price, rent, memory, bandwidth, power, and the plan's job on it."""
    by_key = {column.key: column for column in columns}
    return DetailGroup("At a glance", tuple(_glance_detail(by_key[key], row) for key in keys))


def _glance_detail(column: Column[Row], row: Row) -> Detail:
    title = f"{column.title} per hour" if column.unit == "USD/h" else column.title
    return Detail(title, column.text_with_unit(row), basis=column.tooltip(row) if column.tooltip else "")


def _detail_groups(row: GpuRow, count: int, catalog: Catalog, circuit: Circuit) -> tuple[DetailGroup, ...]:
    """Return a card's details on prices, software, speeds and power; empty until the prices have been loaded."""
    if row.prices is None:
        return ()
    software, speeds = software_of(row.gpu, catalog.software), speeds_of(row.id, catalog.speeds)
    groups = (*fact_groups(row.gpu, row.prices, software, speeds), power_group(row.gpu, count, circuit))
    return tuple(group for group in groups if group.details)


def _slice_groups(gpu: Gpu, plan: Plan, catalog: Catalog) -> tuple[DetailGroup, ...]:
    """Return the slices (MIG) of a card with the verdict for `plan` on one of each, empty if it cannot be divided."""
    slices = catalog.hardware.slices(gpu)
    if not slices:
        return ()
    try:
        alone = on_equal_cards(plan, slices[0].id, 1)
        fits = fits_among(alone, catalog, tuple(each.id for each in slices), 1)
    except PlannerError:
        fits = {}
    verdicts = {
        each.mig_slice.profile: VERDICT_TITLES[verdict].lower()
        for each in slices
        if each.mig_slice and each.id in fits and (verdict := fits[each.id].verdict) is not None
    }
    return (slice_group(catalog.hardware.mig_table(gpu), verdicts),)


def _verdict_with_texts(plan: Plan, gpu: Gpu, catalog: Catalog) -> tuple[Verdict | None, str, str]:
    try:
        memory = evaluate(plan, catalog).memory
    except PlannerError as error:
        return None, "Unknown", error.message
    sentence = " ".join((detail_sentence(memory, gpu.name, plan.count), *fewest_cards_note(memory)))
    return memory.verdict, verdict_phrase(memory), sentence


def _gpu_note_texts(gpu: Gpu) -> Iterator[str]:
    if gpu.preliminary:
        yield "This product is announced; its figures may change."
    if gpu.segment == "tpu":
        yield KINDS["TPU"]


def _vendor_and_class_text(gpu: Gpu) -> str:
    year = () if gpu.year is None else (str(gpu.year),)
    part = () if product_kind(gpu) == "card" else (product_kind(gpu),)
    return " · ".join((gpu.vendor, SEGMENT_TITLES[gpu.segment], *part, gpu.architecture, *year))
