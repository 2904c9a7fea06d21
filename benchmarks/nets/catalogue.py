"""The runs that are compared: networks of many kinds, trained and used in many ways."""

import json
from pathlib import Path
from typing import Any, Final, NamedTuple

from planner.trace.request import Argument, Target, TraceLora, TraceRequest

HERE: Final = Path(__file__).resolve().parent

_CONFIGS: Final[dict[str, dict[str, Any]]] = {
    "gpt2": {"model_type": "gpt2", "architectures": ["GPT2LMHeadModel"]},
    "gpt2-narrow": {
        "model_type": "gpt2",
        "architectures": ["GPT2LMHeadModel"],
        "n_embd": 384,
        "n_layer": 6,
        "n_head": 6,
        "vocab_size": 16000,
        "bos_token_id": 0, "eos_token_id": 0,
    },
    "llama": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 512, "intermediate_size": 1376,
        "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "vocab_size": 16000,
    },
    "qwen3": {
        "model_type": "qwen3", "architectures": ["Qwen3ForCausalLM"], "hidden_size": 512, "intermediate_size": 1536,
        "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 16000,
    },
    "gemma2": {
        "model_type": "gemma2", "architectures": ["Gemma2ForCausalLM"], "hidden_size": 512, "intermediate_size": 2048,
        "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 16000,
        "sliding_window": 64,
    },
    "gemma3": {
        "model_type": "gemma3_text",
        "architectures": ["Gemma3ForCausalLM"],
        "hidden_size": 512,
        "intermediate_size": 2048,
        "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 64, "vocab_size": 16000,
        "sliding_window": 64,
    },
    "mixtral": {
        "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 384, "intermediate_size": 768,
        "num_hidden_layers": 4, "num_attention_heads": 6, "num_key_value_heads": 2, "num_local_experts": 4,
        "num_experts_per_tok": 2, "vocab_size": 16000,
    },
    "bert": {
        "model_type": "bert", "architectures": ["BertForMaskedLM"], "hidden_size": 384, "intermediate_size": 1536,
        "num_hidden_layers": 6, "num_attention_heads": 6, "vocab_size": 16000,
    },
    "t5": {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 384, "d_ff": 1024, "d_kv": 64,
        "num_layers": 4, "num_heads": 6, "vocab_size": 16000, "decoder_start_token_id": 0,
    },
    "mamba": {
        "model_type": "mamba", "architectures": ["MambaForCausalLM"], "hidden_size": 384, "num_hidden_layers": 4,
        "state_size": 16, "vocab_size": 16000,
    },
}  # fmt: skip


class Case(NamedTuple):
    """A run by its name; `quick` ones are compared at every change."""

    name: str
    request: TraceRequest
    quick: bool = False


def _case(name: str, target: Target, quick: bool, options: dict[str, Any]) -> Case:
    options = {"task": "training", "loss": None, "steps": 2, "device": "cpu"} | options
    if "optimizer_arguments" in options:
        given = options["optimizer_arguments"]
        options["optimizer_arguments"] = tuple(Argument(name=key, value=value) for key, value in given.items())
    return Case(name, TraceRequest(target=target, **options), quick)


def _own(file: str, function: str, name: str = "", quick: bool = False, **options: Any) -> Case:
    """Return a run of the network that a function of a file beside this one makes."""
    target = Target(kind="file", place=str(HERE / f"{file}.py"), name=function)
    return _case(name or function.replace("_", "-"), target, quick, options)


def _text(config: str, name: str = "", quick: bool = False, **options: Any) -> Case:
    """Return a run of a language model of transformers."""
    target = Target(kind="config", place=config, config=json.dumps(_CONFIGS[config]))
    sizes = {"batch": 4, "sequence_length": 128}
    return _case(name or config, target, quick, sizes | options)


_SGD: Final = {"optimizer": "SGD"}
_MOMENTUM: Final = {"optimizer": "SGD", "optimizer_arguments": {"momentum": 0.9}}
_ADAM: Final = {"optimizer": "Adam"}
_BF16: Final = {"autocast": "bf16"}
_INFERENCE: Final = {"task": "inference"}

