"""Small configurations of every family beyond plain decoders, as the class of transformers that takes them and fields.

Each exercises the switches of its reader; `tests/golden/reader-counts.json` holds what transformers counts for it.
"""

from typing import NamedTuple

Changes = dict[str, object]


class Case(NamedTuple):
    """A network: its class, and what its configuration changes from the class's defaults."""

    name: str
    changes: Changes


TOKENS: Changes = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
BERT: Changes = {
    "num_hidden_layers": 2,
    "hidden_size": 64,
    "num_attention_heads": 4,
    "intermediate_size": 96,
    "vocab_size": 99,
    "pad_token_id": 1,
}
DISTILBERT: Changes = {"n_layers": 2, "dim": 64, "n_heads": 4, "hidden_dim": 96, "vocab_size": 99}
ALBERT: Changes = BERT | {"embedding_size": 128}
DEBERTA_V3: Changes = BERT | {
    "relative_attention": True,
    "position_buckets": 32,
    "norm_rel_ebd": "layer_norm",
    "pos_att_type": ["p2c", "c2p"],
    "position_biased_input": False,
}
T5: Changes = {
    "d_model": 64,
    "d_kv": 8,
    "d_ff": 96,
    "num_layers": 2,
    "num_decoder_layers": 3,
    "num_heads": 4,
    "vocab_size": 99,
}
GATED_T5: Changes = T5 | {"feed_forward_proj": "gated-gelu"}
BART: Changes = {
    "d_model": 64,
    "encoder_layers": 2,
    "decoder_layers": 3,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 8,
    "encoder_ffn_dim": 96,
    "decoder_ffn_dim": 160,
    "vocab_size": 60000,
}
VIT: Changes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4, "intermediate_size": 96}
DINO: Changes = {"num_hidden_layers": 2, "hidden_size": 64, "num_attention_heads": 4}

