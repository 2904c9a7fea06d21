"""Explanations of differences between a log and the estimate."""

import pytest
from log_texts import RUN, TRAIN, VLLM, llama_cpp, smi, summary

from planner.memory.logs.read import read_log
from planner.plan.evaluate import evaluate
from planner.plan.logs.comparison import compare_with_log
from planner.workload.software.llama_cpp import LlamaCppSettings


def test_notes_state_another_context_length_and_model(compared):
    found = compared(VLLM.replace("32,768", "8,192") + "INFO Starting to load model Qwen/Qwen3-8B...\n")
    assert "The log's context is 8,192 tokens, the plan's 32,768." in found.notes
    assert "The log is for the model Qwen/Qwen3-8B, the plan for meta-llama/Llama-3.1-8B." in found.notes
    same = compared(VLLM + "INFO Starting to load model /models/Meta-Llama-3.1-8B-Instruct...\n")
    assert not any("names the model" in note for note in same.notes)


@pytest.mark.parametrize(
    ("taken", "words"),
    [("29.92", "suggests fp32"), ("7.48", "8 bits per weight"), ("4.20", "4 bits per weight"), ("10.00", "")],
)
def test_another_weight_format_is_recognized_by_its_bits(compared, taken, words):
    row = compared(f"Model loading took {taken} GiB").row("weights")
    assert words in row.explanation
    assert row.corrections == ()
    assert bool(row.explanation) == bool(words)


@pytest.mark.parametrize(
    ("context", "cache", "words"),
    [
        (65_536, 8192.0, "2 times the plan's 32,768"),
        (32_768, 2048.0, "an 8-bit cache"),
        (32_768, 8192.0, "a wider format"),
        (32_768, 3000.0, ""),
    ],
)
def test_a_longer_or_quantized_cache_is_recognized(compared, context, cache, words):
    assert words in compared(llama_cpp(context, cache)).row("kv_cache").explanation


def test_reserved_memory_alone_is_explained_as_more_than_allocated(compared):
    text = "\n".join(line for line in summary(1, 23900).splitlines() if "Allocated" not in line)
    assert "more than the allocated memory" in compared(text, TRAIN).row("reserved").explanation


def test_other_processes_on_the_card_are_explained(compared):
    assert "other processes use 0.49 GiB" in compared(smi(22900, 21500, others=500), TRAIN).row("card").explanation
    rest = compared(smi(22900, 21500, others=500), TRAIN).row("card").explanation
    assert "the driver and unlisted processes use 0.88 GiB" in rest
    alone = "\n".join(smi(22900, 21500).splitlines()[:2])
    assert "includes the card's other processes" in compared(alone, TRAIN).row("card").explanation
    assert "Of the card" not in compared(smi(21510, 21500), TRAIN).row("card").explanation


@pytest.mark.parametrize(("held", "words"), [("9.08", "not below it"), ("29.08", "more than estimated")])
def test_an_out_of_memory_message_gives_a_lower_bound(compared, held, words):
    text = (
        "CUDA out of memory. Tried to allocate 2.78 GiB. GPU 0 has a total capacity of 31.47 GiB of which 1.73 GiB is "
        f"free. Of the allocated memory {held} GiB is allocated by PyTorch, and 0.35 GiB is reserved by PyTorch but "
        "unallocated."
    )
    found = compared(text, TRAIN)
    assert found.row("allocated").at_least
    assert words in found.row("allocated").explanation
    assert "used or requested at least this much" in found.row("allocated").explanation
    assert "beyond its tensors" not in found.row("reserved").explanation
    assert "not the plan's card" in found.row("capacity").explanation


def test_overhead_is_explained_only_by_an_engine_that_the_log_names(catalog):
    reading = read_log(VLLM)
    known, unknown = (
        compare_with_log(evaluate(RUN, catalog), one, catalog) for one in (reading, reading.evolve(engine=None))
    )
    assert "CUDA graphs take" in known.row("overhead").explanation
    assert "CUDA graphs take" not in unknown.row("overhead").explanation


def test_the_context_of_all_slots_together_is_that_of_the_plan(compared):
    log = llama_cpp(65_536, 8192.0)
    assert any("log's context is 65,536" in note for note in compared(log).notes)
    engine = LlamaCppSettings(slots=2, kv_unified=True)
    workload = RUN.workload.evolve(profile="llama.cpp", batch=2, engine=engine)
    slotted = compared(log, RUN.evolve(workload=workload))
    assert not any("log's context" in note for note in slotted.notes)
    assert "times the plan's" not in slotted.row("kv_cache").explanation
