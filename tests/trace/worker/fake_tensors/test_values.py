"""Values of small tensors on a fake run, and what is assumed of those that nobody knows."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from ledger_kit import Books
from scripted import script, traced
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from watched import file_target

from planner.errors import PlannerError
from planner.trace.request import AssumedValue, TraceRequest, UnknownValues
from planner.trace.worker.cuda.operators import CudaOperators
from planner.trace.worker.fake_tensors.assumptions import MOST_ROUNDS, Assumptions
from planner.trace.worker.fake_tensors.eager_behavior import eager_behavior
from planner.trace.worker.fake_tensors.values import ShapeRules
from planner.trace.worker.job import record_trace


@pytest.fixture
def books() -> Iterator[Books]:
    with Books().open() as opened:
        yield opened


def test_values_that_follow_from_constants_are_known(books: Books) -> None:
    lengths = torch.tensor([3, 5, 2])
    assert int(lengths.max()) == 5
    assert (torch.arange(10) > 6).nonzero().shape == (3, 1)
    assert torch.arange(6).view(2, 3)[torch.tensor([True, False])].shape == (1, 3)
    assert torch.repeat_interleave(torch.tensor([1, 2, 3])).shape == (6,)
    assert torch.unique(torch.tensor([1, 1, 2])).tolist() == [1, 2]
    assert books.notes == []


def test_changes_in_place_are_followed_through_views(books: Books) -> None:
    mask = torch.zeros(4, dtype=torch.bool)
    mask[1:3].fill_(True)
    assert mask.nonzero().shape == (2, 1)
    assert books.notes == []


def test_numbers_set_one_by_one_are_known(tmp_path: Path) -> None:
    source = """
import torch
text, unknown = torch.zeros(8, dtype=torch.int64)[1::2], torch.randint(9, (4,))
for place in range(4):
    text[place] = unknown[place] = place * 10
text[-1] = 7
assert text._version == 5
assert text.tolist() == [0, 10, 20, 7]
assert not unknown[3] > 30
for wrong in (4, -5):
    try:
        text[wrong] = 1
    except IndexError:
        continue
    raise AssertionError(wrong)
