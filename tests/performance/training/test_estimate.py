"""The answer about a training step: its parts, its interval, what bounds it, and measured speeds in its place."""

from typing import Any

import pytest
from small_models import MIXTRAL, bundled, llama, other
from timed_steps import Timed, spread

from planner.hardware.gpu import Gpu
from planner.performance.certainty import SPREADS
from planner.performance.estimate import estimate_time
from planner.performance.setting import MeasuredSpeed, TimeSetting
from planner.plan.catalog import Catalog
from planner.workload.parallel import Parallel
from planner.workload.training import Training

PLAIN = TimeSetting()


def test_the_parts_sum_to_the_whole(timed: Timed) -> None:
    found = timed(
        other("mixtral", MIXTRAL),
        ("h100-sxm5-80gb", 64),
        method="qlora",
        compute="amp-bf16",
        gradient_accumulation=8,
        activation_checkpointing="full",
        parallel=Parallel(tensor=2, pipeline=4, expert=4),
        setting=TimeSetting(input_samples_per_second=1.0),
    )
    assert found.seconds == pytest.approx(sum(term.exposed_seconds for term in found.terms), rel=1e-12)
    assert {"dequantisation", "bubble", "expert_exchange", "recomputation", "input"} <= {
        term.name for term in found.terms
    }
    for term in found.terms:
        assert 0 <= term.overlapped_seconds <= term.seconds
        assert term.formula
        assert term.source
        assert term.symbols


def test_every_figure_belongs_to_the_others(timed: Timed) -> None:
    found = timed(llama(), ("h100-sxm5-80gb", 8), micro_batch=2, gradient_accumulation=2)
    assert found.seconds is not None
    assert found.tokens_per_second is not None
    assert found.flops_per_step is not None
    assert found.tokens_per_second * found.seconds == pytest.approx(2 * 2 * 8 * 2048)
    assert found.samples_per_second == pytest.approx(found.tokens_per_second / 2048)
    assert found.mfu_fraction == pytest.approx(found.flops_per_step / found.seconds / (8 * 989.5e12))
    assert found.low_seconds is not None
    assert found.high_seconds is not None
    assert found.low_seconds < found.seconds < found.high_seconds
    assert found.low_tokens_per_second == pytest.approx(2 * 2 * 8 * 2048 / found.high_seconds)
    assert (found.task, found.kind, found.basis, found.bound) == ("training", "step", "same card", "compute")
    assert found.term("attention") is not None
    assert found.term("prefill") is None


def test_the_slowest_of_unequal_cards_decides(timed: Timed) -> None:
    mixed = timed(llama(), ("h100-sxm5-80gb", 1), ("a100-sxm4-80gb", 1))
    slow = timed(llama(), ("a100-sxm4-80gb", 2))
    assert mixed.seconds == pytest.approx(slow.seconds)
    assert mixed.notes[0] == "All GPUs wait for the slowest: the time is that of the A100 SXM4 80 GB."


def test_links_are_said_where_anything_goes_over_them(timed: Timed) -> None:
    assert any("NVLink4 within nodes of 8" in note for note in timed(llama(), ("h100-sxm5-80gb", 16)).notes)
    assert timed(llama(), ("h100-sxm5-80gb", 1)).notes == ()


def test_the_notes_compare_with_a_parameter_server(timed: Timed) -> None:
    ring = timed(llama(), ("h100-sxm5-80gb", 8))
    (told,) = [note for note in ring.notes if "parameter server" in note]
    spent = ring.term("gradient_exchange")
    assert spent is not None
    assert told.endswith(f"instead of {spent.seconds:.2g} s with collectives.")
    served = timed(llama(), ("h100-sxm5-80gb", 8), setting=TimeSetting(parameter_server=True))
    assert not any("parameter server" in note for note in served.notes)


def test_images_have_no_tokens(timed: Timed, catalog: Catalog) -> None:
    found = timed(catalog.models.model("google/vit-base-patch16-224"), ("h100-sxm5-80gb", 1), sequence_length=None)
    assert found.tokens_per_second is None
    assert found.low_tokens_per_second is None
    assert found.samples_per_second is not None


