"""What the CPU's kernels that run other operators hold within, against the formulas."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from held_bytes import agree
from random_programs import one_thread

aten = torch.ops.aten

ROWS, POINTS = torch.randn(96, 128), torch.randn(80, 128)
PLACES = (torch.arange(96 * 128) * 7 % 96).view(96, 128)
SOUNDS, IMAGES = torch.randn(4, 8, 240), torch.randn(4, 8, 24, 24)
MATRICES = torch.randn(4, 48, 48) + 8 * torch.eye(48)
SYMMETRIC = MATRICES @ MATRICES.mT
TRIANGLES = torch.linalg.cholesky(SYMMETRIC)
BAGS = (PLACES.flatten(), torch.arange(0, PLACES.numel(), 128))

OPERATORS: dict[str, tuple[Any, ...]] = {
    "gamma functions": (aten.mvlgamma.default, ROWS + 9, 3),
    "powers of two": (aten.ldexp.Tensor, ROWS, ROWS),
    "count of rows": (aten.count_nonzero.default, ROWS, 1),
    "count": (aten.count_nonzero.default, ROWS),
    "distance": (aten.dist.default, ROWS, ROWS[:1]),
    "distances": (aten._euclidean_dist.default, ROWS, POINTS),
    "scattered mean": (aten.scatter_reduce.two, ROWS, 0, PLACES, ROWS, "mean"),
    "scattered sum": (aten.scatter_reduce.two, ROWS, 0, PLACES, ROWS, "sum"),
    "mean of bags": (aten._embedding_bag.default, ROWS, *BAGS, False, 1),
    "sum of bags": (aten._embedding_bag.default, ROWS, *BAGS, False, 0),
    "nearest": (aten.upsample_nearest1d.default, SOUNDS, [480]),
    "linear": (aten.upsample_linear1d.default, SOUNDS, [480], False),
    "cubic": (aten.upsample_bicubic2d.default, IMAGES, [48, 48], False),
    "smooth": (aten._upsample_bilinear2d_aa.default, IMAGES, [12, 12], False),
    "grid": (aten.affine_grid_generator.default, torch.randn(4, 2, 3), [4, 8, 24, 24], False),
    "inverse": (aten.linalg_inv_ex.default, MATRICES),
    "singular vectors": (aten._linalg_svd.default, MATRICES),
    "triangular factors": (aten.linalg_lu.default, MATRICES),
    "solution by a factor": (aten.cholesky_solve.default, MATRICES, TRIANGLES),
    "eigenvectors": (aten._linalg_eigh.default, SYMMETRIC),
    "eigenvalues": (aten._linalg_eigh.default, SYMMETRIC, "L", False),
    "eigenvalues of any matrix": (aten._linalg_eigvals.default, MATRICES),
    "eigenvectors of any matrix": (aten.linalg_eig.default, MATRICES),
    "eigenvectors of a complex matrix": (aten.linalg_eig.default, torch.complex(MATRICES, MATRICES)),
    "exponentials": (aten.linalg_matrix_exp.default, MATRICES),
    "exponential": (aten.linalg_matrix_exp.default, MATRICES[0]),
    "least squares": (aten.linalg_lstsq.default, MATRICES, MATRICES),
    "pseudoinverse": (aten.linalg_pinv.atol_rtol_tensor, MATRICES[:, :32]),
}


@pytest.fixture(autouse=True)
def alone() -> Iterator[None]:
    with one_thread():
        yield


@pytest.mark.parametrize("name", OPERATORS)
def test_what_composed_operators_hold(name: str) -> None:
    func, *args = OPERATORS[name]
    agree(func, *args, within=4608)


@pytest.mark.parametrize("mode", [0, 1, 2])
def test_what_the_gradient_of_bags_holds(mode: int) -> None:
    output, *places = aten._embedding_bag(ROWS, *BAGS, False, mode)
    agree(aten._embedding_bag_backward.default, output, *BAGS, *places, 96, False, mode, False, None, within=4096)


def test_the_sparse_gradient_of_bags_is_made_of_results() -> None:
    output, *places = aten._embedding_bag(ROWS, *BAGS, False, 0)
    args = (output, *BAGS, *places, 96, False, 0, True, None)
    assert torch.is_tensor(aten._embedding_bag_backward(*args))


def test_what_a_bilinear_product_holds_forward_and_backward() -> None:
    weight = torch.ones(8, 128, 128)
    agree(aten._trilinear.default, ROWS, weight, ROWS, [1, 3], [0], [1, 2], [2, 3])
    agree(aten._trilinear.default, torch.randn(96, 8), weight, ROWS, [2, 3], [0], [1, 2], [1, 3], 1)
