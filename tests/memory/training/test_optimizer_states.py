"""Optimizer states, against the optimizers themselves, or against their documented sums."""

import pytest
from small_models import llama, small_llama
from training_snapshots import alive, snapshots

from planner.memory.training.optimizer_states import optimizer_term, shampoo_factor_elements, soap_square_elements
from planner.models.architecture import Tensor
from planner.workload.optimizers import Optimizer

torch = pytest.importorskip("torch")

SHAPES = ((400, 300), (300,), (100, 200))


TRAINED = tuple(
    (Tensor(name=f"{place}", shape=shape, role="linear" if len(shape) > 1 else "norm"), 1)
    for place, shape in enumerate(SHAPES)
)


def test_bitsandbytes_quantizes_blocks_of_256_of_large_tensors() -> None:
    large, small = Tensor(name="l", shape=(64, 65), role="linear"), Tensor(name="s", shape=(4095,), role="norm")
    table = Tensor(name="e", shape=(100, 64), role="embedding")
    # 4160 elements in 17 blocks, each with a scale in fp32; the others have 32 bits each.
    # bitsandbytes 0.50.2 itself keeps 61,824 bytes for the first two with AdEMAMix.
    kinds = {"adamw": 2, "lion": 1, "ademamix": 3}
    for name, moments in [(f"{paged}{kind}-8bit", count) for kind, count in kinds.items() for paged in ("", "paged-")]:
        states = optimizer_term(((large, 1), (small, 1), (table, 3)), name, 2)
        assert states is not None
        assert states.bytes == moments * (4160 + 17 * 4 + 4 * (4095 + 3 * 6400))


def test_states_of_8_bits_are_named_by_how_many_there_are() -> None:
    described = {name: optimizer_term(TRAINED, name, 2) for name in ("adamw-8bit", "lion-8bit")}
    assert {name: term.formula for name, term in described.items() if term} == {
        "adamw-8bit": "Q × 2 × (1 + 4 / B) + (P − Q) × 8",
        "lion-8bit": "Q × (1 + 4 / B) + (P − Q) × 4",
    }


@pytest.mark.parametrize(("name", "moments"), [("adamw-32bit-bnb", 2), ("paged-lion", 1), ("ademamix", 3)])
def test_states_of_32_bits_are_so_whatever_is_trained(name: Optimizer, moments: int) -> None:
    states = optimizer_term(TRAINED, name, 2)
    assert states is not None
    assert states.bytes == moments * 4 * sum(tensor.size for tensor, _ in TRAINED)


def test_soap_keeps_squares_of_sides_up_to_10000() -> None:
    shapes = ((300, 200), (700,), (12_000, 64))
    tensors = [Tensor(name=str(shape), shape=shape, role="linear") for shape in shapes]
    # What nikhilvyas/SOAP itself kept of these three: moments 2 × 3,314,800 bytes, GG and Q 536,384 each.
    assert 8 * sum(soap_square_elements(tensor) for tensor in tensors) == 2 * 536_384
    states = optimizer_term(tuple((tensor, 1) for tensor in tensors), "soap", 4)
    assert states is not None
    assert states.bytes == 7_702_368


@pytest.mark.parametrize(
    ("shape", "factors"),
    [((300, 200), 522_000), ((2048, 1500), 27_006_816), ((1, 64), 16_640), ((600, 3), 1_442_448), ((1025,), 4_198_408)],
)
def test_shampoo_keeps_triangles_of_blocks(shape: tuple[int, ...], factors: int) -> None:
    # Both kinds of factors, as DistributedShampoo itself kept them by default.
    assert 4 * shampoo_factor_elements(Tensor(name="t", shape=shape, role="linear")) == factors


P = 6_738_415_616  # Llama 2 7B


@pytest.mark.parametrize(("optimizer", "states"), [("sgd", 0), ("sgd-momentum", 1), ("adamw", 2)])
def test_states_are_as_the_parameters(optimizer, states):
    step = alive(snapshots(llama(), optimizer=optimizer), "step")
    assert step.get("optimizer_states", 0) == states * 2 * P


def test_8_bit_adam_keeps_embeddings_and_small_tensors_in_32_bits():
    # h = 64, i = 160, V = 1000, two layers. Of at least 4,096 elements: q and o (64 × 64) and the MLP's three
    # (64 × 160), in two 8-bit snapshots with an fp32 scale for each 256; k and v (32 × 64 = 2,048), the norms and the
    # embedding in 8 B. The head is no embedding: 64,000 elements are 250 blocks.
    quantized = 2 * (2 * 4096 + 3 * 10_240) + 64_000
    blocks = 2 * (2 * 16 + 3 * 40) + 250
    full = 2 * 2 * 2048 + 5 * 64 + 64_000
    states = alive(snapshots(small_llama(), optimizer="adamw-8bit"), "step")["optimizer_states"]
    assert states == 2 * (quantized + 4 * blocks) + 8 * full
