"""The models that are run: by library, with the options of each run."""

from pathlib import Path
from typing import Any, Final

from nets.catalogue import Case

from planner.trace.request import Argument, Target, TraceRequest

_HERE: Final = Path(__file__).resolve().parent
LIBRARIES: Final = (
    "timm",
    "torchvision",
    "transformers",
    "diffusers",
    "MONAI",
    "segmentation-models",
    "x-transformers",
    "torch-geometric",
)

_FILES: Final = {"MONAI": "monai", "segmentation-models": "segmentation", "torch-geometric": "graph"}
_INFERENCE: Final = {"task": "inference"}
_BF16: Final = {"autocast": "bf16"}
_SGD: Final = {"optimizer": "SGD", "optimizer_arguments": {"momentum": 0.9}}
_CLASSES: Final = {"loss": "cross_entropy"}


def _arguments(values: dict[str, Any]) -> tuple[Argument, ...]:
    return tuple(Argument(name=name, value=value) for name, value in values.items())


def _run(library: str, function: str, name: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    """Return the `run` of the model that a function of the library's file makes with `options`."""
    file = _FILES.get(library, library.replace("-", "_"))
    fields = {"task": "training", "device": "cpu"} | (run or {})
    if "optimizer_arguments" in fields:
        fields["optimizer_arguments"] = _arguments(fields["optimizer_arguments"])
    target = Target(kind="file", place=str(_HERE / f"{file}_models.py"), name=function)
    return Case(f"{library}: {name}", TraceRequest(target=target, arguments=_arguments(options), **fields))


def _timm(name: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    return _run("timm", "classifier", name, run, name=name, **options)


def _torchvision(function: str, name: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    return _run("torchvision", function, name, run, name=name, **options)


def _transformers(function: str, name: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    return _run("transformers", function, name, run, architecture=name, **options)


def _diffusers(function: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    return _run("diffusers", function, function, run, **options)


def _monai(function: str, name: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    dimensions = 3 if function == "volumes" else 2
    title = f"{name} {dimensions}-D"
    return _run("MONAI", function, title, run, name=name, **options)


def _segmentation(decoder: str, encoder: str, run: dict[str, Any] | None = None, /, **options: Any) -> Case:
    fields = _CLASSES | (run or {})
    return _run("segmentation-models", "segmentation", f"{decoder} {encoder}", fields, decoder=decoder,
                encoder=encoder, **options)  # fmt: skip


def _graph(kind: str, **options: Any) -> Case:
    return _run("torch-geometric", "two_layers", kind, _CLASSES, kind=kind, **options)


_SMALL: Final = {"n_embd": 128, "n_layer": 3, "n_head": 4}
_EXPERTS: Final = {"moe_intermediate_size": 256, "num_experts": 4, "num_experts_per_tok": 2}
_NEAR: Final = {"num_key_value_heads": 2}
_NET_2D: Final = {"spatial_dims": 2, "in_channels": 1, "out_channels": 2}
_NET_3D: Final = {"spatial_dims": 3, "in_channels": 1, "out_channels": 2}
_STEPS: Final = {"channels": (8, 16, 32), "strides": (2, 2)}

CASES: Final[tuple[Case, ...]] = (
    _timm("resnet18", _SGD),
    _timm("seresnet50", {"dtype": "bf16"} | _INFERENCE, batch=2),
    _timm("resnest14d"),
    _timm("regnety_002", _SGD),
    _timm("efficientnet_b0"),
    _timm("tf_efficientnetv2_b0"),
    _timm("mobilenetv3_small_100"),
    _timm("mobilenetv4_conv_small", _INFERENCE),
    _timm("ghostnet_100"),
    _timm("dla34"),
    _timm("repvgg_a0"),
    _timm("nf_regnet_b0"),
    _timm("botnet26t_256", size=256, batch=1),
    _timm("convnext_atto", _BF16),
    _timm("convnextv2_atto"),
    _timm("vit_tiny_patch16_224", size=224),
    _timm("vit_tiny_patch16_224", _BF16, size=96, fixed_size=False),
    _timm("deit_tiny_distilled_patch16_224", size=224, batch=2),
    _timm("eva02_tiny_patch14_224", size=224, batch=2),
    _timm("swin_tiny_patch4_window7_224", size=224, batch=1),
    _timm("cait_xxs24_224", size=224, batch=1),
    _timm("xcit_nano_12_p16_224", size=224, batch=2),
    _timm("mixer_s32_224", size=224),
    _timm("poolformer_s12", size=128, batch=2),
    _timm("pvt_v2_b0", size=96, batch=2),
    _timm("levit_128s", size=224, batch=2),
    _timm("mobilevit_xxs", size=96, batch=2),
    _timm("fastvit_t8", size=96, batch=2),
    _torchvision("classifier", "alexnet", _SGD, size=128),
    _torchvision("classifier", "resnet50", _SGD, size=64),
    _torchvision("classifier", "squeezenet1_1"),
    _torchvision("classifier", "mobilenet_v2", _SGD),
    _torchvision("classifier", "vit_b_32", _INFERENCE, image_size=96, size=96),
    _torchvision("segmentation", "fcn_resnet50", _CLASSES | _SGD, size=64),
    _torchvision("segmentation", "deeplabv3_mobilenet_v3_large", _CLASSES),
    _torchvision("segmentation", "lraspp_mobilenet_v3_large", _CLASSES),
    _torchvision("video", "r3d_18", _SGD, frames=4),
    _torchvision("video", "mc3_18", _INFERENCE, frames=4),
    _run("torchvision", "raft", "raft_small", _INFERENCE),
    _transformers("encoder", "BertForMaskedLM"),
    _transformers("encoder", "RobertaForSequenceClassification", labels="sequence"),
    _transformers("text", "DistilBertForQuestionAnswering", labels="span", dim=128, n_layers=3, n_heads=4,
                  hidden_dim=512),
    _transformers("encoder", "AlbertForMaskedLM", embedding_size=64),
    _transformers("encoder", "ElectraForPreTraining", embedding_size=64, labels="none"),
    _transformers("encoder", "DebertaV2ForMaskedLM", relative_attention=True, pos_att_type=("p2c", "c2p")),
    _transformers("text", "XLNetLMHeadModel", d_model=128, n_layer=3, n_head=4, d_inner=512),
    _transformers("encoder", "LongformerForMaskedLM", attention_window=32),
    _transformers("encoder", "RoFormerForMaskedLM", embedding_size=128),
    _transformers("encoder", "ModernBertForMaskedLM"),
    _transformers("text", "GPT2LMHeadModel", _BF16, **_SMALL),
    _transformers("text", "GPTNeoForCausalLM", hidden_size=128, num_layers=2, num_heads=4,
                  attention_layers=("global", "local")),
    _transformers("text", "GPTJForCausalLM", **_SMALL, rotary_dim=16),
    _transformers("encoder", "GPTNeoXForCausalLM"),
    _transformers("encoder", "OPTForCausalLM", ffn_dim=512, word_embed_proj_dim=128),
    _transformers("text", "BloomForCausalLM", hidden_size=128, n_layer=3, n_head=4),
    _transformers("encoder", "LlamaForCausalLM", _BF16, **_NEAR),
    _transformers("encoder", "MistralForCausalLM", {"dtype": "bf16"} | _INFERENCE, **_NEAR),
    _transformers("encoder", "Qwen2ForCausalLM", {"lora": {"rank": 8}}, **_NEAR),
    _transformers("encoder", "Gemma2ForCausalLM", **_NEAR, head_dim=32),
    _transformers("encoder", "PhiForCausalLM"),
    _transformers("encoder", "FalconForCausalLM"),
    _transformers("encoder", "Olmo2ForCausalLM", {"checkpointing": "full"}),
    _transformers("encoder", "MixtralForCausalLM", **_NEAR, num_local_experts=4),
    _transformers("encoder", "Qwen3MoeForCausalLM", **_NEAR, **_EXPERTS, head_dim=32),
    _transformers("encoder", "MambaForCausalLM", batch=2, length=24),
    _transformers("encoder_decoder", "BartForConditionalGeneration"),
    _transformers("encoder_decoder", "PegasusForConditionalGeneration"),
    _transformers("encoder_decoder", "T5ForConditionalGeneration", d_ff=512, d_kv=32, num_layers=2, num_heads=4),
    _transformers("vision", "ViTForImageClassification"),
    _transformers("vision", "DeiTForImageClassification"),
    _transformers("vision", "BeitForImageClassification"),
    _transformers("vision", "Dinov2ForImageClassification"),
    _transformers("vision", "ViTMAEForPreTraining", labels=False, decoder_hidden_size=64, decoder_num_hidden_layers=2,
                  decoder_num_attention_heads=4, decoder_intermediate_size=128),
    _transformers("image", "SwinForImageClassification", size=112, embed_dim=48, depths=(2, 2, 2), num_heads=(2, 4, 8)),
    _transformers("image", "ConvNextForImageClassification", hidden_sizes=(32, 64, 96, 128), depths=(1, 1, 2, 1)),
    _transformers("image", "ResNetForImageClassification", embedding_size=32, hidden_sizes=(32, 64, 96, 128),
                  depths=(1, 1, 2, 1)),
    _run("transformers", "segformer", "SegformerForSemanticSegmentation"),
    _transformers("sound", "Wav2Vec2ForCTC"),
    _transformers("sound", "HubertModel", {"loss": "mean"}, labels=False),
    _run("transformers", "sound_classifier", "ASTForAudioClassification"),
    _run("transformers", "whisper", "WhisperForConditionalGeneration"),
    _transformers("contrastive", "CLIPModel"),
    _transformers("contrastive", "SiglipModel"),
    _run("transformers", "blip", "BlipForConditionalGeneration"),
    _run("transformers", "llava", "LlavaForConditionalGeneration"),
    _run("transformers", "vilt", "ViltForQuestionAnswering"),
    _run("transformers", "layoutlm", "LayoutLMForTokenClassification"),
    _transformers("time_series", "PatchTSTForPrediction"),
    _transformers("time_series", "PatchTSMixerForPrediction"),
    _run("transformers", "decision", "DecisionTransformerModel", {"loss": "mean"}),
    _diffusers("unconditional"),
    _diffusers("conditional"),
    _diffusers("conditional", _BF16),
    _diffusers("video_unet"),
    _diffusers("sequence_unet"),
    _diffusers("autoencoder"),
    _diffusers("tiny_autoencoder"),
    _diffusers("quantized_autoencoder"),
    _diffusers("dit"),
    _diffusers("pixart"),
    _diffusers("stable_diffusion_3"),
    _diffusers("flux"),
    _diffusers("controlnet", {"loss": "mean"}),
    _monai("volumes", "UNet", _CLASSES, **_NET_3D, **_STEPS, num_res_units=2),
    _monai("images", "UNet", _CLASSES, **_NET_2D, **_STEPS),
    _monai("volumes", "BasicUNet", _CLASSES, **_NET_3D, features=(8, 8, 16, 32, 64, 8)),
    _monai("volumes", "SegResNet", _CLASSES, **_NET_3D, init_filters=8),
    _monai("volumes", "VNet", _CLASSES, spatial_dims=3, in_channels=1, out_channels=2),
    _monai("volumes", "AttentionUnet", _CLASSES, **_NET_3D, **_STEPS),
    _monai("volumes", "HighResNet", _CLASSES, **_NET_3D),
    _monai("volumes", "UNETR", _CLASSES, in_channels=1, out_channels=2, img_size=32, feature_size=8, hidden_size=96,
           mlp_dim=192, num_heads=4),
    _monai("volumes", "SwinUNETR", _CLASSES, size=64, in_channels=1, out_channels=2, feature_size=12),
    _monai("volumes", "DynUNet", _CLASSES, **_NET_3D, kernel_size=(3, 3, 3), strides=(1, 2, 2),
           upsample_kernel_size=(2, 2), filters=(8, 16, 32)),
    _monai("volumes", "DenseNet121", _INFERENCE, **_NET_3D),
    _monai("images", "AutoEncoder", **_NET_2D, channels=(8, 16, 32), strides=(2, 2, 2)),
    _monai("images", "ViT", {"loss": "mean"}, in_channels=1, img_size=64, patch_size=16, hidden_size=96, mlp_dim=192,
           num_layers=3, num_heads=4, spatial_dims=2),
    _segmentation("Unet", "resnet18"),
    _segmentation("UnetPlusPlus", "resnet18"),
    _segmentation("PSPNet", "resnet18"),
    _segmentation("DeepLabV3Plus", "efficientnet-b0"),
    _segmentation("Linknet", "resnet18"),
    _segmentation("Segformer", "mit_b0", size=128),
    _run("x-transformers", "language_model", "decoder"),
    _run("x-transformers", "language_model", "rotary, GLU, RMS norm", rotary_pos_emb=True, ff_glu=True,
         use_rmsnorm=True),
    _run("x-transformers", "language_model", "ALiBi", alibi_pos_bias=True),
    _run("x-transformers", "language_model", "flash, one key head", attn_flash=True, attn_one_kv_head=True),
    _run("x-transformers", "masked_encoder", "encoder with a mask", _CLASSES),
    _run("x-transformers", "image_classifier", "image classifier", _BF16),
    _run("x-transformers", "encoder_decoder", "encoder and decoder"),
    _run("x-transformers", "continuous", "sequences of vectors", {"loss": "mean"}),
    _run("torch-geometric", "model", "GCN", _CLASSES, name="GCN"),
    _run("torch-geometric", "model", "GAT", _CLASSES, name="GAT", heads=4),
    _run("torch-geometric", "model", "GraphSAGE", _CLASSES, name="GraphSAGE", jk="cat"),
    _run("torch-geometric", "model", "GIN", _CLASSES, name="GIN"),
    _run("torch-geometric", "model", "EdgeCNN", _CLASSES, name="EdgeCNN"),
    _run("torch-geometric", "principal_neighborhoods", "PNA", _CLASSES),
    _run("torch-geometric", "graph_unet", "GraphUNet", _CLASSES),
    _graph("GATv2Conv"),
    _graph("TransformerConv", heads=2, concat=False),
    _graph("ChebConv", K=3),
    _run("torch-geometric", "relations", "RGCNConv", _CLASSES),
    _run("torch-geometric", "pooled", "GIN of whole graphs", _CLASSES),
    _run("torch-geometric", "attentive", "AttentiveFP", {"loss": "mean"}),
    _run("torch-geometric", "autoencoder", "GAE"),
)  # fmt: skip
"""Every run, in the order in which it is printed."""
