"""What layers keep where some of them is frozen, adapted, quantized or fused: rules that hold of every family."""

import pytest
from pydantic import ValidationError
from small_models import bundled, llama, small_llama
from traced_families import COMMON, FAMILIES

from planner.dtypes import AS_STORED
from planner.errors import SpecError
from planner.memory.estimate import estimate_memory
from planner.memory.training.adapters.layer import saved_by_tuned_layer
from planner.memory.training.adapters.settings import AdapterSettings, Formats, LayerSettings, norm_saved_bytes
from planner.memory.training.adapters.trained import LayerTuning, projection_indices
from planner.memory.training.autograd.layer import saved_by_layer
from planner.memory.training.fused import FusedKernels
from planner.memory.training.partial import dequantized_projection_terms, dora_workspace_terms
from planner.memory.weights import is_gguf, weights_term
from planner.models.layers import Norm
from planner.models.readers.config_json import read_config
from planner.workload.formats import formats_for
from planner.workload.training import Lora, Training

FORMATS = {
    "bf16": Formats(2, 2, 2, 2, autocast=False),
    "fp32": Formats(4, 4, 4, 4, autocast=False),
    "amp-bf16": Formats(4, 2, 2, 4, autocast=True),
}
NAMES = (
    "llama",
    "qwen3",
    "gemma3",
    "olmo2",
    "gpt2",
    "gpt_neox",
    "falcon",
    "phi",
    "cohere",
    "mixtral",
    "deepseek_v3",
    "qwen2_moe",
    "opt",
    "bert",
    "t5",
    "bart",
)
"""Families whose networks a configuration describes without the defaults of transformers."""
MAMBA = {
    "model_type": "mamba",
    "vocab_size": 1000,
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "state_size": 16,
    "conv_kernel": 4,
    "time_step_rank": 8,
}
VISION_LANGUAGE = "Qwen/Qwen2-VL-2B-Instruct"
LINEARS = ("q_proj", "v_proj", "query_key_value", "c_attn", "query", "value", "q", "v", "q_a_proj")
FORWARD = ("down_proj", "fc2", "dense_4h_to_h", "mlp.c_proj", "wo", "shared_expert.down_proj", "output.dense")


def network(name):
    family = FAMILIES[name]
    usual = {"model_type": family.model_type} | ({"num_experts_per_tok": 2} if name == "mixtral" else {})
    return read_config(COMMON | family.sizes | usual, family.model_type)


def layers(name):
    return [(group.layer, stack.hidden) for stack in network(name).stacks for group in stack.groups]


def needed(architecture, **how):
    return estimate_memory(architecture, Training.model_validate({"micro_batch": 2, "sequence_length": 128} | how))


def kept(result):
    """Return the activations at the end of the forward pass."""
    forward = next(phase for phase in result.phases if phase.name == "forward")
    return sum(share.bytes for share in forward.shares if share.name == "activations")