def test_what_cannot_be_estimated_says_why(timed: Timed) -> None:
    assert "no dense rate" in str(timed(llama(), ("rtx-4090-laptop-gpu", 1)).unsupported)
    assert estimate_time(llama(), Training(), ()).unsupported == "No GPU is chosen."


@pytest.mark.parametrize(
    ("unit", "value"), [("tokens/s", 10_000.0), ("samples/s", 10_000 / 2048), ("seconds/step", 8 * 2048 / 10_000)]
)
def test_a_measured_speed_takes_the_place_of_the_estimate(unit: Any, value: float, timed: Timed) -> None:
    setting = TimeSetting(measured=MeasuredSpeed(value=value, unit=unit))
    found = timed(llama(), ("h100-sxm5-80gb", 8), setting=setting)
    assert found.tokens_per_second == pytest.approx(10_000)
    assert found.seconds == pytest.approx(8 * 2048 / 10_000)
    assert found.seconds == pytest.approx(sum(term.exposed_seconds for term in found.terms))
    assert found.basis == "measured"
    assert spread(found) == pytest.approx(1.1)
    assert found.notes[0].startswith("Measured on these GPUs;")


def test_a_measured_speed_is_carried_over_by_the_ratio_of_both_estimates(timed: Timed, cards: dict[str, Gpu]) -> None:
    a100, h100 = timed(llama(), ("a100-sxm4-80gb", 4)), timed(llama(), ("h100-sxm5-80gb", 8))
    assert a100.seconds is not None
    assert h100.seconds is not None
    measured = MeasuredSpeed(value=2 * a100.seconds, unit="seconds/step", gpu="a100-sxm4-80gb", count=4)
    found = timed(
        llama(), ("h100-sxm5-80gb", 8), setting=TimeSetting(measured=measured), measured_on=cards["a100-sxm4-80gb"]
    )
    assert found.seconds == pytest.approx(2 * h100.seconds)
    assert spread(found) == pytest.approx(1.15)
    assert "scaled by the ratio" in found.notes[0]


def test_what_was_measured_on_other_cards_ran_with_the_choices_of_the_plan(timed: Timed, cards: dict[str, Gpu]) -> None:
    choices = TimeSetting(compiled=True, link="pcie")
    a100 = timed(llama(), ("a100-sxm4-80gb", 4), setting=TimeSetting(compiled=True))
    h100 = timed(llama(), ("h100-sxm5-80gb", 8), setting=choices)
    assert a100.seconds is not None
    measured = MeasuredSpeed(value=a100.seconds, unit="seconds/step", gpu="a100-sxm4-80gb", count=4)
    found = timed(
        llama(),
        ("h100-sxm5-80gb", 8),
        setting=choices.evolve(measured=measured),
        measured_on=cards["a100-sxm4-80gb"],
    )
    assert found.seconds == pytest.approx(h100.seconds)


def test_a_measured_speed_of_images_is_in_samples(timed: Timed, catalog: Catalog) -> None:
    vit = catalog.models.model("google/vit-base-patch16-224")
    setting = TimeSetting(measured=MeasuredSpeed(value=100, unit="samples/s"))
    found = timed(vit, ("h100-sxm5-80gb", 1), sequence_length=None, setting=setting)
    assert found.samples_per_second == pytest.approx(100)
    assert found.tokens_per_second is None
    unknown = timed(vit, ("h100-sxm5-80gb", 1), sequence_length=None, setting=_tokens(100))
    assert (
        unknown.unsupported == "The measured speed is in tokens/s, but this model does not read tokens: use samples/s."
    )


def _tokens(value: float) -> TimeSetting:
    return TimeSetting(measured=MeasuredSpeed(value=value, unit="tokens/s"))


