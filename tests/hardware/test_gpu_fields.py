"""Query fields of accelerators: documentation, units and values of every record."""

from planner.hardware.catalog import HardwareCatalog, load_hardware
from planner.hardware.gpu import Gpu
from planner.hardware.query import GPU_QUERY_FIELDS
from planner.hardware.query_fields import PRICE_FIELDS
from planner.hardware.query_schema import PlanOutcome, QueryContext
from planner.paths import catalog_dir

GPUS = load_hardware(catalog_dir()).gpus


def ids(found: tuple[Gpu, ...]) -> list[str]:
    return [gpu.id for gpu in found]


def test_every_field_is_documented_and_reads_every_record() -> None:
    documented = (
        "name vendor segment architecture year memory_gib bandwidth fp32 bf16_dense fp16_dense fp8_dense int8_dense"
        " power price launch_price compute_capability street used rent paid usd_per_gib usd_per_tflops"
        " bandwidth_per_usd"
        " tflops_per_watt ridge_point gib_per_watt bandwidth_per_watt nvlink mig devices laptop preliminary certainty"
        " fits hours job_cost job_cost_tokens"
    )
    assert list(GPU_QUERY_FIELDS) == documented.split()
    own = GPUS[0].evolve(purchase_price_usd=1)
    assert GPU_QUERY_FIELDS["paid"].read(own, QueryContext()) == 1
    for field in (field for name, field in GPU_QUERY_FIELDS.items() if name != "paid"):
        assert field.title
        assert field.help
        assert any(field.read(gpu, _everything_about(gpu)) is not None for gpu in GPUS)


def test_fields_are_in_their_units(hardware: HardwareCatalog) -> None:
    gpu = hardware.gpu("rtx-4090")
    read = {name: field.read(gpu, QueryContext()) for name, field in GPU_QUERY_FIELDS.items()}
    assert (read["memory_gib"], read["bandwidth"], read["bf16_dense"], read["power"]) == (24, 1008, 165.2, 450)
    assert (read["price"], read["year"], read["compute_capability"]) == (1599, 2022, (8, 9))
    assert read["launch_price"] == 1599
    known = QueryContext(prices={"rtx-4090": {"price": 2100.0}})
    assert (GPU_QUERY_FIELDS["price"].read(gpu, known), GPU_QUERY_FIELDS["launch_price"].read(gpu, known)) == (
        2100,
        1599,
    )
    assert (read["nvlink"], read["mig"], read["fits"]) == (False, False, None)
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("h100-sxm5-80gb"), QueryContext()) is True
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("gb10"), QueryContext()) is False
    assert GPU_QUERY_FIELDS["nvlink"].read(hardware.gpu("b100"), QueryContext()) is None
    assert GPU_QUERY_FIELDS["memory_gib"].read(gpu.evolve(memory_bytes=None), QueryContext()) is None
    assert GPU_QUERY_FIELDS["bandwidth"].read(hardware.gpu("rtx-5880-ada"), QueryContext()) is None


def _everything_about(gpu: Gpu) -> QueryContext:
    return QueryContext({gpu.id: PlanOutcome("fits", 1.0, 2.0, 0.5)}, {gpu.id: dict.fromkeys(PRICE_FIELDS, 1.0)})