"""
    operators = traced(script(tmp_path, source)).operators
    assert "aten::fill_.Scalar" not in operators


def test_changes_of_lists_in_place_are_followed(books: Books) -> None:
    numbers = [torch.zeros(2), torch.ones(3)]
    torch._foreach_add_(numbers, 1)
    assert [number.tolist() for number in numbers] == [[1, 1], [2, 2, 2]]
    assert books.notes == []


def test_a_known_tensor_is_forgotten_once_something_unknown_is_written_to_it(books: Books) -> None:
    mask = torch.zeros(4, dtype=torch.bool)
    part = mask[:2]
    mask.copy_(torch.empty(4) > 0)
    assert part.nonzero().shape == (2, 2 - 1)
    assert books.notes == ["A mask that depends on the data was assumed to select everything."]


@pytest.mark.parametrize(
    ("ask", "answer", "note"),
    [
        (lambda x: bool((x > 0).any()), True, "select everything"),
        (lambda x: bool(x.isnan().any()), False, ""),
        (lambda x: bool(x.sum() < 1e-6), False, "condition"),
        (lambda x: float(x.sum()), 1.0, "number"),
        (lambda x: int(x.argmax()), 0, "Choices"),
        (lambda x: torch.equal(x, x + 1), False, "condition"),
        (lambda x: x[x > 0].shape, (6,), "select everything"),
        (lambda x: torch.masked_select(x, x > 0).shape, (6,), "select everything"),
        (lambda x: x.unique().shape, (6,), "all different"),
        (lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True)[2].shape, (2,), "all different"),
        (lambda x: torch.repeat_interleave(x.long().view(-1)).shape, (6,), "assumed to be 1"),
        (lambda x: torch.bincount(x.long().view(-1), minlength=4).shape, (4,), "assumed to be 1"),
        (lambda x: torch.nn.functional.one_hot(x.argmax(0)).shape, (3, 2), "spread evenly"),
        (lambda x: x.topk(2).indices.tolist(), [[0, 1], [2, 0]], "spread evenly"),
        (lambda x: x.sort(dim=0).indices.tolist(), [[0, 0, 0], [1, 1, 1]], "spread evenly"),
    ],
)
def test_what_is_unknown_is_assumed_and_told(
    books: Books, ask: Callable[[torch.Tensor], Any], answer: object, note: str
) -> None:
    assert ask(torch.empty(2, 3)) == answer
    assert note in " ".join(books.notes)
    assert bool(books.notes) == bool(note)


def test_a_mask_from_picking_one_of_n_selects_an_nth(books: Books) -> None:
    picked = torch.empty(64, 8).argmax(-1)
    chosen = torch.nn.functional.one_hot(picked, num_classes=8).permute(1, 0)
    assert chosen[3].nonzero().shape == (8, 1)
    assert "spread evenly" in " ".join(books.notes)


def test_boxes_are_suppressed_as_by_a_mask() -> None:
    for unknown_values, kept in (("typical", 10), ("fewest", 0)):
        with Books(unknown_values=unknown_values).open() as books:
            boxes = torch.empty(10, 4)
            found = books.assumptions.assumed_result("torchvision.nms.default", (boxes, boxes[:, 0], 0.5), {})
            assert found.shape == (kept,)
            assert "select" in books.notes[0]


def test_what_is_derived_from_an_assumed_mask_fits_the_mask(books: Books) -> None:
    tensor = torch.empty(4, 3)
    mask = tensor > 0
    count = int(mask.sum())
    gathered = torch.zeros(count)
    gathered[:] = tensor[mask]
    assert tensor[mask].split(mask.sum(1).tolist())[0].shape == (3,)


def test_a_known_mask_selects_exactly_from_unknown_values(books: Books) -> None:
    lengths = torch.tensor([2, 0, 3])
    mask = torch.arange(4) < lengths[:, None]
    assert torch.empty(3, 4, 8)[mask].shape == (5, 8)
    assert torch.empty(3, 4).masked_select(mask).shape == (5,)
    assert books.notes == []


def test_random_numbers_are_known_after_a_seed_until_a_draw_is_not_followed(books: Books) -> None:
    def draw() -> int:
        return int((torch.rand(100) < 0.5).sum())

    assert draw() == 100
    torch.manual_seed(5)
    followed = draw()
    torch.empty(1 << 21).normal_()
    assert draw() == 100
    torch.manual_seed(5)
    assert draw() == followed < 100


def test_a_number_that_is_only_printed_is_no_assumption(books: Books) -> None:
    with books.assumptions.read_as_numbers():
        loss = torch.empty(3).sum().item()
        assert f"{(loss + loss) / 2:.2f}" == "1.00"
        with eager_behavior():
            assert f"{torch.empty(3).mean():.2f}" == "0.50"
        assert books.notes == []
        assert loss > 0.5
        assert len(books.notes) == 1


CHECKED = """
import torch
from torch.distributions import Normal
values = torch.randn(8)
if (values < 0).any():
    raise ValueError
