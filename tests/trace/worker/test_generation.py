"""Networks of transformers: the class and the inputs that a configuration means, and answering with a cache."""

import json
import sys
import warnings

import pytest
import torch
from watched import Heard, config_target, file_target, heard_run

from planner.errors import TraceError
from planner.trace.request import Input, Target, TensorInput, TraceLora, TraceRequest
from planner.trace.worker.build import build_run
from planner.trace.worker.hugging_face import hide_fake_tensors

SMALL = {
    "num_hidden_layers": 2,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
    "max_position_embeddings": 32,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "pad_token_id": 0,
}
T5 = {"d_model": 16, "d_ff": 24, "d_kv": 4, "num_heads": 4, "num_layers": 2, "vocab_size": 50}
T5 |= {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 1}
WHISPER = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_attention_heads": 2, "vocab_size": 50}
WHISPER |= {"decoder_attention_heads": 2, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "max_source_positions": 8}
WHISPER |= {
    "max_target_positions": 16,
    "decoder_start_token_id": 1,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
VIT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
VIT |= {"image_size": 8, "patch_size": 4}
VIVIT = VIT | {"num_frames": 2, "tubelet_size": [2, 4, 4], "architectures": ["VivitForVideoClassification"]}
TOWER = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
CLIP = {"text_config": TOWER | {"vocab_size": 50, "max_position_embeddings": 9, "eos_token_id": 2}}
CLIP |= {"vision_config": TOWER | {"image_size": 8, "patch_size": 4}, "projection_dim": 8}
MAMBA = {"hidden_size": 16, "num_hidden_layers": 2, "vocab_size": 50, "state_size": 4}
FUNNEL = {"vocab_size": 50, "block_sizes": [1], "d_model": 16, "n_head": 2, "d_head": 8, "d_inner": 16}

XLM = {"emb_dim": 16, "n_layers": 1, "n_heads": 2, "vocab_size": 50, "max_position_embeddings": 32}

FAMILIES = {"llama": SMALL, "bert": SMALL, "t5": T5, "whisper": WHISPER, "vit": VIT, "clip": CLIP, "mamba": MAMBA}
FAMILIES |= {"xlm": XLM, "vivit": VIVIT}


def request(family, **changes):
    fields = FAMILIES[family] | changes.pop("fields", {})
    return TraceRequest(target=config_target(family, **fields), **{"batch": 2, "device": "cpu"} | changes)


@pytest.mark.parametrize(
    ("family", "kind", "shapes"),
    [
        ("llama", "LlamaForCausalLM", {"input_ids": (2, 5), "labels": (2, 5)}),
        ("bert", "BertForMaskedLM", {"input_ids": (2, 5), "labels": (2, 5)}),
        ("t5", "T5ForConditionalGeneration", {"input_ids": (2, 5), "labels": (2, 5)}),
        ("whisper", "WhisperForConditionalGeneration", {"input_features": (2, 80, 16), "labels": (2, 5)}),
        ("vit", "ViTForImageClassification", {"pixel_values": (2, 3, 8, 8), "labels": (2,)}),
        ("vivit", "VivitForVideoClassification", {"pixel_values": (2, 2, 3, 8, 8), "labels": (2,)}),
        ("clip", "CLIPModel", {"input_ids": (2, 5), "pixel_values": (2, 3, 8, 8), "return_loss": None}),
        ("mamba", "MambaForCausalLM", {"input_ids": (2, 5), "labels": (2, 5)}),
    ],
)
def test_a_configuration_means_a_class_and_its_inputs(family, kind, shapes):
    built = build_run(request(family, task="training", sequence_length=5), Heard())
    assert type(built.module).__name__ == kind
    assert {name: getattr(value, "shape", None) for name, value in built.inputs.items()} == shapes
    assert built.module.training
    assert not built.module.config.get_text_config().use_cache


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        ("LlamaForSequenceClassification", {"labels": (2,)}),
        ("LlamaForTokenClassification", {"labels": (2, 5)}),
        ("LlamaForQuestionAnswering", {"start_positions": (2,), "end_positions": (2,)}),
        ("LlamaModel", {}),
    ],
)
def test_the_class_that_a_configuration_names_is_taken(kind, labels):
    asked = request("llama", task="training", sequence_length=5, fields={"architectures": [kind]})
    built = build_run(asked, Heard())
    assert type(built.module).__name__ == kind
    assert {name: value.shape for name, value in built.inputs.items() if name != "input_ids"} == labels


