"""The operators of a traced run against those of the same run with real tensors, one by one."""

from contextlib import nullcontext

import pytest
import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from watched import config_target

from planner.trace.request import TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.call_sites import CallSites
from planner.trace.worker.fake_tensors.assumptions import Assumptions
from planner.trace.worker.fake_tensors.values import KnownValues
from planner.trace.worker.ledger import AllocationLedger, FlopCounter
from planner.trace.worker.observer import RunObserver
from planner.trace.worker.running import run

DECODER = {
    "num_hidden_layers": 2,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 100,
    "max_position_embeddings": 64,
    "sliding_window": 8,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
SEQUENCES = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "vocab_size": 100}
SEQUENCES |= {"decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_start_token_id": 1}
SEQUENCES |= {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TOWER = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
IMAGES = {"image_size": 16, "patch_size": 4}
T5 = {"d_model": 32, "d_ff": 48, "d_kv": 8, "num_heads": 4, "num_layers": 2, "vocab_size": 100}
NETWORKS = {
    "llama": DECODER,
    "gpt2": {"n_layer": 2, "n_embd": 32, "n_head": 4, "vocab_size": 100},
    "gemma3_text": DECODER | {"head_dim": 8},
    "mixtral": DECODER | {"num_local_experts": 4},
    "bert": DECODER,
    "t5": T5 | {"decoder_start_token_id": 0},
    "bart": SEQUENCES | {"max_position_embeddings": 64},
    "whisper": SEQUENCES | {"max_source_positions": 16, "max_target_positions": 64},
    "vit": TOWER | IMAGES,
    "swin": IMAGES | {"embed_dim": 16, "depths": [2, 2], "num_heads": [2, 4], "window_size": 2, "patch_size": 2},
    "clip": {
        "text_config": TOWER | {"vocab_size": 100, "max_position_embeddings": 20, "eos_token_id": 2},
        "vision_config": TOWER | IMAGES,
        "projection_dim": 16,
    },
    "mamba": {"hidden_size": 32, "num_hidden_layers": 2, "vocab_size": 100, "state_size": 8},
}
ANSWERING = ("llama", "gpt2", "gemma3_text", "mixtral", "t5", "bart", "whisper", "mamba")


class Operators(TorchDispatchMode):
    """Keeps the name of each operator, with the shapes of its results and the bytes of their storages."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        if func.namespace != "prim":
            made = [tensor for tensor in tree_leaves(result) if isinstance(tensor, torch.Tensor)]
            self.seen.append((str(func), [(tensor.shape, tensor.untyped_storage().nbytes()) for tensor in made]))
        return result


def operators(request, traced):
    ledger = AllocationLedger(KnownValues(Assumptions(lambda _: None)), CallSites(), FlopCounter(), lambda *_: 0)
    with ledger if traced else nullcontext():
        torch.manual_seed(0)
        built = build_run(request, RunObserver())
        with Operators() as found:
            run(built, request, RunObserver())
    return found.seen


def compare(request):
    real, traced = operators(request, traced=False), operators(request, traced=True)
    for place, (one, other) in enumerate(zip(real, traced, strict=False)):
        assert one == other, f"operator {place} of {len(real)}"
    assert len(real) == len(traced)


def request(family, **changes):
    target = config_target(family, **NETWORKS[family])
    return TraceRequest(target=target, **{"batch": 2, "sequence_length": 16, "device": "cpu", "steps": 2} | changes)


def test_a_training_step_of_a_decoder_runs_the_same_operators():
    compare(request("llama", task="training"))


@pytest.mark.oracle
@pytest.mark.parametrize("family", NETWORKS)
def test_a_training_step_runs_the_same_operators(family):
    compare(request(family, task="training", autocast="bf16"))


@pytest.mark.oracle
@pytest.mark.parametrize("changes", [{"checkpointing": "full"}, {"attention": "eager"}, {"dtype": "bf16"}])
def test_a_training_step_with_other_options_runs_the_same_operators(changes):
    compare(request("gemma3_text", task="training", **changes))


@pytest.mark.oracle
@pytest.mark.parametrize("family", ANSWERING)
def test_generation_runs_the_same_operators(family):
    compare(request(family, decode_tokens=2))