def own_targets(architecture, names):
    """Return those of `names` that a linear layer of the network has."""
    paths = [tensor.name for stack in architecture.stacks for group in stack.groups for tensor in group.layer.tensors]
    ends = [f".{path}".removesuffix(".weight") for path in paths]
    return tuple(name for name in names if any(end.endswith(f".{name}") for end in ends))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("compute", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_with_everything_trained_a_layer_keeps_what_plain_training_keeps(name, compute, attention):
    formats = FORMATS[compute]
    for layer, hidden in layers(name):
        trained = LayerTuning(("trained",) * len(layer.tensors))
        plain = saved_by_layer(layer, hidden, formats.precision, attention)
        assert saved_by_tuned_layer(layer, hidden, LayerSettings(formats, attention, None), trained) == plain


@pytest.mark.parametrize("compute", FORMATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_more_is_trained_the_more_is_kept(name, compute):
    settings = LayerSettings(FORMATS[compute], "sdpa", None)
    for layer, hidden in layers(name):
        count = len(layer.tensors)
        statuses = [("frozen",) * count, ("trained",) * count]
        sites = projection_indices(layer, hidden)
        part = tuple("trained" if place in sites.forward_out else "frozen" for place in range(count))
        norms = tuple("trained" if tensor.role == "norm" else "frozen" for tensor in layer.tensors)
        frozen, whole = (
            saved_by_tuned_layer(layer, hidden, settings, LayerTuning(each)).total(1, 64, 64) for each in statuses
        )
        for some in (part, norms):
            reached, alone = (
                saved_by_tuned_layer(layer, hidden, settings, LayerTuning(some, reached)).total(1, 64, 64)
                for reached in (True, False)
            )
            assert 0 <= alone <= reached
            assert frozen <= reached <= whole


@pytest.mark.parametrize(
    "how",
    [
        {"compute": "bf16"},
        {},
        {"weights": "fp32"},
        {"compute": "bf16", "lora": {"adapter_dtype": "bf16"}},
        {"activation_checkpointing": "full"},
    ],
    ids=str,
)
@pytest.mark.parametrize("name", NAMES)
def test_adapters_on_some_linears_keep_no_more_than_on_all(name, how):
    architecture = network(name)
    every = needed(architecture, method="lora", **how)
    for names in (LINEARS, FORWARD):
        targets = own_targets(architecture, names)
        if not targets:
            continue
        lora = Lora.model_validate(how.get("lora", {}) | {"targets": targets})
        some = needed(architecture, **how | {"method": "lora", "lora": lora})
        assert kept(some) <= kept(every)
        assert sum(term.bytes for term in some.terms) == some.total_bytes
    dropped = needed(architecture, **how | {"method": "lora", "lora": how.get("lora", {}) | {"dropout": 0.1}})
    assert kept(dropped) >= kept(every)


@pytest.mark.parametrize(
    "patterns", [("*norm*", "*ln_*", "*layer_norm*"), ("layers.3",), ("layers.0", "*embed*", "*wte*")]
)
@pytest.mark.parametrize("compute", ["bf16", "amp-bf16"])
@pytest.mark.parametrize("name", ["llama", "gpt2", "gpt_neox", "falcon", "qwen3"])
def test_frozen_parameters_have_neither_gradients_nor_states(name, compute, patterns):
    architecture = network(name)
    met = [pattern for pattern in patterns if _trains(architecture, pattern, compute)]
    part, whole = needed(architecture, compute=compute, trainable=tuple(met)), needed(architecture, compute=compute)
    for term in ("gradients", "optimizer_states"):
        held = [share.bytes for phase in part.phases for share in phase.shares if share.name == term]
        all_ = [share.bytes for phase in whole.phases for share in phase.shares if share.name == term]
        assert max(held) < max(all_)


def _trains(architecture, pattern, compute):
    try:
        needed(architecture, compute=compute, trainable=(pattern,))
    except SpecError:
        return False
    return True


def test_unsloth_fuses_what_transformers_does_step_by_step():
    # Norms keep their input alone, the gate two tensors, adapters nothing of their own inputs.
    common = {"method": "lora", "compute": "amp-bf16", "loss": "full-logits"}
    fused, plain = (needed(llama(), profile=profile, **common) for profile in ("unsloth", "hf"))
    assert kept(fused) < kept(plain)
    norm = Norm(kind="rms", native=False)
    settings = LayerSettings(FORMATS["bf16"], "sdpa", None, FusedKernels(norms=True))
    assert norm_saved_bytes(norm, 64, 2, settings, trained=True) == 2 * 64 + 4


def test_full_training_with_fused_kernels_keeps_less():
    for name in ("mixtral", "llama", "deepseek_v3"):
        fused, plain = (needed(network(name), profile=profile, loss="full-logits") for profile in ("liger", "hf"))
        assert kept(fused) <= kept(plain)
        assert fused.term("weights") == plain.term("weights")


def test_experts_computed_all_at_once_are_cast_under_autocast():
    layer, hidden = next((layer, hidden) for layer, hidden in layers("mixtral") if layer.feed_forward)
    every = layer.evolve(feed_forward=layer.feed_forward.evolve(every_expert=True))
    trained = LayerTuning(("trained",) * len(layer.tensors))
    amp = LayerSettings(FORMATS["amp-bf16"], "sdpa", None)
    assert saved_by_tuned_layer(every, hidden, amp, trained) == saved_by_layer(
        every, hidden, amp.formats.precision, "sdpa"
    )


def test_without_adapted_layers_nothing_is_multiplied_out():
    assert dora_workspace_terms((), 2, 2) == ()
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=True, converts=True)
    assert not adapters.shares_input(2)
    bare = small_llama()
    stack = bare.main
    group = stack.groups[0]
    tensors = tuple(tensor for tensor in group.layer.tensors if tensor.role != "linear")
    emptied = stack.evolve(groups=(group.evolve(layer=group.layer.evolve(tensors=tensors)),))
    assert dequantized_projection_terms(bare.evolve(stacks=(emptied,)), 2, "a source") == ()


def test_a_format_as_stored_is_a_gguf_file_if_the_checkpoint_is_one():
    assert not is_gguf(small_llama(), AS_STORED)
    assert is_gguf(small_llama(), "Q4_K_M")
    assert weights_term(small_llama(), "bf16").bytes == 2 * small_llama().parameters


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"lora": {}}, "adapters need the method lora or qlora"),
        ({"method": "lora", "trainable": ("*norm*",)}, "trains only its adapters"),
        ({"method": "qlora", "compute": "fp32"}, "cannot compute in fp32"),
        ({"method": "qlora", "profile": "litgpt"}, "choose bf16 or fp16"),
        ({"method": "lora", "weights": "int8", "compute": "bf16"}, "choose amp-bf16"),
        ({"weights": "nf4"}, "choose the method qlora"),
        ({"method": "qlora", "weights": "bf16"}, "keeps the base model in"),
        ({"weights": "bf16", "compute": "fp32"}, "cannot be trained"),
        ({"method": "lora", "compute": "amp-fp16", "lora": {"adapter_dtype": "bf16"}}, "keep them in fp32"),
        ({"optimizer": "muon", "optimizer_step": "fused"}, "has no fused step"),
        ({"checkpoint_every": 2}, "needs activation_checkpointing full"),
        ({"activation_checkpointing": "selective", "profile": "torchtune"}, "every k-th layer"),
        ({"activation_checkpointing": "selective", "method": "lora", "lora": {"dora": True}}, "DoRA"),
        ({"lora": {"targets": ()}, "method": "lora"}, "name at least one"),
    ],
    ids=str,
)
def test_what_cannot_be_trained_so_is_refused(how, said):
    with pytest.raises(ValidationError, match=said):
        Training.model_validate(how)