@pytest.mark.parametrize(
    ("family", "changes", "length"),
    [
        ("llama", {}, 32),
        ("llama", {"decode_tokens": 4}, 28),
        ("llama", {"fields": {"max_position_embeddings": 10_000}}, 4_096),
        ("mamba", {}, 4_096),
        ("mamba", {"task": "training"}, 2_048),
        ("llama", {"task": "training", "sequence_length": 64}, 64),
    ],
)
def test_the_usual_length_is_that_of_workloads_or_the_most_that_the_network_takes(family, changes, length):
    assert build_run(request(family, **changes), Heard()).inputs["input_ids"].shape == (2, length)


WAVES = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
WAVES |= {"conv_dim": [8, 8], "conv_stride": [5, 2], "conv_kernel": [10, 3], "num_feat_extract_layers": 2}
WAVES |= {"num_conv_pos_embeddings": 4, "num_conv_pos_embedding_groups": 2}
CODEC = {"num_filters": 2, "hidden_size": 8, "codebook_dim": 8, "codebook_size": 8, "upsampling_ratios": [4, 4]}
PARAKEET = {"vocab_size": 20, "encoder_config": {"num_mel_bins": 20, "hidden_size": 16, "num_hidden_layers": 1}}
PARAKEET["encoder_config"] |= {"num_attention_heads": 2, "intermediate_size": 16, "subsampling_conv_channels": 4}
WAVES_BERT = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 16}
WAVES_BERT |= {"feature_projection_input_dim": 12, "vocab_size": 20}
RESNET = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}


@pytest.mark.parametrize(
    ("family", "fields", "shapes"),
    [
        ("hubert", WAVES, {"input_values": (2, 160_000)}),
        ("encodec", CODEC, {"input_values": (2, 1, 240_000)}),
        ("resnet", RESNET, {"pixel_values": (2, 3, 224, 224)}),
        ("parakeet_ctc", PARAKEET, {"input_features": (2, 1000, 20)}),
        ("wav2vec2-bert", WAVES_BERT, {"input_features": (2, 1000, 12)}),
    ],
)
def test_sound_and_images_of_no_stated_size_have_a_usual_one(family, fields, shapes):
    heard = Heard()
    asked = TraceRequest(target=config_target(family, **fields), batch=2, device="cpu")
    assert {name: value.shape for name, value in build_run(asked, heard).inputs.items()} == shapes
    assert any("--input" in note for note in heard.notes)


def shapes_of(family, architecture, **fields):
    """Return the shapes of the inputs of a network, and what was noted on them."""
    heard = Heard()
    target = config_target(family, architectures=[architecture], **fields)
    built = build_run(TraceRequest(target=target, batch=2, sequence_length=5, device="cpu"), heard)
    return {name: tuple(value.shape) for name, value in built.inputs.items()}, " ".join(heard.notes)


LLAVA = {"text_config": SMALL | {"model_type": "llama"}, "image_seq_length": 4}
LLAVA |= {"vision_config": TOWER | {"model_type": "clip_vision_model", "image_size": 8, "patch_size": 4}}
QUERIES = TOWER | {"vocab_size": 50, "encoder_hidden_size": 16}
BLIP2 = {"vision_config": TOWER | {"image_size": 8, "patch_size": 4}, "text_config": SMALL | {"model_type": "llama"}}
BLIP2 |= {"qformer_config": QUERIES, "num_query_tokens": 2}
PIX2STRUCT = {"vision_config": {"hidden_size": 16, "patch_embed_hidden_size": 12, "d_ff": 16, "d_kv": 8}}
PIX2STRUCT["vision_config"] |= {"num_hidden_layers": 1, "num_attention_heads": 2, "seq_len": 2048}
PIX2STRUCT |= {"text_config": {"hidden_size": 16, "d_kv": 8, "d_ff": 16, "num_layers": 1, "num_heads": 2}}
PIX2STRUCT["text_config"] |= {"vocab_size": 50}
HIERA = {"hidden_size": 12, "num_attention_heads": 1, "blocks_per_stage": [1, 1, 1, 1], "image_size": [64, 64]}
HIERA |= {"model_type": "sam2_hiera_det_model"}
HIERA |= {"embed_dim_per_stage": [12, 24, 48, 96], "num_attention_heads_per_stage": [1, 2, 4, 8]}
SAM2 = {"vision_config": {"model_type": "sam2_vision_model", "backbone_config": HIERA}}
SAM2["vision_config"] |= {"backbone_channel_list": [96, 48, 24, 12]}
SIGLIP2 = {"vision_config": TOWER | {"num_patches": 16, "patch_size": 4}, "text_config": TOWER | {"vocab_size": 50}}


