"""Configurations of axolotl."""

import pytest
from training_files import AXOLOTL_QLORA, ZERO_2, read, reason, workload_of


def test_axolotl_qlora():
    recipe = read(AXOLOTL_QLORA)
    found = recipe.workload
    assert (recipe.model, recipe.cards) == ("NousResearch/Meta-Llama-3-8B", None)
    assert (found.method, found.weights, found.compute) == ("qlora", "nf4-dq", "amp-bf16")
    assert (found.lora.rank, found.lora.targets, found.lora.dropout) == (32, "all-linear", 0.05)
    assert (found.micro_batch, found.gradient_accumulation, found.sequence_length) == (2, 4, 4096)
    assert (found.optimizer, found.attention) == ("paged-adamw-32bit", "flash")
    assert found.activation_checkpointing == "full"
    assert found.gradient_clipping
    assert [entry.key for entry in recipe.assumed] == ["bnb_4bit_use_double_quant", "max_grad_norm"]
    assert reason(recipe, "learning_rate") == "does not change memory"
    assert reason(recipe, "sample_packing") == "sequences are estimated at full length"


def test_axolotl_defaults_are_told():
    recipe = read({"base_model": "x"})
    assert recipe.workload.sequence_length == 512
    assert recipe.workload.weights == "bf16"
    assert {entry.key: entry.value for entry in recipe.assumed} == {
        "adapter": "none",
        "bf16": "auto",
        "micro_batch_size": "1",
        "sequence_len": "512",
        "gradient_accumulation_steps": "1",
        "optimizer": "adamw_torch_fused",
        "max_grad_norm": "1.0",
        "gradient_checkpointing": "false",
    }


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        ({"bf16": True}, ("amp-bf16", "bf16")),
        ({"bfloat16": True}, ("amp-bf16", "bf16")),
        ({"bf16": False, "bfloat16": True}, ("amp-bf16", "bf16")),
        ({"float16": True}, ("amp-bf16", "bf16")),
        ({"bf16": False, "float16": True}, ("fp16", "fp16")),
        ({"bf16": False}, ("fp32", "fp32")),
        ({"float32": True}, ("amp-bf16", "bf16")),
        ({"bf16": False, "float32": True}, ("fp32", "fp32")),
        ({"bf16": False, "tf32": True}, ("tf32", "fp32")),
    ],
)
def test_axolotl_precision(more, expected):
    found = workload_of({"base_model": "x"}, **more)
    assert (found.compute, found.weights) == expected


def test_axolotl_refuses_full_bf16_and_prefers_auto():
    recipe = read({"base_model": "x", "bf16": "full"})
    assert (recipe.workload.compute, recipe.workload.weights) == ("amp-bf16", "bf16")
    assert "axolotl refuses" in reason(recipe, "bf16")
    assert reason(read({"base_model": "x", "float32": True}), "float32") == "bf16 is auto unless it is set"


def test_axolotl_in_fp16_trains_adapters_only():
    found = workload_of({"base_model": "x", "adapter": "lora"}, fp16=True, bf16="auto")
    assert (found.compute, found.weights) == ("amp-fp16", "fp16")
    recipe = read({"base_model": "x", "fp16": True})
    assert recipe.workload.weights is None
    assert "parameters in fp16 cannot be trained in amp-fp16" in recipe.not_estimated[0].reason


def test_axolotl_adapters():
    base = {"base_model": "x", "adapter": "lora", "lora_r": "16", "lora_dropout": "5e-2"}
    found = workload_of(base, load_in_8bit=True, lora_target_modules=["q_proj"], peft_use_dora=True)
    assert (found.method, found.weights, found.lora.targets, found.lora.dora) == ("lora", "int8", ("q_proj",), True)
    assert (found.lora.rank, found.lora.dropout) == (16, 0.05)
    assert workload_of(base, load_in_4bit=True).method == "qlora"
    assert workload_of(base, peft_autocast_adapter_dtype=False).lora.adapter_dtype == "bf16"
    plain = read(AXOLOTL_QLORA, bnb_config_kwargs={"bnb_4bit_use_double_quant": False, "bnb_4bit_quant_type": "fp4"})
    assert plain.workload.weights == "nf4"
    assert "FP4" in reason(plain, "bnb_config_kwargs.bnb_4bit_quant_type")
    assert reason(read({"base_model": "x", "lora_r": 8}), "lora_r") == "no adapter is trained"


def test_axolotl_losses_kernels_and_attention():
    base = {"base_model": "x", "plugins": ["axolotl.integrations.liger.LigerPlugin"], "liger_rope": True}
    found = workload_of(base, liger_fused_linear_cross_entropy=True)
    assert (found.profile, found.loss) == ("liger", "fused-linear")
    assert workload_of(base).loss == "full-logits"
    cut = read({"base_model": "x", "plugins": "a.b.CutCrossEntropyPlugin, c.OtherPlugin", "cut_cross_entropy": True})
    assert cut.workload.loss == "fused-linear"
    assert "c.OtherPlugin" in reason(cut, "plugins")
    chunked = workload_of({"base_model": "x"}, chunked_cross_entropy=True, chunked_cross_entropy_num_chunks=4)
    assert (chunked.loss, chunked.loss_chunks) == ("chunked", 4)
    assert workload_of({"base_model": "x"}, eager_attention=True).attention == "eager"
    assert "xformers" in reason(read({"base_model": "x", "attn_implementation": "xformers"}), "attn_implementation")
    offload = read({"base_model": "x", "gradient_checkpointing": "offload"})
    assert offload.workload.activation_checkpointing == "full"
    assert offload.not_estimated[0].key == "gradient_checkpointing"


def test_axolotl_shares_by_fsdp_deepspeed_and_its_own_keys():
    found = workload_of(
        {"base_model": "x", "fsdp": ["full_shard", "auto_wrap", "offload"]},
        fsdp_config={"fsdp_sharding_strategy": "SHARD_GRAD_OP", "offload_params": True, "backward_prefetch": "PRE"},
        tensor_parallel_size=2,
        context_parallel_size=4,
    ).parallel
    assert (found.zero, found.reshard_after_forward, found.offload) == (3, False, "parameters")
    assert (found.tensor, found.context) == (2, 4)
    with_zero = workload_of({"base_model": "x"}, deepspeed=ZERO_2)
    assert (with_zero.parallel.zero, with_zero.parallel.offload) == (2, "optimizer")
    assert with_zero.profile == "deepspeed"
    assert "a configuration file" in reason(read({"base_model": "x", "deepspeed": "zero2.json"}), "deepspeed")


def test_axolotl_trains_named_parameters():
    found = workload_of({"base_model": "x"}, unfrozen_parameters=["^lm_head.weight$", r"model\.norm"])
    assert found.trainable == ("lm_head.weight", "model.norm")
    other = read({"base_model": "x", "unfrozen_parameters": ["layers.[0-9]+"]})
    assert other.workload.trainable == ()
    assert other.not_estimated[0].key == "unfrozen_parameters"
