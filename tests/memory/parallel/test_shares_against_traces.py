"""What one of several cards holds by the formulas, against traces of one rank of DDP and of FSDP2."""

from typing import Any

import pytest

pytest.importorskip("transformers")

from traced_families import FAMILIES, SHAPES, compare

from planner.workload.parallel import Parallel
from planner.workload.training import Training

# Notes of transformers on configurations that are made here, not published.
pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.sweep]

PEAK = 0.01
SHARDED = ("llama", "qwen3", "gpt2", "mixtral", "gemma3", "deepseek_v3", "bert", "t5", "gpt_neox", "phi3", "qwen3_moe")
WORLDS = (2, 8)
DECIDED_BY_LAYERS = ("llama", "qwen3", "gpt2", "mixtral", "bert", "phi3", "gpt_neox", "qwen3_moe")
"""So short that parameters and gradients of a layer decide, where they are gathered and reduced, not the loss."""


def steps() -> list[Any]:
    """Return the network, the cards, the shape, the format and the checkpoints of each step to compare."""
    cases = [(name, cards, "2x512", "bf16", "none") for name in SHARDED for cards in WORLDS]
    cases += [(name, cards, "2x512", "bf16", "full") for name in SHARDED if name != "t5" for cards in WORLDS]
    cases += [(name, cards, "2x512", "fp32", "none") for name in ("llama", "mixtral") for cards in WORLDS]
    cases += [(name, cards, "1x128", "bf16", "none") for name in DECIDED_BY_LAYERS for cards in WORLDS]
    quick = ("mixtral", 8, "1x128", "bf16", "none")
    return [pytest.param(*case, marks=() if case == quick else pytest.mark.oracle) for case in cases]


def step(shape: str, compute: str, checkpointing: str = "none", **parallel: Any) -> Training:
    sequences, length = SHAPES[shape]
    return Training(
        compute=compute,
        micro_batch=sequences,
        sequence_length=length,
        activation_checkpointing=checkpointing,
        parallel=Parallel(**parallel),
    )


@pytest.mark.parametrize(("family", "cards", "shape", "compute", "checkpointing"), steps())
def test_a_shard_peaks_as_predicted(family: str, cards: int, shape: str, compute: str, checkpointing: str) -> None:
    found = compare(FAMILIES[family], step(shape, compute, checkpointing, zero=3), cards)
    assert found.predicted_peak == pytest.approx(found.traced_peak, rel=PEAK)


@pytest.mark.oracle
@pytest.mark.parametrize("cards", WORLDS)
@pytest.mark.parametrize("family", SHARDED)
def test_a_replica_peaks_as_predicted(family: str, cards: int) -> None:
    found = compare(FAMILIES[family], step("2x512", "bf16"), cards)
    assert found.predicted_peak == pytest.approx(found.traced_peak, rel=PEAK)


@pytest.mark.oracle
@pytest.mark.parametrize("family", ["llama", "gpt2", "qwen3"])
def test_layers_that_stay_whole_peak_as_predicted(family: str) -> None:
    found = compare(FAMILIES[family], step("1x128", "bf16", zero=3, reshard_after_forward=False), 8)
    assert found.predicted_peak == pytest.approx(found.traced_peak, rel=PEAK)