def test_a_network_that_reads_text_alone_gets_no_image_and_says_so():
    shapes, notes = shapes_of("llava", "LlavaForConditionalGeneration", **LLAVA)
    assert shapes == {"input_ids": (2, 5)}
    assert "The network receives only text, no image." in notes


@pytest.mark.parametrize(
    ("family", "architecture", "fields", "shapes"),
    [
        (
            "instructblip",
            "InstructBlipForConditionalGeneration",
            BLIP2,
            {"pixel_values": (2, 3, 8, 8), "input_ids": (2, 5), "qformer_input_ids": (2, 32)},
        ),
        (
            "pix2struct",
            "Pix2StructForConditionalGeneration",
            PIX2STRUCT,
            {"flattened_patches": (2, 2048, 14), "decoder_input_ids": (2, 1)},
        ),
        ("sam2", "Sam2Model", SAM2, {"pixel_values": (2, 3, 64, 64)}),
        (
            "siglip2",
            "Siglip2ForImageClassification",
            SIGLIP2,
            {"pixel_values": (2, 16, 48), "spatial_shapes": (2, 2), "pixel_attention_mask": (2, 16)},
        ),
    ],
)
def test_images_have_the_form_that_the_network_reads(family, architecture, fields, shapes):
    assert shapes_of(family, architecture, **fields)[0] == shapes


def test_tokens_that_an_image_replaces_stand_before_the_text():
    shapes, _ = shapes_of("instructblip", "InstructBlipForConditionalGeneration", **BLIP2, image_token_index=49)
    assert shapes["input_ids"] == (2, BLIP2["num_query_tokens"] + 5)


def test_a_network_of_unknown_inputs_asks_for_them():
    sizes = {"num_input_channels": 1, "context_length": 8, "patch_length": 4, "d_model": 8, "num_attention_heads": 2}
    target = config_target("patchtst", architectures=["PatchTSTModel"], **sizes, num_hidden_layers=1, ffn_dim=8)
    with pytest.raises(TraceError, match="inputs of PatchTSTModel are not known") as error:
        build_run(TraceRequest(target=target, sequence_length=5, device="cpu"), Heard())
    assert "--input" in error.value.hint


def test_a_quantized_checkpoint_is_built_as_plain_and_the_notes_say_so():
    heard = Heard()
    built = build_run(request("llama", fields={"quantization_config": {"quant_method": "fp8"}}), heard)
    assert built.module.lm_head.weight.dtype is torch.float32
    assert any("The checkpoint is quantized" in note for note in heard.notes)


def test_the_decoder_alone_of_a_composite_network_is_built_from_its_part_on_text():
    fields = {"text_config": SMALL, "architectures": ["Gemma3ForCausalLM"]}
    target = config_target("gemma3", **fields)
    built = build_run(TraceRequest(target=target, sequence_length=5, device="cpu"), Heard())
    assert type(built.module).__name__ == "Gemma3ForCausalLM"
    assert built.module.config.hidden_size == 16


def test_a_network_with_learned_positions_takes_no_more_tokens():
    with pytest.raises(TraceError, match="learned positions for 32 tokens, not 40"):
        build_run(request("bert", sequence_length=40), Heard())


def test_roberta_counts_positions_after_padding():
    target = config_target("roberta", **SMALL)
    assert build_run(TraceRequest(target=target, device="cpu"), Heard()).inputs["input_ids"].shape == (1, 31)


def test_a_prompt_is_read_and_tokens_are_answered_with_the_cache():
    heard = heard_run(request("llama", sequence_length=5, decode_tokens=2))
    assert heard.phases == [("load", 0), ("prefill", 0), ("decode", 0), ("decode", 1)]
    # Keys and values of 2 layers, 2 sequences and 2 heads of 4 numbers of 4 bytes, told after 5, 6 and 7 tokens.
    assert heard.bytes["kv_cache"] == 2 * 2 * 2 * 2 * 4 * 4 * (5 + 6 + 7)


