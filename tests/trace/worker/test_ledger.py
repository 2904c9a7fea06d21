"""The ledger: each storage once, from the operator that makes it to its last reference, with its origin."""

import gc
from collections.abc import Callable

import pytest
import torch
from ledger_kit import MIB, Books
from torch import nn


def square() -> torch.Tensor:
    return torch.zeros(512, 512)


VIEWS: list[Callable[[torch.Tensor], torch.Tensor]] = [
    lambda x: x.view(-1),
    lambda x: x.t(),
    lambda x: x[3:5],
    lambda x: x.detach(),
    lambda x: x.add_(1),
    lambda x: x.contiguous(),
    lambda x: nn.Parameter(x),
    lambda x: x.expand(4, 512, 512),
]


@pytest.mark.parametrize("view", VIEWS)
def test_a_storage_counts_once_and_until_its_last_view_is_gone(view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with Books().open() as books:
        whole = square()
        assert books.alive() == MIB
        part = view(whole)
        assert books.alive() == MIB
        del whole
        assert books.alive() == MIB
        del part
        gc.collect(1)  # views are young
        assert books.alive() == 0


def test_events_are_numbered_in_order() -> None:
    with Books().open() as books:
        first = square()
        second = first + 1
        del first
        third = second * 2
        del second, third
    columns = books.ledger.allocations()
    assert (columns.made, columns.freed) == ((0, 1, 3), (2, 4, 5))
    assert books.ledger.events == 6


def test_temporary_kernel_memory_exists_only_while_the_kernel_runs() -> None:
    with Books(lambda func, *_: 1000 if "mm" in str(func) else 0).open() as books:
        product = square() @ square()
        assert books.alive() == MIB
        del product
    assert [row[0] for row in books.rows()] == [MIB, MIB, MIB, 1000]
    assert books.ledger.shapes.names()[-1] == "inside the kernel"


class Twice(nn.Module):
    """Two layers, of which the second is used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(256, 256, bias=False)
        self.second = nn.Linear(256, 256, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.second(self.first(x)))


def test_activations_live_beyond_their_phase_and_temporaries_do_not() -> None:
    with Books().open() as books:
        books.ledger.begin_phase("load", 0)
        module, inputs = Twice(), torch.zeros(64, 256)
        books.places.register({"net": module})
        books.ledger.label(module.parameters(), "parameters")
        books.ledger.label((inputs,), "inputs")
        books.ledger.begin_phase("forward", 0)
        loss = (module(inputs) * 2).sum()
        books.ledger.begin_phase("backward", 0)
        loss.backward()
        books.ledger.label((p.grad for p in module.parameters() if p.grad is not None), "gradients")
        found = books.rows()
    made = [(category, operator, path) for _, category, operator, path, _ in found]
    assert made.count(("parameters", "aten::empty.memory_format", "")) == 2
    assert ("inputs", "aten::zeros", "") in made
    assert ("activations", "aten::mm", "net.first") in made
    assert made.count(("activations", "aten::mm", "net.second")) == 1  # the second result is not needed any more
    assert ("temporaries", "aten::mm", "net.second") in made
    assert sum(category == "gradients" for category, _, _ in made) == 2


def test_backward_operators_have_the_module_and_line_of_the_forward_pass() -> None:
    with Books().open() as books:
        module, inputs = Twice(), torch.zeros(64, 256)
        books.places.register({"": module})
        loss = module(inputs).sum()
        before = len(books.rows())
        books.ledger.begin_phase("backward", 0)
        loss.backward()
        backward = books.rows()[before:]
    places = [path for _, _, operator, path, _ in backward if operator == "aten::mm"]
    assert places == ["second", "second", "second", "second", "first"]
    assert {line.rpartition(":")[0] for *_, line in backward if line} == {__file__}


def test_gradients_and_parameters_belong_to_the_module_that_owns_them() -> None:
    with Books().open() as books:
        module = Twice()
        books.places.register({"": module})
        owner = books.places.owner_number(module.second.weight)
        assert owner is not None
        assert books.places.modules.names()[owner] == "second"
        books.ledger.set_owner(module.second.weight, owner)
        books.ledger.label((module.second.weight,), "parameters")
    assert [row[3] for row in books.rows() if row[1] == "parameters"] == ["second"]
    assert books.places.owner_number(torch.zeros(1)) is None


def test_a_storage_resized_to_zero_is_freed_and_keeps_its_category() -> None:
    with Books().open() as books:
        buffer = square()
        books.ledger.label((buffer,), "communication")
        storage = buffer.untyped_storage()
        storage.resize_(0)
        books.ledger.record_resize(storage)
        assert books.alive() == 0
        storage.resize_(2 * MIB)
        books.ledger.record_resize(storage)
        assert books.alive() == 2 * MIB
        del buffer, storage
    assert [row[:2] for row in books.rows()] == [(MIB, "communication"), (2 * MIB, "communication")]
    assert books.alive() == 0


def test_freed_allocations_can_be_removed() -> None:
    with Books().open() as books:
        kept, gone = square(), square()
        del gone
        books.ledger.forget_freed()
        assert [row[0] for row in books.rows()] == [MIB]
        del kept
    assert books.ledger.allocations().freed == (3,)


def test_nothing_is_recorded_in_an_unrecorded_context() -> None:
    with Books().open() as books, books.ledger.unrecorded():
        square()
    assert books.rows() == []


def test_phases_without_events_are_left_out() -> None:
    with Books().open() as books:
        square()
        books.ledger.begin_phase("loss", 0)
        books.ledger.begin_phase("backward", 0)
        square()
    assert [(span.name, span.start, span.end) for span in books.ledger.spans()] == [
        ("forward", 0, 2),
        ("backward", 2, 4),
    ]


def test_operations_of_matrix_products_are_counted() -> None:
    with Books().open() as books:
        module = nn.Linear(32, 8, bias=False)
        module(torch.zeros(4, 32)).sum().backward()
    # Forward, and the gradient of the weight; the input needs none.
    assert books.flops.total == 2 * (2 * 4 * 32 * 8)
    assert books.flops.elements == 4 * 8 + 32 * 8
    assert books.flops.convolutions == 0
    assert books.flops.calls > 2
    books.flops.reset_counts()
    assert (books.flops.total, books.flops.elements, books.flops.calls) == (0, 0, 0)


def test_convolutions_are_counted_separately() -> None:
    with Books().open() as books:
        nn.Conv2d(3, 8, 3, bias=False)(torch.zeros(1, 3, 10, 10))
    assert books.flops.total == books.flops.convolutions == 2 * 8 * 64 * 3 * 9
    assert books.flops.elements == 8 * 64
