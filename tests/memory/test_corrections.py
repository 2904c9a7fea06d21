"""Corrections by logs: visible, exact to the byte, and only for the run that they were measured on."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.memory.corrections import (
    Correction,
    TermCorrection,
    applied_correction_note,
    correction_sources_text,
)
from planner.memory.estimate import estimate_memory, fits_on
from planner.plan.catalog import load_catalog
from planner.units import GIB, MIB
from planner.workload.workload import Inference, Training

KNOWN = load_catalog()
TERMS = ("weights", "activations", "logits", "kv_cache", "temporaries", "framework_overhead", "communication")


def correction(*terms, **changes):
    fields = {
        "gpu": "rtx-4090",
        "model_type": "llama",
        "profile": "hf",
        "task": "inference",
        "log": "torch-summary",
        "date": "2026-10-03",
        "digest": "0123456789ab",
    }
    return Correction(terms=terms, **{**fields, **changes})


@pytest.fixture(scope="module")
def run(catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.2-1B")
    gpu = catalog.hardware.gpu("rtx-4090")
    usable = catalog.hardware.usable_memory(gpu)

    def estimate(*corrections, workload=Inference()):  # noqa: B008
        return estimate_memory(architecture, workload, gpu, usable, corrections=corrections)

    return estimate


def test_without_corrections_nothing_changes(run):
    assert run() == run(correction(TermCorrection(term="weights", added_bytes=GIB), gpu="h100-sxm")).evolve(
        notes=run().notes
    )


@pytest.mark.parametrize("part", ["context", "slack"])
def test_added_overhead_is_a_part_of_its_own(run, part):
    plain = run()
    made = correction(TermCorrection(term="framework_overhead", added_bytes=317 * MIB, part=part))
    corrected = run(made)
    assert corrected.total_bytes == plain.total_bytes + 317 * MIB
    assert corrected.reserved_bytes - plain.reserved_bytes == (317 * MIB if part == "slack" else 0)
    assert corrected.free_bytes == plain.free_bytes - 317 * MIB
    overhead = corrected.term("framework_overhead")
    assert overhead.parts[-1].bytes == 317 * MIB
    assert "2026-10-03" in overhead.parts[-1].source
    assert sum(item.bytes for item in overhead.parts) == overhead.bytes
    assert corrected.notes[0].startswith("Corrected by your log of 2026-10-03")
    assert "+0.31 GiB" in corrected.notes[0]


def test_a_factor_grows_with_the_workload(run):
    made = correction(TermCorrection(term="kv_cache", factor=1.25))
    for batch in (1, 8):
        workload = Inference(batch=batch, context_length=4096, prompt_length=64)
        plain, corrected = run(workload=workload), run(made, workload=workload)
        assert corrected.term("kv_cache").bytes == round(plain.term("kv_cache").bytes * 1.25)
    assert "× 1.250" in applied_correction_note(made)


def test_weights_are_added_to_in_every_phase(run):
    plain, corrected = run(), run(correction(TermCorrection(term="weights", added_bytes=-64 * MIB)))
    for before, after in zip(plain.phases, corrected.phases, strict=True):
        assert before.bytes - after.bytes == 64 * MIB
    weights = corrected.term("weights")
    assert [item.name for item in weights.parts] == ["estimated", "correction by your log"]


def test_a_term_that_only_the_log_knows_is_added(run):
    corrected = run(correction(TermCorrection(term="communication", added_bytes=GIB)))
    assert corrected.term("communication").bytes == GIB
    assert corrected.term("communication").certainty == "measured"
    assert run(correction(TermCorrection(term="communication", added_bytes=-GIB))).term("communication") is None


def test_training_with_terms_that_are_written_late(run):
    made = correction(
        TermCorrection(term="activations", factor=0.9), TermCorrection(term="logits", factor=1.1), task="training"
    )
    plain, corrected = run(workload=Training()), run(made, workload=Training())
    assert corrected.term("activations").bytes == pytest.approx(plain.term("activations").bytes * 0.9, abs=1)
    assert sum(term.bytes for term in corrected.terms) == corrected.total_bytes


@pytest.mark.parametrize(
    "changes", [{"gpu": "h100-sxm"}, {"model_type": "qwen2"}, {"profile": "vllm"}, {"task": "training"}]
)
def test_a_correction_of_another_run_does_not_count_and_says_so(run, changes):
    made = correction(TermCorrection(term="weights", added_bytes=GIB), **changes)
    result = run(made)
    assert result.total_bytes == run().total_bytes
    assert "does not apply here" in result.notes[0]


def test_the_list_of_cards_agrees_with_the_estimate(run, catalog):
    architecture = catalog.models.model("meta-llama/Llama-3.2-1B")
    made = correction(
        TermCorrection(term="weights", added_bytes=GIB), TermCorrection(term="framework_overhead", added_bytes=GIB)
    )
    cards = [
        (catalog.hardware.gpu(name), catalog.hardware.usable_memory(catalog.hardware.gpu(name)))
        for name in ("rtx-4090", "l40s")
    ]
    fits = {fit.gpu_id: fit for fit in fits_on(architecture, Inference(), cards, corrections=(made,))}
    plain = {fit.gpu_id: fit for fit in fits_on(architecture, Inference(), cards)}
    assert fits["rtx-4090"].total_bytes == run(made).total_bytes
    assert fits["l40s"] == plain["l40s"]


@given(
    st.lists(
        st.builds(
            TermCorrection,
            term=st.sampled_from(TERMS),
            added_bytes=st.integers(-(10**12), 10**12),
            factor=st.floats(0.02, 90),
            part=st.sampled_from(["context", "slack"]),
        ),
        max_size=4,
    ),
    st.sampled_from([Inference(batch=4), Training()]),
)
@settings(max_examples=60)
def test_whatever_is_corrected_the_terms_sum_to_the_byte(terms, workload):
    catalog = KNOWN
    architecture = catalog.models.model("meta-llama/Llama-3.2-1B")
    gpu = catalog.hardware.gpu("rtx-4090")
    made = correction(*terms, task=workload.task)
    result = estimate_memory(architecture, workload, gpu, catalog.hardware.usable_memory(gpu), corrections=(made,))
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert all(term.bytes >= 0 and term.low_bytes >= 0 for term in result.terms)
    for term in result.terms:
        if term.parts:
            assert sum(part.bytes for part in term.parts) == term.bytes
    assert max(phase.bytes for phase in result.phases) == result.total_bytes


def test_sources_of_several_logs_are_all_named():
    both = (correction(date="2026-10-03"), correction(date="2026-11-04"))
    assert "2026-10-03" in correction_sources_text(both)
    assert "2026-11-04" in correction_sources_text(both)
    assert correction().key == ("hf", "inference", "rtx-4090", "llama")