def test_a_measured_speed_on_cards_that_cannot_run_it_so_is_refused(timed: Timed, cards: dict[str, Gpu]) -> None:
    setting = TimeSetting(measured=MeasuredSpeed(value=1, unit="seconds/step", count=3))
    found = timed(llama(), ("h100-sxm5-80gb", 8), setting=setting, parallel=Parallel(tensor=2))
    assert "cannot be transferred" in str(found.unsupported)
    bare = timed(
        llama(),
        ("h100-sxm5-80gb", 1),
        setting=TimeSetting(measured=MeasuredSpeed(value=1, unit="seconds/step")),
        measured_on=cards["rtx-4090-laptop-gpu"],
    )
    assert "no dense rate" in str(bare.unsupported)


def test_unmeasured_families_have_a_wider_spread(timed: Timed) -> None:
    known, alike, unknown = (
        timed(llama(), (name, 1), micro_batch=4) for name in ("rtx-4090", "rtx-4080", "radeon-rx-7900-xtx")
    )
    assert (known.basis, alike.basis, unknown.basis) == ("same card", "family", "unmeasured")
    assert spread(known) == pytest.approx(spread(alike), rel=0.2)
    assert spread(unknown) > 1.2 * spread(known)


def test_waiting_steps_and_experts_spread_more(timed: Timed) -> None:
    dense, waiting, experts = (
        spread(found)
        for found in (
            timed(llama(), ("h100-sxm5-80gb", 1), micro_batch=8),
            timed(llama(), ("rtx-4090", 8)),
            timed(other("mixtral", MIXTRAL), ("h100-sxm5-80gb", 1), micro_batch=8),
        )
    )
    assert SPREADS["training"].several <= dense < SPREADS["training"].several + 0.03
    assert dense < waiting
    assert dense < experts


def test_the_offload_term_sums_the_link_and_the_offloaded_optimizer(timed: Timed) -> None:
    found = timed(llama(), ("h100-sxm5-80gb", 8), parallel=Parallel(zero=3, offload="parameters"))
    offload = found.term("offload")
    assert found.term("optimizer") is None
    assert offload is not None
    symbols = {symbol.name: float(symbol.value) for symbol in offload.symbols}
    over_the_link, beside = symbols["C"] / symbols["P"], symbols["c"] * symbols["O"] / symbols["D"]
    assert offload.seconds == pytest.approx(over_the_link + beside)
    assert symbols["c"] == 8


@pytest.mark.parametrize(
    ("bound", "cards_", "fields"),
    [
        ("memory bandwidth", ("h100-sxm5-80gb", 1), {"attention": "eager", "sequence_length": 16_384}),
        ("communication", ("rtx-4090", 8), {"sequence_length": 128}),
        ("host", ("a100-sxm4-80gb", 1), {"sequence_length": 16, "method": "lora"}),
        ("input", ("h100-sxm5-80gb", 1), {"setting": TimeSetting(input_samples_per_second=0.1)}),
    ],
)
def test_the_resource_that_takes_most_of_the_time_is_the_bound(
    bound: str, cards_: tuple[str, int], fields: dict[str, Any], timed: Timed
) -> None:
    assert timed(llama(), cards_, **fields).bound == bound


def test_a_frozen_tower_runs_without_a_backward_pass(timed: Timed) -> None:
    model, card = bundled().models.model("Qwen/Qwen2.5-VL-7B-Instruct"), ("h100-sxm5-80gb", 1)
    asked = {"images": 2, "method": "lora", "compute": "bf16", "sequence_length": 3000}
    trained, frozen = (timed(model, card, frozen_vision=one, **asked) for one in ("none", "all"))
    terms = {term.name: term for term in frozen.terms}
    assert "images" not in {term.name for term in trained.terms}
    assert frozen.seconds == pytest.approx(sum(term.exposed_seconds for term in frozen.terms), rel=1e-12)
    # A forward pass alone takes half of what forward and backward take, whose weights have no gradients.
    whole = {term.name: term.seconds for term in trained.terms}
    less = whole["matrix_products"] + whole["attention"] - terms["matrix_products"].seconds - terms["attention"].seconds
    assert 0.25 < terms["images"].seconds / less < 0.5