@pytest.mark.parametrize("family", ["t5", "whisper", "mamba"])
def test_other_caches_are_known_too(family):
    heard = heard_run(request(family, sequence_length=5, decode_tokens=2))
    assert [name for name, _ in heard.phases] == ["load", "prefill", "decode", "decode"]
    assert heard.bytes["kv_cache"] > 0


@pytest.mark.parametrize("name", ["cache", "past_key_values", "cache_params"])
def test_a_cache_is_handed_on_under_the_name_that_the_network_takes(tmp_path, name):
    source = "from types import SimpleNamespace\n"
    source += "from transformers import GenerationMixin, LlamaConfig, PreTrainedModel\n"
    source += "class Net(PreTrainedModel, GenerationMixin):\n"
    source += "    config_class = LlamaConfig\n"
    source += f"    def forward(self, input_ids, {name}=None, use_cache=None):\n"
    source += f"        kept = input_ids if {name} is None else torch.cat(({name}, input_ids), 1)\n"
    # Outputs answer to the names of other versions too, as those of transformers do.
    source += "        logits = torch.zeros(*input_ids.shape, 50)\n"
    source += "        return SimpleNamespace(cache=kept, past_key_values=kept, cache_params=kept, logits=logits)\n"
    source += "def net():\n"
    source += f"    return Net(LlamaConfig(**{SMALL!r}))\n"
    target = file_target(tmp_path, source, "net", f"own_{name}.py")
    heard = heard_run(TraceRequest(target=target, device="cpu", sequence_length=4, decode_tokens=2))
    assert heard.phases == [("load", 0), ("prefill", 0), ("decode", 0), ("decode", 1)]
    assert heard.bytes["kv_cache"] == 8 * (4 + 5 + 6)


def test_a_network_that_asks_for_the_position_of_a_token_is_told_it(tmp_path):
    source = "from types import SimpleNamespace\n"
    source += "from transformers import GenerationMixin, LlamaConfig, PreTrainedModel\n"
    source += "class Net(PreTrainedModel, GenerationMixin):\n"
    source += "    config_class = LlamaConfig\n"
    source += "    def forward(self, input_ids, cache=None, use_cache=None, cache_position=None):\n"
    source += "        kept = input_ids if cache is None else torch.cat((cache, input_ids), 1)\n"
    source += "        assert cache is None or cache_position.tolist() == [cache.shape[1]]\n"
    source += "        return SimpleNamespace(cache=kept, logits=torch.zeros(*input_ids.shape, 50))\n"
    source += "def net():\n"
    source += f"    return Net(LlamaConfig(**{SMALL!r}))\n"
    target = file_target(tmp_path, source, "net", "own_position.py")
    heard = heard_run(TraceRequest(target=target, device="cpu", sequence_length=4, decode_tokens=2))
    assert heard.bytes["kv_cache"] == 8 * (4 + 5 + 6)


@pytest.mark.parametrize("family", ["bert", "vit", "clip", "xlm"])
def test_encoders_answer_in_one_forward_pass(family):
    assert [name for name, _ in heard_run(request(family, sequence_length=5)).phases] == ["load", "forward"]


def test_tokens_are_refused_of_a_network_that_never_returns_its_cache():
    with pytest.raises(TraceError, match="only causal networks from transformers can generate"):
        heard_run(request("xlm", sequence_length=5, decode_tokens=1))


def test_a_causal_network_of_a_file_answers_if_tokens_are_asked(tmp_path):
    source = "from transformers import LlamaConfig, LlamaForCausalLM\n"
    source += f"def net():\n    return LlamaForCausalLM(LlamaConfig(**{SMALL!r}))\n"
    asked = TraceRequest(target=file_target(tmp_path, source, "net", "causal_net.py"), device="cpu", sequence_length=4)
    assert [name for name, _ in heard_run(asked).phases] == ["load", "forward"]
    assert [name for name, _ in heard_run(asked.evolve(decode_tokens=1)).phases] == ["load", "prefill", "decode"]
    by_place = (Input(value=TensorInput(shape=(1, 3), dtype="int64")),)
    assert heard_run(asked.evolve(decode_tokens=1, inputs=by_place)).bytes["inputs"] == 3 * 8