CASES: Final[tuple[Case, ...]] = (
    # Fully connected
    _own("plain", "mlp", quick=True),
    _own("plain", "mlp", "mlp-sgd", **_SGD),
    _own("plain", "mlp", "mlp-autocast", **_BF16),
    _own("plain", "mixer", **_ADAM),
    _own("plain", "vae", quick=True, **_ADAM),
    _own("plain", "vae", "vae-autocast", **_BF16),
    _own("plain", "recommender", loss="mean", **_ADAM),
    # Convolutional
    _own("convolutional", "convnet", quick=True, **_MOMENTUM),
    _own("convolutional", "convnet", "convnet-autocast", **_BF16),
    _own("convolutional", "resnet18", quick=True, **_MOMENTUM),
    _own("convolutional", "resnet18", "resnet18-autocast", **_MOMENTUM, **_BF16),
    _own("convolutional", "resnet18", "resnet18-head-only", freeze=("stem", "blocks")),
    _own("convolutional", "resnet50", **_MOMENTUM),
    _own("convolutional", "resnet50", "resnet50-autocast", **_MOMENTUM, **_BF16),
    _own("convolutional", "resnet50", "resnet50-inference", **_INFERENCE),
    _own("convolutional", "resnet50_channels_last", **_MOMENTUM),
    _own("convolutional", "convnext"),
    _own("convolutional", "convnext", "convnext-autocast", **_BF16),
    _own("convolutional", "unet", loss="cross_entropy", **_ADAM),
    _own("convolutional", "unet", "unet-autocast", loss="cross_entropy", **_BF16),
    _own("convolutional", "unet", "unet-inference", **_INFERENCE),
    _own("convolutional", "mobilenet", **_MOMENTUM),
    _own("convolutional", "sound", quick=True),
    _own("convolutional", "video", **_SGD),
    # Recurrent
    _own("recurrent", "rnn", **_SGD),
    _own("recurrent", "gru", **_ADAM),
    _own("recurrent", "lstm", quick=True, **_ADAM),
    _own("recurrent", "lstm", "lstm-autocast", **_BF16),
    _own("recurrent", "lstm", "lstm-inference", **_INFERENCE),
    _own("recurrent", "lstm_two_layers", **_ADAM),
    _own("recurrent", "lstm_bidirectional", loss="mean", **_ADAM),
    _own("recurrent", "seq2seq", loss="cross_entropy", **_ADAM),
    # Adversarial and diffusion
    _own("adversarial", "dcgan", "gan", **_ADAM),
    _own("adversarial", "generator", "gan-generator", loss="mse_loss", **_ADAM),
    _own("diffusion", "diffusion_unet"),
    _own("diffusion", "diffusion_unet", "diffusion-unet-autocast", **_BF16),
    _own("diffusion", "dit"),
    _own("diffusion", "dit", "dit-autocast", **_BF16),
    # Language models
    _text("gpt2", batch=2),
    _text("gpt2", "gpt2-autocast", batch=2, **_BF16),
    _text("gpt2-narrow", "gpt2-checkpointed", checkpointing="full", quick=True),
    _text("gpt2-narrow", "gpt2-eager", attention="eager"),
    _text("gpt2-narrow", "gpt2-foreach", optimizer_arguments={"foreach": True}),
    _text("gpt2-narrow", "gpt2-fused", optimizer_arguments={"fused": True}),
    _text("gpt2-narrow", "gpt2-plain-loop", optimizer_arguments={"foreach": False}),
    _text("gpt2-narrow", "gpt2-adafactor", optimizer="Adafactor"),
    _text("gpt2-narrow", "gpt2-accumulated", gradient_accumulation=4, quick=True),
    _text("gpt2-narrow", "gpt2-zeroed-gradients", zero_grad="zeros"),
    _text("llama", quick=True),
    _text("llama", "llama-autocast", **_BF16),
    _text("llama", "llama-bf16", dtype="bf16"),
    _text("llama", "llama-checkpointed", checkpointing="full", **_BF16),
    _text("llama", "llama-lora", lora=TraceLora(rank=16)),
    _text("llama", "llama-lora-autocast", lora=TraceLora(rank=8, targets=("q_proj", "v_proj")), **_BF16),
    _text("llama", "llama-answers", decode_tokens=16, quick=True, **_INFERENCE),
    _text("qwen3"),
    _text("qwen3", "qwen3-autocast", **_BF16),
    _text("gemma2"),
    _text("gemma3"),
    _text("gemma3", "gemma3-answers", decode_tokens=16, **_INFERENCE),
    _text("mixtral"),
    _text("mixtral", "mixtral-autocast", **_BF16),
    _text("bert"),
    _text("bert", "bert-frozen-embeddings", freeze=("bert.embeddings",)),
    _text("t5"),
    _text("t5", "t5-answers", decode_tokens=16, **_INFERENCE),
    _text("mamba", batch=2, sequence_length=32),
    # Images, sound, and both
    _own("transformers_models", "vit"),
    _own("transformers_models", "vit", "vit-autocast", **_BF16),
    _own("transformers_models", "swin"),
    _own("transformers_models", "clip"),
    _own("transformers_models", "whisper"),
    _own("transformers_models", "wav2vec2", "wav2vec2-inference", **_INFERENCE),
    _own("transformers_models", "detr_decoder", "encoder-decoder", loss="mean"),
)
"""Every run, in the order in which it is printed."""
