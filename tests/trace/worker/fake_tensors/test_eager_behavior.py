"""What PyTorch does otherwise for fake tensors than for plain ones: traced as if they were plain."""

import copy
from collections.abc import Callable
from itertools import accumulate

import pytest
import torch
from torch import nn
from torch.nn import functional
from torch.profiler import ProfilerActivity, profile

from planner.trace.recording import NEVER_FREED
from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.cpu.kernels import hidden_bytes
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.ledger import AllocationLedger, FlopCounter


def real_levels(work: Callable[[], object]) -> list[int]:
    """Return the live bytes after each allocation and free of a real run."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True, acc_events=True) as profiler:
        work()
    changes = [e for e in profiler.profiler.kineto_results.events() if e.name() == "[memory]"]
    return list(accumulate(e.nbytes() for e in sorted(changes, key=lambda e: e.start_ns())))


def traced_levels(work: Callable[[], object]) -> list[int]:
    """Return the live bytes after each event of the same run, traced."""
    ledger = AllocationLedger(KnownValues(Assumptions(lambda text: None)), CallSites(), FlopCounter(), hidden_bytes)
    ledger.begin_phase("forward", 0)
    with ledger, eager_behavior():
        ledger.observe_use_counts()
        work()
    book = ledger.allocations()
    changes = [*zip(book.made, book.bytes, strict=True)]
    changes += [(time, -size) for time, size in zip(book.freed, book.bytes, strict=True) if time != NEVER_FREED]
    return list(accumulate(size for _, size in sorted(changes)))


def hidden_state() -> torch.Tensor:
    return torch.randn(64, 256, requires_grad=True) * 1.0


def residual() -> None:
    """A gradient that goes both ways is not changed while both need it."""
    state = hidden_state()
    (functional.gelu(state + functional.gelu(state)) * 2.0).sum().backward()


def two_uses() -> None:
    state = hidden_state()
    (torch.relu(state) * functional.gelu(state)).sum().backward()


def two_sums() -> None:
    """The same gradient goes to two sums: the one cannot add to it in place before the other is through."""
    first, second = hidden_state(), hidden_state()
    ((first + second) * torch.relu(first) * torch.relu(second)).sum().backward()


def gradient_that_is_held() -> None:
    state = hidden_state()
    inner = torch.relu(state)
    kept: list[torch.Tensor] = []
    inner.register_hook(kept.append)
    (inner + torch.relu(inner) + functional.gelu(inner)).sum().backward()


def tied_weight() -> None:
    weight = torch.randn(300, 64, requires_grad=True)
    tokens = torch.zeros(4, 8, dtype=torch.int64)
    functional.linear(functional.embedding(tokens, weight), weight).sum().backward()


def parts() -> None:
    state = hidden_state()
    one, two, three = state.split((64, 64, 128), 1)
    ((one * two).sum() + three.sum()).backward()


@pytest.mark.parametrize("work", [residual, two_uses, two_sums, gradient_that_is_held, tied_weight, parts])
def test_gradients_come_together_as_in_a_real_run(work: Callable[[], None]) -> None:
    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


def test_a_bias_is_added_in_place_where_rows_are_apart() -> None:
    def work() -> None:
        with torch.no_grad():
            nn.Linear(32, 512)(torch.randn(4, 8, 32).transpose(0, 1))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("convert", [lambda m: m.half(), lambda m: m.to(memory_format=torch.channels_last)])
def test_modules_are_converted_in_place(convert: Callable[[nn.Module], nn.Module]) -> None:
    def work() -> nn.Module:
        return convert(nn.Sequential(nn.Conv2d(16, 32, 3), nn.Conv2d(32, 64, 3)))

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


def test_a_copied_module_belongs_to_the_same_run() -> None:
    def work() -> None:
        layer = nn.Linear(64, 64)
        copied = copy.deepcopy(layer)
        copied(torch.randn(8, 64)).sum().backward()
        assert copied.weight.grad is not None
        assert layer.weight.grad is None

    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)


@pytest.mark.parametrize("loss", [functional.mse_loss, functional.smooth_l1_loss, functional.huber_loss])
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_a_loss_keeps_what_it_was_computed_in(loss: Callable[..., torch.Tensor], reduction: str) -> None:
    def work() -> torch.Tensor:
        return loss(torch.randn(64, 64), torch.randn(64, 64), reduction=reduction)

    real, traced = real_levels(work), traced_levels(work)
    assert max(traced) == pytest.approx(max(real), abs=64)


def packed_sequences() -> None:
    lengths = torch.tensor([30, 7, 50, 12, 7])
    network, head = nn.LSTM(32, 64, batch_first=True), nn.Linear(64, 5)
    packed = nn.utils.rnn.pack_padded_sequence(torch.randn(5, 50, 32), lengths, True, enforce_sorted=False)
    padded, found = nn.utils.rnn.pad_packed_sequence(network(packed)[0], batch_first=True)
    assert found.tolist() == lengths.tolist()
    head(padded).sum().backward()


def temporal_classification() -> None:
    head = nn.Linear(32, 30)
    scores = head(torch.randn(40, 6, 32)).log_softmax(-1)
    targets, lengths = torch.arange(1, 61).view(6, 10) % 29 + 1, torch.tensor([3, 10, 7, 9, 4, 8])
    functional.ctc_loss(scores, targets, torch.full((6,), 40), lengths).backward()


def masked_language_model() -> None:
    mask = torch.arange(256).view(4, 64) % 7 == 0
    embedding, head = nn.Embedding(50, 32), nn.Linear(32, 50)
    tokens = torch.arange(256).view(4, 64) % 50
    functional.cross_entropy(head(embedding(tokens.masked_fill(mask, 3)[mask])), tokens[mask]).backward()


def matched_anchors() -> None:
    """A detector's targets: anchors are matched to boxes by their overlap, and some of the others are drawn."""
    corners = torch.cartesian_prod(torch.arange(20), torch.arange(20)).repeat(1, 2) * 16.0
    anchors = corners + torch.tensor([-24.0, -24.0, 24.0, 24.0])
    boxes = torch.tensor([[10.0, 10, 100, 120], [50, 60, 200, 220]])
    sizes = (torch.min(boxes[:, None, 2:], anchors[:, 2:]) - torch.max(boxes[:, None, :2], anchors[:, :2])).clamp(min=0)
    overlap, matched = sizes.prod(-1).max(0)
    positive, negative = torch.where(overlap > 1000)[0], torch.where(overlap <= 1000)[0]
    chosen = torch.cat([positive, negative[torch.randperm(len(negative))[: len(positive)]]])
    with torch.no_grad():
        functional.smooth_l1_loss(torch.randn(400, 4)[positive], boxes[matched[positive]])
        torch.randn(400, 256)[chosen].pow(2).sum()


@pytest.mark.parametrize("work", [packed_sequences, temporal_classification, masked_language_model, matched_anchors])
def test_known_lengths_and_masks_select_exactly(work: Callable[[], None]) -> None:
    assert max(traced_levels(work)) == pytest.approx(max(real_levels(work)), abs=64)
