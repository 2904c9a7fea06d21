"""Every way to train: what must hold of each, and what is known of some."""

from itertools import product

import pytest
from pydantic import ValidationError
from small_models import DEEPSEEK, GPT2, MIXTRAL, llama, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.memory.result import MemoryResult
from planner.models.architecture import Architecture
from planner.workload.optimizers import OPTIMIZERS
from planner.workload.training import Lora, Training

BERT = {"vocab_size": 3000, "hidden_size": 128, "num_hidden_layers": 2, "num_attention_heads": 4}
NETWORKS = {
    "llama": small_llama(),
    "tied": small_llama(tie_word_embeddings=True),
    "gpt2": other("gpt2", GPT2, n_layer=2),
    "mixtral": other("mixtral", MIXTRAL, num_hidden_layers=2),
    "deepseek": other("deepseek_v3", DEEPSEEK),
    "bert": other("bert", BERT, intermediate_size=256),
}
COMMON = {"micro_batch": 2, "sequence_length": 256}


def need(architecture: Architecture, **how: object) -> MemoryResult:
    return estimate_memory(architecture, Training.model_validate(COMMON | how))


def optimizer_steps() -> list[tuple[str, str]]:
    return [(name, step) for name, kind in OPTIMIZERS.items() for step in kind.steps]


def cases() -> list[dict[str, object]]:
    ways: list[dict[str, object]] = [{"optimizer": name, "optimizer_step": step} for name, step in optimizer_steps()]
    ways += [
        {"loss": loss, "profile": profile}
        for loss, profile in product(("full-logits", "chunked", "fused-linear"), ("hf", "liger", "unsloth"))
    ]
    ways += [{"profile": profile} for profile in ("torchtune", "megatron", "deepspeed")]
    ways += [
        {"activation_checkpointing": "full", "checkpoint_every": 2},
        {"gradient_accumulation": 4},
        {"gradient_clipping": True},
        {"trainable": ("*lm_head*", "*norm*")},
        {"trainable": ("*mlp*",), "activation_checkpointing": "full"},
        {"attention": "eager"},
    ]
    methods: list[dict[str, object]] = [
        {"method": "lora"},
        {"method": "lora", "lora": {"rank": 8, "targets": ("q_proj", "v_proj", "c_attn", "query")}},
        {"method": "lora", "lora": {"dropout": 0.1, "adapter_dtype": "bf16"}, "compute": "bf16"},
        {"method": "lora", "lora": {"dora": True}, "activation_checkpointing": "full"},
        {"method": "lora", "weights": "int8"},
        {"method": "qlora"},
        {"method": "qlora", "weights": "nf4-dq", "optimizer": "paged-adamw-8bit", "profile": "unsloth"},
    ]
    formats = [{"compute": compute} for compute in ("fp32", "bf16", "fp16", "amp-bf16", "amp-fp16")]
    return [*ways, *methods, *formats]


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("how", cases(), ids=str)
def test_terms_add_up_and_lie_within_their_bounds(name: str, how: dict[str, object]) -> None:
    try:
        result = need(NETWORKS[name], **how)
    except (SpecError, ValidationError):
        # Not every network takes every way; what is refused is told before anything is estimated.
        return
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert result.low_bytes <= result.total_bytes <= result.high_bytes
    for term in result.terms:
        assert 0 <= term.low_bytes <= term.bytes <= term.high_bytes
        assert term.formula
        assert term.source
    for phase in result.phases:
        assert sum(share.bytes for share in phase.shares) == phase.bytes


def test_adapters_need_less_than_all_parameters_and_nf4_less_than_both() -> None:
    network = llama()
    full, lora, qlora = (need(network, method=method) for method in ("full", "lora", "qlora"))
    assert full.total_bytes > lora.total_bytes > qlora.total_bytes


def test_double_quantization_is_not_the_default_and_saves() -> None:
    plain, double = need(llama(), method="qlora"), need(llama(), method="qlora", weights="nf4-dq")
    assert plain.term("weights").bytes > double.term("weights").bytes


def test_adapters_on_all_linears_keep_more_activations_than_full_training() -> None:
    kept = {}
    for method in ("full", "lora"):
        forward = next(
            phase for phase in need(llama(), method=method, compute="bf16").phases if phase.name == "forward"
        )
        kept[method] = sum(share.bytes for share in forward.shares if share.name == "activations")
    assert kept["lora"] > kept["full"]


def test_a_larger_rank_never_needs_less() -> None:
    totals = [need(llama(), method="lora", lora=Lora(rank=rank)).total_bytes for rank in (1, 8, 64, 256)]
    assert totals == sorted(totals)


def test_states_in_8_bits_are_a_quarter_of_those_in_32() -> None:
    wide, narrow = need(llama(), optimizer="adamw"), need(llama(), optimizer="adamw-8bit")
    assert 0.2 < narrow.term("optimizer_states").bytes / wide.term("optimizer_states").bytes < 0.35


def test_frozen_parameters_have_no_gradients_and_no_states() -> None:
    part, whole = need(llama(), trainable=("*lm_head*",)), need(llama())
    head = 32_000 * 4096
    assert part.term("optimizer_states").bytes == 8 * head
    assert whole.term("optimizer_states").bytes == 8 * llama().parameters