def test_targets_are_names_with_commas_or_all_linear():
    assert Lora.model_validate({"targets": "q_proj, v_proj"}).targets == ("q_proj", "v_proj")
    assert Lora.model_validate({"targets": ["all-linear"]}).targets == "all-linear"


def test_formats_go_with_the_method_the_arithmetic_and_the_trainer():
    assert formats_for("full", "amp-bf16") == ("fp32", "bf16")
    assert formats_for("qlora", "amp-bf16") == ("nf4", "nf4-dq")
    assert formats_for("qlora", "bf16") == ()
    assert formats_for("qlora", "bf16", "litgpt") == ("nf4", "nf4-dq")


@pytest.mark.parametrize("name", ["olmo2", "bert", "bart"])
def test_norms_behind_blocks_are_reached_from_the_first_layer_on(name):
    layer, hidden = layers(name)[0]
    assert layer.post_norms
    adapters = AdapterSettings(8, 4, 4, dropout=False, dora=False, converts=True)
    settings = LayerSettings(FORMATS["bf16"], "sdpa", adapters)
    adapted = tuple("adapted" if tensor.role == "linear" else "frozen" for tensor in layer.tensors)
    first, next_ = (
        saved_by_tuned_layer(layer, hidden, settings, LayerTuning(adapted, reached)) for reached in (False, True)
    )
    assert first.norms == next_.norms > 0
    out = projection_indices(layer, hidden).forward_out
    last = tuple("adapted" if place in out else "frozen" for place in range(len(adapted)))
    assert saved_by_tuned_layer(layer, hidden, settings, LayerTuning(last, False)).norms < first.norms


def test_networks_without_feed_forward_blocks_or_attention_are_adapted_too():
    mamba = read_config(MAMBA, "mamba")
    lora, full = (needed(mamba, method=method, compute="bf16") for method in ("lora", "full"))
    assert lora.total_bytes < full.total_bytes
    some = needed(mamba, method="lora", compute="bf16", lora={"targets": ("out_proj",)})
    assert kept(some) < kept(lora)


@pytest.mark.parametrize("name", ["llama", "gpt_neox", "deepseek_v3"])
def test_eager_attention_under_adapters_holds_the_scores_of_its_backward_pass(name):
    eager, fused = (
        needed(network(name), method="lora", attention=kind, sequence_length=1024) for kind in ("eager", "sdpa")
    )
    assert eager.total_bytes > fused.total_bytes


def test_what_stands_behind_the_layers_keeps_its_input_and_result():
    family = FAMILIES["bert"]
    common = COMMON | family.sizes | {"model_type": "bert"}
    masked, bare = (
        read_config(common | {"architectures": [kind]}, "bert") for kind in ("BertForMaskedLM", "BertModel")
    )
    assert kept(needed(masked, method="lora")) > kept(needed(bare, method="lora"))


def test_towers_of_vision_language_models_are_adapted_but_not_run():
    model = bundled().models.model(VISION_LANGUAGE)
    text = needed(model, method="lora", compute="bf16")
    assert kept(text) > 0
    assert text.term("adapters").bytes > 0


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"optimizer": "soap", "compute": "bf16"}, "SOAP"),
        ({"optimizer": "soap", "method": "lora", "compute": "bf16", "lora": {"adapter_dtype": "bf16"}}, "SOAP"),
        ({"method": "lora", "lora": {"targets": 5}}, "targets"),
    ],
    ids=str,
)
def test_formats_and_targets_that_do_not_go_are_refused(how, said):
    with pytest.raises(ValidationError, match=said):
        Training.model_validate(how)


def test_selective_checkpoints_go_with_adapters_and_megatron_has_its_own():
    whole, selective = (needed(llama(), method="lora", activation_checkpointing=kind) for kind in ("none", "selective"))
    assert kept(selective) < kept(whole)
    Training(optimizer="soap", compute="amp-bf16", method="lora")