SMALL: Changes = TOKENS | {"hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 4}
ATTENTION: Changes = {"num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 96}
MAMBA: Changes = SMALL | {"state_size": 16}
MAMBA2: Changes = SMALL | {"num_heads": 8, "head_dim": 16, "n_groups": 2, "state_size": 32}
RWKV: Changes = {"hidden_size": 64, "vocab_size": 99, "num_hidden_layers": 4, "attention_hidden_size": 64}
SCAN: Changes = {"mamba_n_heads": 8, "mamba_d_head": 16, "mamba_n_groups": 2, "mamba_d_state": 16}
EXPERTS: Changes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}
SHARED: Changes = EXPERTS | {"shared_expert_intermediate_size": 40}
JAMBA: Changes = (
    SMALL | ATTENTION | {"num_hidden_layers": 6, "use_mamba_kernels": False, "num_experts": 4, "num_experts_per_tok": 2}
)
BAMBA: Changes = SMALL | ATTENTION | SCAN | {"attn_layer_indices": [1, 3]}
GRANITE: Changes = (
    SMALL
    | ATTENTION
    | SCAN
    | {
        "layer_types": ["mamba", "attention"] * 2,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "shared_intermediate_size": 40,
    }
)
FALCON_H1: Changes = SMALL | ATTENTION | SCAN | {"mamba_d_ssm": 128, "mamba_rms_norm": True}
NEMOTRON: Changes = (
    {key: value for key, value in SMALL.items() if key != "num_hidden_layers"}
    | ATTENTION
    | {
        "head_dim": 16,
        "layers_block_type": ["linear_attention", "moe", "full_attention", "mlp", "linear_attention"],
        "mamba_num_heads": 8,
        "mamba_head_dim": 16,
        "n_groups": 2,
        "ssm_state_size": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 32,
        "moe_shared_expert_intermediate_size": 48,
    }
)
DELTA: Changes = {
    "head_dim": 16,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 12,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
}
QWEN_HYBRID: Changes = SMALL | ATTENTION | DELTA
KIMI: Changes = SMALL | {
    "num_hidden_layers": 6,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "intermediate_size": 96,
    "num_experts": 4,
    "num_experts_per_token": 2,
    "moe_intermediate_size": 32,
    "linear_head_dim": 8,
    "linear_num_heads": 4,
    "kv_lora_rank": 16,
    "qk_rope_head_dim": 8,
    "qk_nope_head_dim": 8,
    "v_head_dim": 12,
}
GRIFFIN: Changes = SMALL | ATTENTION | {"lru_width": 64, "attention_window_size": 5}
LFM2: Changes = SMALL | ATTENTION | {"full_attn_idxs": [1, 3]}

TEXT: Changes = TOKENS | ATTENTION | {"hidden_size": 64, "num_hidden_layers": 2, "vocab_size": 300}
CLIP_TEXT: Changes = {key: value for key, value in TEXT.items() if key != "num_key_value_heads"} | {
    "max_position_embeddings": 77
}
LLAMA: Changes = TEXT | {"model_type": "llama", "head_dim": 16}
VISION: Changes = {"hidden_size": 32, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 80}
CLIP: Changes = VISION | {"model_type": "clip_vision_model", "image_size": 28, "patch_size": 14}
SIGLIP: Changes = VISION | {"model_type": "siglip_vision_model", "image_size": 28, "patch_size": 14}
IDEFICS: Changes = VISION | {"image_size": 28, "patch_size": 14}
PIXTRAL: Changes = VISION | {"model_type": "pixtral", "head_dim": 8}
INTERNVL: Changes = VISION | {"image_size": [28, 28]}
QWEN_VISION: Changes = {"depth": 3, "num_heads": 4}
QWEN3_VISION: Changes = QWEN_VISION | {"hidden_size": 32, "intermediate_size": 80, "out_hidden_size": 64}
MLLAMA: Changes = {
    "text_config": TEXT | {"cross_attention_layers": [1], "num_hidden_layers": 3},
    "vision_config": {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_global_layers": 2,
        "attention_heads": 4,
        "intermediate_size": 80,
        "image_size": 28,
        "intermediate_layers_indices": [0, 2],
        "vision_output_dim": 96,
    },
}
LLAVA: Changes = {"text_config": LLAMA, "vision_config": CLIP}
QWEN2_VL: Changes = {
    "text_config": TEXT,
    "vision_config": QWEN_VISION | {"embed_dim": 32, "hidden_size": 64},
    "tie_word_embeddings": True,
}


def _heads(family: str, heads: str, changes: Changes) -> tuple[Case, ...]:
    return tuple(Case(f"{family}{head}", changes) for head in heads.split())


ENCODERS: tuple[Case, ...] = (
    *_heads("Bert", "Model ForMaskedLM LMHeadModel ForPreTraining ForNextSentencePrediction", BERT),
    *_heads("Bert", "ForSequenceClassification ForTokenClassification ForQuestionAnswering ForMultipleChoice", BERT),
    *_heads("Roberta", "Model ForMaskedLM ForCausalLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("Roberta", "ForQuestionAnswering ForMultipleChoice", BERT),
    *_heads("XLMRoberta", "Model ForMaskedLM ForSequenceClassification", BERT),
    *_heads("Camembert", "Model ForMaskedLM ForSequenceClassification", BERT),
    *_heads("Electra", "Model ForMaskedLM ForPreTraining", BERT | {"embedding_size": 32}),
    *_heads("Electra", "ForSequenceClassification ForTokenClassification", BERT | {"embedding_size": 64}),
    *_heads("DistilBert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", DISTILBERT),
    *_heads("DistilBert", "ForQuestionAnswering ForMultipleChoice", DISTILBERT),
    *_heads("MPNet", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("Albert", "Model ForMaskedLM ForPreTraining ForSequenceClassification ForMultipleChoice", ALBERT),
    *_heads("DebertaV2", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("DebertaV2", "ForQuestionAnswering ForMultipleChoice", BERT),
    *_heads("ModernBert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("ModernBert", "ForQuestionAnswering ForMultipleChoice", BERT),
    *_heads("NomicBert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("JinaEmbeddingsV3", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    *_heads("EuroBert", "Model ForMaskedLM ForSequenceClassification ForTokenClassification", BERT),
    Case("EuroBertForMaskedLM", BERT | {"num_key_value_heads": 2, "mlp_bias": True, "tie_word_embeddings": True}),
    Case("BertForSequenceClassification", BERT | {"num_labels": 7}),
    Case("AlbertModel", ALBERT | {"num_hidden_layers": 1}),
    Case("DebertaV2ForMaskedLM", DEBERTA_V3),
    Case("DebertaV2ForMaskedLM", DEBERTA_V3 | {"share_att_key": True}),
    Case("DebertaV2ForMaskedLM", DEBERTA_V3 | {"position_buckets": -1, "conv_kernel_size": 3, "conv_act": "gelu"}),
    Case("DebertaV2ForMaskedLM", DEBERTA_V3 | {"position_buckets": -1, "max_relative_positions": 40}),
    Case("DebertaV2ForMaskedLM", DEBERTA_V3 | {"pos_att_type": "c2p"}),
    Case("DebertaV2ForMaskedLM", BERT | {"type_vocab_size": 2, "embedding_size": 32}),
    Case("DebertaV2ForMaskedLM", BERT | {"legacy": False}),
    Case("ModernBertForMaskedLM", BERT | {"norm_bias": True, "attention_bias": True, "mlp_bias": True}),
    Case("ModernBertForMaskedLM", BERT | {"classifier_bias": True, "decoder_bias": False}),
    Case("ModernBertForMaskedLM", BERT | {"global_attn_every_n_layers": 2, "num_hidden_layers": 5}),
    Case("ModernBertForMaskedLM", BERT | {"layer_types": ["sliding_attention", "full_attention"]}),
)
ENCODER_DECODERS: tuple[Case, ...] = (
    Case("T5ForConditionalGeneration", T5),
    Case("T5EncoderModel", T5),
    Case("MT5ForConditionalGeneration", GATED_T5),
    Case("MT5EncoderModel", GATED_T5),
    Case("UMT5ForConditionalGeneration", GATED_T5),
    Case("UMT5EncoderModel", GATED_T5),
    *_heads("Bart", "ForConditionalGeneration Model", BART),
    Case("BartForSequenceClassification", BART | {"num_labels": 3}),
    *_heads("MBart", "ForConditionalGeneration ForSequenceClassification", BART),
    Case("BlenderbotForConditionalGeneration", BART),
    Case("BlenderbotSmallForConditionalGeneration", BART),
    Case("M2M100ForConditionalGeneration", BART),
    Case("MarianMTModel", BART),
    Case("MarianMTModel", BART | {"decoder_vocab_size": 60500, "share_encoder_decoder_embeddings": False}),
    Case("PegasusForConditionalGeneration", BART),
    Case("WhisperForConditionalGeneration", BART),
    Case("WhisperForConditionalGeneration", BART | {"num_mel_bins": 128}),
)
VISION_ENCODERS: tuple[Case, ...] = (
    *_heads("ViT", "Model ForImageClassification", VIT),
    *_heads("DeiT", "ForImageClassification ForImageClassificationWithTeacher", VIT),
    *_heads("Vivit", "Model ForVideoClassification", VIT),
    *_heads("Dinov2", "Model ForImageClassification", DINO),
    Case("Dinov2WithRegistersForImageClassification", DINO),
    Case("DINOv3ViTModel", VIT | {"num_register_tokens": 4}),
    Case("DINOv3ViTModel", VIT | {"num_register_tokens": 4, "use_gated_mlp": True, "mlp_bias": False}),
    Case("DINOv3ViTBackbone", VIT | {"num_register_tokens": 4, "query_bias": False, "value_bias": False}),
    *_heads("Beit", "Model ForImageClassification", VIT),
    Case("ViTForImageClassification", VIT | {"qkv_bias": False, "image_size": [64, 96], "num_labels": 10}),
    Case("Dinov2Model", DINO | {"use_swiglu_ffn": True, "use_mask_token": False}),
    Case("BeitForImageClassification", VIT | {"use_relative_position_bias": True, "use_mean_pooling": False}),
    Case("BeitModel", VIT | {"use_shared_relative_position_bias": True, "layer_scale_init_value": 0.0}),
    Case("BeitModel", VIT | {"use_absolute_position_embeddings": True, "use_mask_token": True}),
)
STATES: tuple[Case, ...] = (
    Case("MambaForCausalLM", MAMBA),
    Case("FalconMambaForCausalLM", MAMBA | {"use_bias": True}),
    Case("Mamba2ForCausalLM", MAMBA2),
    Case("RwkvForCausalLM", RWKV),
    Case("JambaForCausalLM", JAMBA),
    Case("BambaForCausalLM", BAMBA),
    Case("GraniteMoeHybridForCausalLM", GRANITE),
    Case("FalconH1ForCausalLM", FALCON_H1),
    Case("NemotronHForCausalLM", NEMOTRON),
    Case("Qwen3NextForCausalLM", QWEN_HYBRID | SHARED),
    Case("Qwen3_5ForCausalLM", QWEN_HYBRID),
    Case("Qwen3_5MoeForCausalLM", QWEN_HYBRID | SHARED),
    Case("KimiLinearForCausalLM", KIMI),
    Case("RecurrentGemmaForCausalLM", GRIFFIN),
    Case("Lfm2ForCausalLM", LFM2),
)
STATE_SWITCHES: tuple[Case, ...] = (
    Case("JambaForCausalLM", JAMBA | {"num_experts": 1, "num_experts_per_tok": 1, "mamba_dt_rank": "auto"}),
    Case("BambaForCausalLM", BAMBA | {"mamba_proj_bias": True, "attention_bias": True, "mlp_bias": True}),
    Case("BambaForCausalLM", BAMBA | {"mamba_d_head": "auto"}),
    Case("GraniteMoeHybridForCausalLM", GRANITE | {"num_local_experts": 0, "position_embedding_type": "rope"}),
    Case("FalconH1ForCausalLM", FALCON_H1 | {"projectors_bias": True, "mamba_proj_bias": True}),
    Case("FalconH1ForCausalLM", FALCON_H1 | {"mamba_rms_norm": False}),
    Case("NemotronHForCausalLM", NEMOTRON | {"moe_latent_size": 24, "mlp_bias": True, "use_bias": True}),
    Case("Qwen3NextForCausalLM", QWEN_HYBRID | SHARED | {"mlp_only_layers": [1], "attention_bias": True}),
    Case("Qwen3NextForCausalLM", QWEN_HYBRID | SHARED | {"full_attention_interval": 2}),
    Case("KimiLinearForCausalLM", KIMI | {"first_k_dense_replace": 3}),
    Case("Lfm2ForCausalLM", LFM2 | {"conv_bias": True, "block_ffn_dim_multiplier": 1.5, "block_multiple_of": 32}),
    Case("Lfm2ForCausalLM", LFM2 | {"block_auto_adjust_ff_dim": False, "tie_word_embeddings": False}),
)
VISION_LANGUAGE: tuple[Case, ...] = (
    Case("CLIPModel", {"text_config": CLIP_TEXT, "vision_config": CLIP}),
    *_heads("CLIP", "VisionModel VisionModelWithProjection", CLIP),
    *_heads("CLIP", "TextModel TextModelWithProjection", CLIP_TEXT),
    Case("SiglipModel", {"text_config": CLIP_TEXT, "vision_config": SIGLIP}),
    Case("SiglipVisionModel", SIGLIP | {"vision_use_head": False}),
    Case("LlavaForConditionalGeneration", LLAVA),
    Case("LlavaForConditionalGeneration", LLAVA | {"vision_feature_layer": [-2, -1]}),
    Case("LlavaForConditionalGeneration", LLAVA | {"multimodal_projector_bias": False, "vision_config": PIXTRAL}),
    Case("LlavaNextForConditionalGeneration", LLAVA | {"vision_config": SIGLIP}),
    Case(
        "PaliGemmaForConditionalGeneration",
        {"text_config": TEXT | {"model_type": "gemma"}, "vision_config": SIGLIP, "projection_dim": 64},
    ),
    Case("Gemma3ForConditionalGeneration", {"text_config": TEXT, "vision_config": SIGLIP}),
    Case("Idefics3ForConditionalGeneration", {"text_config": LLAMA, "vision_config": IDEFICS}),
    Case(
        "SmolVLMForConditionalGeneration",
        {"text_config": LLAMA, "vision_config": IDEFICS, "tie_word_embeddings": True},
    ),
    Case(
        "InternVLForConditionalGeneration",
        {"text_config": TEXT | {"model_type": "qwen2"}, "vision_config": INTERNVL},
    ),
    Case(
        "InternVLForConditionalGeneration",
        {
            "text_config": TEXT | {"model_type": "qwen3", "head_dim": 16},
            "vision_config": INTERNVL
            | {
                "use_qk_norm": True,
                "norm_type": "rms_norm",
                "attention_bias": True,
                "use_mean_pooling": False,
                "use_absolute_position_embeddings": False,
                "use_mask_token": True,
            },
        },
    ),
    Case(
        "Mistral3ForConditionalGeneration",
        {"text_config": TEXT | {"model_type": "mistral", "head_dim": 16}, "vision_config": PIXTRAL},
    ),
    Case(
        "Mistral3ForConditionalGeneration",
        {
            "text_config": TEXT | {"model_type": "mistral", "head_dim": 16},
            "vision_config": PIXTRAL,
            "multimodal_projector_bias": True,
            "tie_word_embeddings": False,
        },
    ),
    Case(
        "Llama4ForConditionalGeneration",
        {
            "text_config": TEXT | {"head_dim": 16, "intermediate_size_mlp": 160, "num_local_experts": 4},
            "vision_config": VISION | {"image_size": 28},
        },
    ),
    Case("MllamaForConditionalGeneration", MLLAMA),
    Case("Qwen2VLForConditionalGeneration", QWEN2_VL),
    Case(
        "Qwen2_5_VLForConditionalGeneration",
        {"text_config": TEXT, "vision_config": QWEN3_VISION | {"fullatt_block_indexes": [1]}},
    ),
    Case(
        "Qwen3VLForConditionalGeneration",
        {"text_config": TEXT, "vision_config": QWEN3_VISION | {"deepstack_visual_indexes": [0, 2]}},
    ),
    Case("Qwen3VLMoeForConditionalGeneration", {"text_config": TEXT | EXPERTS, "vision_config": QWEN3_VISION}),
    Case("Qwen3_5ForConditionalGeneration", {"text_config": TEXT | DELTA, "vision_config": QWEN3_VISION}),
    Case(
        "Qwen3_5MoeForConditionalGeneration",
        {"text_config": TEXT | DELTA | SHARED, "vision_config": QWEN3_VISION},
    ),
)

ALL: tuple[Case, ...] = (
    *ENCODERS,
    *ENCODER_DECODERS,
    *VISION_ENCODERS,
    *STATES,
    *STATE_SWITCHES,
    *VISION_LANGUAGE,
)


def identity(case: Case) -> str:
    """Return the name of a case: its class, with a number where it comes more than once."""
    same = [other for other in ALL if other.name == case.name]
    return case.name if len(same) == 1 else f"{case.name}-{same.index(case)}"


IDENTITIES: tuple[str, ...] = tuple(identity(case) for case in ALL)
