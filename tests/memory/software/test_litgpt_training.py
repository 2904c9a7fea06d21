"""Training with LitGPT, a program of its own beside its generation: its steps, with the arithmetic."""

import pytest
from small_models import DEEPSEEK, GPT2, other, small_llama

from planner.errors import SpecError
from planner.memory.estimate import estimate_memory, fullest_timeline
from planner.memory.software import serving_memory, training_memory
from planner.memory.software.litgpt_training import TRAINING, StepOutputs, litgpt_loss_memory
from planner.workload.defaults import with_defaults
from planner.workload.training import Lora, Training


def test_it_trains_with_modules_of_its_own():
    assert training_memory("litgpt") is TRAINING
    assert serving_memory("litgpt", small_llama()) is not TRAINING
    result = estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16", sequence_length=256))
    assert any("LitGPT" in note for note in result.notes)


def step(architecture, **how):
    asked = Training.model_validate(
        {"profile": "litgpt", "compute": "bf16", "micro_batch": 2, "sequence_length": 256} | how
    )
    return fullest_timeline(architecture, with_defaults(asked, architecture, 1))


def of(snapshots, name, term):
    return max(sum(t.bytes for t in m.terms if t.name == term) for m in snapshots.snapshots if m.name == name)


def test_logits_are_fp32_and_the_step_before_still_names_its_own():
    losses = litgpt_loss_memory(StepOutputs(1024, 2, 1000, 2))
    every = 1024 * 1000
    assert losses.forward.bytes == 10 * every
    assert losses.loss.bytes == 8 * every + 8 * 256 * 1000
    assert (losses.head.bytes, losses.layers.bytes) == (6 * every, 4 * every)
    whole = litgpt_loss_memory(StepOutputs(1024, 2, 1000, 2, whole=True))
    assert whole.loss.bytes == 12 * every + 8 * 128 * 1000
    assert litgpt_loss_memory(StepOutputs(1024, 2, 1000, 4)).forward.bytes == 8 * every


def test_the_head_computes_a_sequence_in_chunks_of_128_tokens_or_at_once():
    chunks = [StepOutputs(2 * tokens, 2, 1000, 2).chunks for tokens in (128, 129, 512)]
    assert chunks == [1, 2, 4]
    assert StepOutputs(1024, 2, 1000, 2, whole=True).chunks == 1


def test_softcapped_logits_keep_the_output_of_tanh():
    every = 1024 * 1000
    plain, capped = (litgpt_loss_memory(StepOutputs(1024, 2, 1000, 2, softcapped=one)) for one in (False, True))
    kept = [getattr(capped, name).bytes - getattr(plain, name).bytes for name in ("forward", "loss", "head", "layers")]
    assert kept == [2 * every, 2 * every, 2 * every, 0]


def test_all_parameters_of_a_tied_network_are_trained_with_a_head_of_their_own():
    tied, apart = (of(step(small_llama(tie_word_embeddings=tie)), "step", "gradients") for tie in (True, False))
    assert tied == apart


@pytest.mark.parametrize("how", [{}, {"method": "lora"}, {"method": "qlora"}], ids=str)
def test_a_step_is_told_in_terms(how):
    result = estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16", sequence_length=256, **how))
    assert sum(term.bytes for term in result.terms) == result.total_bytes
    assert any("LitGPT" in note for note in result.notes)


def test_quantized_steps_hold_the_inputs_of_the_step_before_until_their_loss():
    snapshots = step(small_llama(), method="qlora", lora=Lora(dropout=0.1))
    held = {name: of(snapshots, name, "buffers") for name in ("load", "forward", "loss", "backward")}
    assert held["load"] == 0
    assert held["forward"] == held["loss"] == 2 * held["backward"] > 0
    model = small_llama()
    assert of(snapshots, "forward", "temporaries") == 4 * model.vocabulary * model.hidden
    plain = step(small_llama(), method="qlora", lora=Lora(targets=("head",)))
    assert of(plain, "loss", "activations") < of(snapshots, "loss", "activations")


@pytest.mark.parametrize("dropout", [0, 0.1])
def test_only_an_adapted_head_keeps_its_input(dropout):
    targets = (("query",), ("query", "head"))
    without, adapted = (
        of(
            step(small_llama(), method="lora", lora=Lora(targets=names, rank=8, dropout=dropout)),
            "forward",
            "activations",
        )
        for names in targets
    )
    # 512 tokens of width 64 and the adapter's 8 numbers, each in 16 bits, with a byte of dropout's mask each.
    assert adapted - without == 512 * (2 * (64 + 8) + (64 if dropout else 0))


def test_autocast_makes_a_copy_of_a_frozen_head_for_each_part_and_one_of_a_trained_head():
    model = small_llama()
    frozen, trained = (
        of(step(model, compute="amp-bf16", weights="fp32", **how), "loss", "temporaries")
        for how in ({"method": "lora"}, {})
    )
    head = 2 * model.vocabulary * model.hidden
    assert frozen > trained
    parts = 256 // 128
    assert frozen > parts * head


@pytest.mark.parametrize(
    ("architecture", "how", "field"),
    [
        (other("deepseek_v3", DEEPSEEK), {}, "profile"),
        (small_llama(), {"trainable": ("*norm*",)}, "trainable"),
        (small_llama(), {"activation_checkpointing": "full"}, "activation_checkpointing"),
        (small_llama(), {"method": "lora", "weights": "int8", "compute": "bf16"}, "weights"),
        (small_llama(), {"attention": "eager"}, "attention"),
        (small_llama(), {"loss": "fused-linear"}, "loss"),
        (small_llama(), {"method": "lora", "lora": {"dora": True}}, "lora.dora"),
        (other("gpt2", GPT2), {"method": "lora", "lora": {"targets": ("c_attn",)}}, "lora.targets"),
    ],
    ids=["network", "pattern", "checkpoints", "int8", "eager", "loss", "dora", "target"],
)
def test_what_litgpt_does_not_do_is_refused(architecture, how, field):
    with pytest.raises(SpecError) as raised:
        step(architecture, **how)
    assert raised.value.field == field


def test_several_cards_are_refused():
    with pytest.raises(SpecError, match="several GPUs"):
        estimate_memory(small_llama(), Training(profile="litgpt", compute="bf16"), count=2)
