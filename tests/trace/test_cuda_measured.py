"""Traces for CUDA against peaks that others measured on cards."""

import csv
from pathlib import Path

import pytest
import torch

from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.cuda.operators import CudaOperators
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.hugging_face import hide_fake_tensors
from planner.trace.worker.ledger import AllocationLedger, FlopCounter

TRUTH = Path(__file__).resolve().parent.parent / "truth" / "memory.csv"
MIB, GIB = 2**20, 2**30
CUBLAS_BYTES = 2 * (2 * 4096 + 8 * 16) * 1024
"""Before Hopper, for the forward and the backward pass; a trace leaves them to the estimate."""


def measured_bytes(row: str) -> float:
    with TRUTH.open() as file:
        (found,) = (line for line in csv.DictReader(file) if line["id"] == row)
    return float(found["measured_gib"]) * GIB


def traced_bytes(kind: str, attention: str, capability: tuple[int, int], batch: int, tokens: int) -> int:
    """Return the peak of the loop that was measured: no optimizer, and the gradient of the sum of all logits."""
    operators, places, flops = CudaOperators(capability, lambda _: None, lambda _: None), CallSites(), FlopCounter()
    ledger = AllocationLedger(KnownValues(Assumptions(lambda _: None)), places, flops, operators.hidden_bytes)
    with ledger, places, operators, hide_fake_tensors(), eager_behavior():
        ledger.begin_phase("forward", 0)
        model = make(kind, attention).train()
        returned = keys_and_values(model)
        for _ in range(2):
            model.zero_grad()
            # Until the next pass has returned, what the one before did is alive, as in the loop that was measured.
            logits, outputs = model(input_ids=torch.zeros(batch, tokens, dtype=torch.long)).logits, list(returned)
            returned.clear()
            logits.sum().backward()
        assert outputs or kind != "gpt2-large"
        booked = ledger.allocations()
    events = [(time, size) for time, size in zip(booked.made, booked.bytes, strict=True)]
    events += [(time, -size) for time, size in zip(booked.freed, booked.bytes, strict=True) if time >= 0]
    level = peak = 0
    for _, size in sorted(events):
        level += size
        peak = max(peak, level)
    return peak


def keys_and_values(model: torch.nn.Module) -> list[torch.Tensor]:
    """Return a list that takes what the version that was measured returned of each layer of GPT-2 in training.

    Those were views of the projection of queries, keys and values, which held all of it.
    """
    returned: list[torch.Tensor] = []
    model.config.use_cache = False
    if model.config.model_type == "gpt2":
        for block in model.transformer.h:
            block.attn.c_attn.register_forward_hook(lambda _module, _inputs, made: returned.append(made.view_as(made)))
    return returned


def make(kind: str, attention: str) -> torch.nn.Module:
    from transformers import BertConfig, BertForMaskedLM, GPT2Config, GPT2LMHeadModel  # seconds of each worker's start

    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float16)
    try:
        if kind == "gpt2-large":
            config = GPT2Config(n_embd=1280, n_layer=36, n_head=20, attn_implementation=attention)
            return GPT2LMHeadModel(config)
        return BertForMaskedLM(BertConfig(attn_implementation=attention))
    finally:
        torch.set_default_dtype(before)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("row", "attention", "batch", "tokens"),
    [
        ("sdpa-239", "sdpa", 1, 1024),
        ("sdpa-245", "sdpa", 2, 512),
        ("sdpa-252", "sdpa", 4, 512),
        ("sdpa-253", "sdpa", 4, 1024),
        ("sdpa-238", "eager", 1, 1024),
        ("sdpa-251", "eager", 4, 512),
    ],
)
def test_the_trace_of_gpt2_large_has_the_measured_peak(row: str, attention: str, batch: int, tokens: int) -> None:
    # The version of Transformers that was measured kept a mask of 1024 × 1024 bytes in each of the 36 layers.
    traced = traced_bytes("gpt2-large", attention, (8, 6), batch, tokens) + CUBLAS_BYTES + 36 * MIB
    # All 22 rows come out 20 to 75 MB too low. Half of it is what the allocator adds to blocks, as the runs before
    # left them, which is not known; nothing is counted that was not there.
    assert traced < measured_bytes(row)
    assert traced == pytest.approx(measured_bytes(row), rel=0.009)


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("row", "attention", "batch", "tokens"),
    [("sdpa-011", "eager", 16, 512), ("sdpa-012", "sdpa", 16, 512), ("sdpa-003", "eager", 4, 512)],
)
def test_the_trace_of_bert_has_about_the_measured_peak(row: str, attention: str, batch: int, tokens: int) -> None:
    # All of them come out 0.1 to 1.1 % too low; what is missing is not known. Smaller batches miss up to 3 %.
    traced = traced_bytes("bert-base", attention, (8, 0), batch, tokens) + CUBLAS_BYTES
    assert traced == pytest.approx(measured_bytes(row), rel=0.015)