if not values.isfinite().all() or not (values.sum() > 0): raise ValueError
Normal(values, values.exp()).log_prob(values)
torch.nn.functional.gaussian_nll_loss(values, values, values)
"""


@pytest.mark.parametrize("unknown_values", ["typical", "fewest", "most"])
def test_checks_of_the_data_pass(tmp_path: Path, unknown_values: UnknownValues) -> None:
    assert traced(script(tmp_path, CHECKED, unknown_values=unknown_values)).spans


def test_what_a_library_asserts_is_true(tmp_path: Path) -> None:
    file = tmp_path / "solver.py"
    file.write_text("assert start + step > start\n")
    assumptions = Assumptions(lambda _: None, lambda: ("", f"{file}:1"))
    assert assumptions.assumed_result(torch.ops.aten._local_scalar_dense.default, (torch.tensor(False),), {}) is True


def test_a_loop_that_ends_by_its_data_ends(books: Books) -> None:
    rounds = 0
    while torch.empty(3).norm() > 1e-3:
        rounds += 1
    assert rounds == 10
    while torch.empty(3, 3).sum() > 0:
        rounds += 1
    assert rounds <= 10 + MOST_ROUNDS + 1


@pytest.mark.parametrize(
    ("unknown_values", "given", "selected", "chosen"),
    [("fewest", {}, 0, 0), ("most", {}, 40, 3), ("typical", {"mask": 0.25, "choice": 2}, 10, 2)],
)
def test_other_values_are_assumed_as_asked(
    unknown_values: UnknownValues, given: dict[str, float], selected: int, chosen: int
) -> None:
    arguments = [AssumedValue(name=name, value=value) for name, value in given.items()]
    with Books(unknown_values=unknown_values, given=arguments).open():
        assert (torch.empty(10, 4) > 0).nonzero().shape[0] == selected
        assert torch.empty(20, 4).argmax(-1)[-1] == chosen


def test_operators_of_whose_results_nothing_can_be_assumed_say_so(books: Books) -> None:
    with pytest.raises(PlannerError, match="depends on tensor values"):
        torch.unique_consecutive(torch.empty(4))


def test_products_of_groups_of_matrices_take_any_format(books: Books) -> None:
    ends = torch.tensor([2, 5], dtype=torch.int32)
    left, right = torch.empty(5, 16, requires_grad=True), torch.empty(2, 16, 8, requires_grad=True)
    result = torch._grouped_mm(left, right, offs=ends)
    assert result.shape == (5, 8)
    result.sum().backward()
    assert left.grad is not None
    assert right.grad is not None
    assert right.grad.shape == (2, 16, 8)
    assert torch._grouped_mm(torch.empty(2, 4, 16), torch.empty(2, 16, 8)).shape == (2, 4, 8)


SHAPES: list[Callable[[], torch.Tensor]] = [
    lambda: torch.empty(4, 8) @ torch.empty(8, 2),
    lambda: torch.empty(4, 8) + torch.empty(8),
    lambda: torch.empty(4, 8, dtype=torch.bfloat16) + 1,
    lambda: torch.empty(4, dtype=torch.int64) + 1,
    lambda: torch.empty(4, dtype=torch.int64) + 1.0,
    lambda: torch.empty(4, dtype=torch.bool) + True,
    lambda: torch.empty(4, 8).t() * 2,
    lambda: torch.empty(2, 3, 4).permute(2, 0, 1).clone(),
    lambda: torch.empty(2, 3, 8, 8).to(memory_format=torch.channels_last) * 2,
    lambda: torch.cat([torch.empty(2, 3), torch.empty(4, 3)]),
    lambda: torch.empty(4, 8).sum(dim=-1, keepdim=True),
    lambda: torch.empty(4, 8).sum(dim=-1, dtype=torch.float64),
    lambda: torch.tensor(2.0) * torch.tensor(3.0),
    lambda: torch.empty(4, 8)[1:3, 2:].t(),
    lambda: torch.empty(4, 8)[2].expand(3, 8),
    lambda: torch.ops.aten._unsafe_view(torch.empty(4, 8), [2, 16]),
    lambda: torch.empty(4, 8).unsqueeze(1).detach(),
    lambda: torch.empty(4, 8).t()[-7:99:3][1:][-1],
    lambda: torch.empty(4, 8)[..., 7:3],
    lambda: torch.empty(4, 8)[9:],
    lambda: torch.empty(4, 8)[1:].select(-1, -3),
    lambda: torch.empty(4, 8, dtype=torch.complex64).conj()[1:, 2].abs(),
]


@pytest.mark.parametrize("make", SHAPES)
def test_a_remembered_shape_is_the_shape_that_pytorch_gives(make: Callable[[], torch.Tensor]) -> None:
    with FakeTensorMode():
        plain = make()
    with Books().open():
        first, again = make(), make()
    for found in (first, again):
        assert isinstance(found, FakeTensor)
        assert (found.shape, found.stride(), found.dtype) == (plain.shape, plain.stride(), plain.dtype)
        assert found.storage_offset() == plain.storage_offset()


@pytest.mark.parametrize(
    "view",
    [
        lambda x: x[1:],
        lambda x: x.t(),
        lambda x: x.detach(),
        lambda x: torch.ops.aten._unsafe_view(x, [2, 16]),
        lambda x: x.expand(3, 4, 8),
    ],
)
def test_a_remembered_view_shares_its_storage(books: Books, view: Callable[[torch.Tensor], torch.Tensor]) -> None:
    for _ in range(3):
        whole = torch.empty(4, 8)
        assert view(whole).untyped_storage()._cdata == whole.untyped_storage()._cdata
    assert len(books.rows()) == 3


def test_rules_tell_numbers_of_different_kinds_apart() -> None:
    rules, mode = ShapeRules(), FakeTensorMode()
    with mode:
        whole = torch.empty(4, dtype=torch.int64)
    kinds = [rules.dispatch(mode, torch.ops.aten.add.Tensor, (), (whole, one), {}).dtype for one in (1, 1.0, True)]
    assert kinds == [torch.int64, torch.float32, torch.int64]


FACTORIES: dict[str, Callable[..., torch.Tensor]] = {
    "zeros": lambda **on: torch.zeros(3, **on),
    "ones": lambda **on: torch.ones(3, **on),
    "full": lambda **on: torch.full((3,), 2.0, **on),
    "arange": lambda **on: torch.arange(3, **on),
    "randint": lambda **on: torch.randint(4, (3,), **on),
    "eye": lambda **on: torch.eye(3, **on),
    "tensor": lambda **on: torch.tensor([3, 4], **on),
    "as_tensor": lambda **on: torch.as_tensor([3, 4], **on),
    "linspace": lambda **on: torch.linspace(0, 1, 5, **on),
    "tril_indices": lambda **on: torch.tril_indices(3, 3, **on),
    "randperm": lambda **on: torch.randperm(5, **on),
    "scalar_tensor": lambda **on: torch.scalar_tensor(1, **on),
    "rand": lambda **on: torch.rand(5, **on),
    "zeros_like": lambda **on: torch.zeros_like(torch.empty(5), **on),
}


@pytest.mark.parametrize("name", FACTORIES)
def test_a_small_tensor_can_be_made_on_the_card(books: Books, name: str) -> None:
    make = FACTORIES[name]
    with CudaOperators((8, 0), lambda difference: None, books.notes.append):
        named = make(device="cuda")
        with torch.device("cuda"):
            inside = make()
        torch.set_default_device("cuda")
        try:
            default = make()
        finally:
            torch.set_default_device(None)
    plain = make()
    for tensor in (named, inside, default):
        assert tensor.shape == plain.shape
        if not name.startswith("rand"):
            assert tensor.tolist() == plain.tolist()
    assert books.notes == []


def test_a_value_is_read_on_a_line_where_nothing_was_made(tmp_path: Path) -> None:
    source = """
def make():
    return nn.Linear(4, 3), torch.randn(2, 4), step

def step(module, inputs, optimizer):
    loss = module(inputs).sum()
    loss.backward()
    optimizer.step()
    print(loss.item())
"""
    request = TraceRequest(target=file_target(tmp_path, source, "make", "reading.py"), task="training")
    assert record_trace(request, lambda *_: None).allocations.bytes


def test_an_unknown_number_selects_from_a_short_tuple(books: Books) -> None:
    best = torch.empty(1).argmax().item()
    assert ("only",)[best] == "only"


def test_initialization_within_bounds_ends_although_its_numbers_are_unknown(books: Books) -> None:
    torch.nn.init.trunc_normal_(torch.empty(64, 64), std=0.02)
    assert books.notes == []