@pytest.mark.parametrize(
    ("changes", "dtype"),
    [
        ({}, torch.bfloat16),
        ({"dtype": "fp16"}, torch.float16),
        ({"autocast": "bf16"}, torch.float32),
    ],
)
def test_parameters_are_as_asked_else_as_configured_but_fp32_under_autocast(changes, dtype):
    asked = request("llama", sequence_length=5, fields={"dtype": "bfloat16"}, **changes)
    assert build_run(asked, Heard()).module.dtype is dtype


def test_attention_is_as_asked_or_as_the_network_has_it():
    assert build_run(request("llama", attention="eager"), Heard()).module.config._attn_implementation == "eager"
    heard = Heard()
    build_run(TraceRequest(target=config_target("funnel", **FUNNEL), device="cpu"), heard)
    assert any("no sdpa attention" in note for note in heard.notes)


def test_adapters_leave_the_output_head_alone():
    net = build_run(request("llama", task="training", sequence_length=5, lora=TraceLora(rank=2)), Heard()).module
    assert not hasattr(net.lm_head, "lora_A")
    assert net.model.layers[0].self_attn.q_proj.lora_A.weight.shape == (2, 16)


def test_adapters_go_on_the_linear_layers_of_gpt2_too():
    sizes = {"n_layer": 1, "n_embd": 16, "n_head": 2, "vocab_size": 50}
    asked = TraceRequest(target=config_target("gpt2", **sizes), task="training", lora=TraceLora(rank=2), device="cpu")
    net = build_run(asked.evolve(sequence_length=4), Heard()).module
    assert net.transformer.h[0].attn.c_attn.lora_B.weight.shape == (48, 2)


def test_checkpointing_is_switched_on_without_a_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        heard = heard_run(request("llama", task="training", sequence_length=5, checkpointing="full"))
    assert any(getattr(module, "gradient_checkpointing", False) for module in heard.named[""].modules())


def test_a_network_without_checkpointing_says_so():
    asked = TraceRequest(target=config_target("funnel", **FUNNEL), task="training", checkpointing="full", device="cpu")
    with pytest.raises(TraceError, match="does not support"):
        build_run(asked, Heard())


@pytest.mark.parametrize(
    ("config", "reason"),
    [
        ("{", "is not JSON"),
        ("[]", "has no model_type"),
        ('{"model_type": "own-kind", "auto_map": {}}', "does not support the model type 'own-kind'"),
        (
            json.dumps({"model_type": "llama"} | SMALL | {"num_attention_heads": 3}),
            "multiple of the number of attention",
        ),
        (json.dumps({"model_type": "llama"} | SMALL | {"hidden_act": "own"}), "LlamaForCausalLM"),
    ],
)
def test_configurations_that_mean_no_network_are_refused(config, reason):
    target = Target(kind="config", place="a-model", config=config)
    with pytest.raises(TraceError, match=reason):
        build_run(TraceRequest(target=target, device="cpu"), Heard())


def test_transformers_sees_no_difference_in_a_trace_and_sees_it_again_afterwards():
    from torch._subclasses.fake_tensor import FakeTensorMode
    from transformers.utils.import_utils import is_tracing

    with FakeTensorMode():
        fake = torch.zeros(2)
    with hide_fake_tensors():
        assert not is_tracing(fake)
    assert is_tracing(fake)


def test_nothing_is_kept_from_a_library_that_is_not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "transformers", raising=False)
    with hide_fake_tensors():
        assert "transformers" not in sys.modules


def test_a_step_of_a_persons_own_asks_for_its_inputs(tmp_path):
    source = "def step(network, inputs, optimizer): network(**inputs).logits.sum().backward()"
    step = file_target(tmp_path, source, "step", "own.py")
    asked = request("llama", task="training", step=f"{step.place}:step")
    with pytest.raises(TraceError, match="inputs the step takes") as error:
        heard_run(asked)
    assert "--input" in error.value.hint
    tokens = Input(name="input_ids", value=TensorInput(shape=(2, 5), dtype="int64"))
    assert "Inputs: input_ids 2×5 int64." in heard_run(asked.evolve(inputs=(tokens,))).notes
