"""Readers of dense decoders that differ from Llama in a few settings, declared as families.

**Source**: the modelling code of transformers 5.23; tensor names are those of the published checkpoints.
"""

from collections.abc import Mapping
from functools import partial
from typing import Final

from planner.models.architecture import Architecture, Attention, Norm, Tensor
from planner.models.readers.attention_patterns import (
    alternating_window_pattern,
    interleaved_rotation,
    same_window_pattern,
    windowed_upper_layers,
)
from planner.models.readers.blocks import (
    AttentionStyle,
    FeedForwardBlock,
    MlpStyle,
    attention_blocks,
    mlp_block,
    read_sizes,
    transform_blocks,
)
from planner.models.readers.config_fields import ConfigFields
from planner.models.readers.decoder.assembly import DecoderFamily, DecoderFrame, assemble_decoder
from planner.models.readers.registry import Reader
from planner.models.readers.tensors import FP32_RMS, LAYER, RMS, Tensors, norm_tensors, qk_norm_tensors

ATTENTION_BIAS: Final = ("attention_bias", False)
MLP_BIAS: Final = ("mlp_bias", False)
USE_BIAS: Final = ("use_bias", False)

BIASED: Final = AttentionStyle(bias=ATTENTION_BIAS, out_bias=ATTENTION_BIAS)
HEAD_NORMED: Final = BIASED._replace(qk_norm="head")
FULLY_NORMED: Final = BIASED._replace(qk_norm="all")

POST_NORMS: Final = ("post_attention_layernorm", "post_feedforward_layernorm")
GEMMA_NORMS: Final = (
    "input_layernorm",
    "post_attention_layernorm",
    "pre_feedforward_layernorm",
    "post_feedforward_layernorm",
)
GLM4_NORMS: Final = (
    "input_layernorm",
    "post_attention_layernorm",
    "post_self_attn_layernorm",
    "post_mlp_layernorm",
)

# It casts back to the residual stream's format only after multiplying by the weight, as FP32_RMS does.
COHERE_NORM: Final = Norm(kind="layer", native=False, fp32_product=True)
# OLMo's norm has no weights and works on an fp32 copy.
OLMO_NORM: Final = Norm(kind="layer", upcast=True)

GLU: Final = MlpStyle(names=("gate_up_proj", "down_proj"), fused=True)
GELU_GLU: Final = MlpStyle(activation="gelu_pytorch_tanh")


def _cohere_qk_tensors(mixer: Attention) -> Tensors:
    heads = {"q_norm": mixer.heads, "k_norm": mixer.kv_heads} if mixer.qk_norm == "head" else {}
    return tuple(
        Tensor(name=f"self_attn.{name}.weight", shape=(count, mixer.head_dim), role="norm")
        for name, count in heads.items()
    )


def _stablelm_qk_tensors(mixer: Attention) -> Tensors:
    heads = {"q_layernorm": mixer.heads, "k_layernorm": mixer.kv_heads} if mixer.qk_norm == "head" else {}
    return tuple(
        Tensor(name=f"self_attn.{name}.norms.{{head}}.weight", shape=(mixer.head_dim,), role="norm", copies=count)
        for name, count in heads.items()
    )


def _read_stablelm(fields: ConfigFields) -> Architecture:
    parallel = fields.flag("use_parallel_residual", default=False)
    norms = ("input_layernorm",) if parallel else ("input_layernorm", "post_attention_layernorm")
    frame = DecoderFrame(
        norm=LAYER,
        norms=norms,
        parallel=parallel,
        hidden_dropout=("hidden_dropout", 0.0),
        named_streams=0 if parallel else 2,
    )
    attention = AttentionStyle(
        bias=("use_qkv_bias", False),
        heads_first=True,
        qk_norm="head",
        qk_norm_when=("qk_layernorm", False),
        qk_tensors=_stablelm_qk_tensors,
    )
    return DecoderFamily(frame=frame, attention=attention, kv_heads=32).read(fields)


def _read_bitnet(fields: ConfigFields) -> Architecture:
    """Read BitNet, which has an additional norm inside each block."""
    sizes = read_sizes(fields)
    mlp, mlp_tensors = mlp_block(fields, sizes, MlpStyle(activation="relu2"))
    inner = norm_tensors("self_attn.attn_sub_norm", sizes.hidden, RMS)
    mixers = transform_blocks(
        attention_blocks(fields, sizes, BIASED), lambda made: made._replace(tensors=made.tensors + inner)
    )
    mlp = mlp.evolve(inner_norm=True)
    forward = FeedForwardBlock(mlp, mlp_tensors + norm_tensors("mlp.ffn_sub_norm", mlp.intermediate, RMS))
    return assemble_decoder(fields, sizes, DecoderFrame(other_norms=1), mixers, (forward,) * sizes.layers)


_LLAMA: Final = DecoderFamily(attention=BIASED, mlp=MlpStyle(bias=MLP_BIAS))
_GLM: Final = DecoderFamily(
    attention=AttentionStyle(bias=("attention_bias", True), heads_first=True), mlp=GLU, kv_heads=2, head_dim=128
)
_GEMMA2: Final = DecoderFamily(
    frame=DecoderFrame(tied=True, softcapped=True, norm=FP32_RMS, norms=GEMMA_NORMS),
    attention=BIASED._replace(pattern=alternating_window_pattern(2, 4096), sdpa=False, softcap=True),
    mlp=GELU_GLU,
    kv_heads=4,
    head_dim=256,
)
_OLMO2: Final = DecoderFamily(
    frame=DecoderFrame(norm=FP32_RMS, norms=POST_NORMS, post_norms=True), attention=FULLY_NORMED
)
_COHERE: Final = DecoderFamily(
    frame=DecoderFrame(tied=True, norm=COHERE_NORM, norms=("input_layernorm",), parallel=True),
    attention=BIASED._replace(qk_norm="head", qk_norm_when=("use_qk_norm", False), qk_tensors=_cohere_qk_tensors),
)
_PHI_ATTENTION: Final = AttentionStyle(
    names=("q_proj", "k_proj", "v_proj", "dense"),
    heads_first=True,
    bias=True,
    out_bias=True,
    qk_norm="head",
    qk_norm_when=("qk_layernorm", False),
    qk_tensors=partial(qk_norm_tensors, norm=LAYER, names=("q_layernorm", "k_layernorm")),
)
_PLAIN: Final = MlpStyle(names=("up_proj", "down_proj"), bias=MLP_BIAS, activation="relu2")

READERS: Final[Mapping[str, Reader]] = {
    "llama": _LLAMA.read,
    "internlm3": _LLAMA.read,
    "granite": _LLAMA.read,
    "cwm": DecoderFamily(
        attention=AttentionStyle(pattern=alternating_window_pattern(4, 8192, full_first=True)),
        mlp=MlpStyle(bias=MLP_BIAS),
        kv_heads=8,
        head_dim=128,
    ).read,
    "helium": _LLAMA._replace(
        frame=DecoderFrame(norm=FP32_RMS), attention=AttentionStyle(bias=ATTENTION_BIAS), kv_heads=20, head_dim=128
    ).read,
    "arcee": DecoderFamily(attention=BIASED, mlp=_PLAIN).read,
    "jais2": DecoderFamily(
        frame=DecoderFrame(norm=LAYER),
        attention=AttentionStyle(bias=("attention_bias", True), out_bias=("attention_bias", True)),
        mlp=_PLAIN._replace(bias=("mlp_bias", True)),
    ).read,
    "nemotron": DecoderFamily(
        frame=DecoderFrame(norm=LAYER.evolve(autocasts=True)), attention=BIASED._replace(heads_first=True), mlp=_PLAIN
    ).read,
    "mistral": DecoderFamily(attention=AttentionStyle(pattern=same_window_pattern(4096)), kv_heads=8).read,
    "ministral": DecoderFamily(attention=AttentionStyle(pattern=alternating_window_pattern(1, 4096)), kv_heads=8).read,
    "ministral3": DecoderFamily(attention=AttentionStyle(pattern=same_window_pattern()), kv_heads=8, head_dim=128).read,
    "qwen2": DecoderFamily(attention=AttentionStyle(bias=True, pattern=windowed_upper_layers), kv_heads=32).read,
    "qwen3": DecoderFamily(
        attention=HEAD_NORMED._replace(pattern=windowed_upper_layers), kv_heads=32, head_dim=128
    ).read,
    "smollm3": DecoderFamily(
        frame=DecoderFrame(tied=True),
        attention=BIASED._replace(pattern=interleaved_rotation),
        mlp=MlpStyle(bias=MLP_BIAS),
        kv_heads=4,
    ).read,
    "seed_oss": DecoderFamily(
        frame=DecoderFrame(hidden_dropout=("residual_dropout", 0.1)),
        attention=AttentionStyle(
            bias=("attention_bias", True), out_bias=("attention_out_bias", False), dropout=("attention_dropout", 0.1)
        ),
        mlp=MlpStyle(bias=MLP_BIAS),
        kv_heads=8,
        head_dim=128,
    ).read,
    "ernie4_5": DecoderFamily(
        frame=DecoderFrame(tied=True),
        attention=AttentionStyle(bias=USE_BIAS, out_bias=USE_BIAS),
        mlp=MlpStyle(bias=USE_BIAS),
        kv_heads=2,
        head_dim=128,
    ).read,
    "hunyuan_v1_dense": DecoderFamily(
        attention=HEAD_NORMED._replace(qk_tensors=partial(qk_norm_tensors, names=("query_layernorm", "key_layernorm"))),
    ).read,
    "gemma": DecoderFamily(
        frame=DecoderFrame(tied=True, norm=FP32_RMS), attention=BIASED, mlp=GELU_GLU, kv_heads=16, head_dim=256
    ).read,
    "gemma2": _GEMMA2.read,
    "vaultgemma": _GEMMA2._replace(
        frame=_GEMMA2.frame._replace(norms=("input_layernorm", "pre_feedforward_layernorm"))
    ).read,
    "gemma3_text": _GEMMA2._replace(
        frame=_GEMMA2.frame._replace(softcapped=False),
        attention=HEAD_NORMED._replace(pattern=alternating_window_pattern(6, 4096)),
    ).read,
    "phi3": DecoderFamily(
        frame=DecoderFrame(hidden_dropout=("resid_pdrop", 0.0), embedding_dropout=("embd_pdrop", 0.0)),
        attention=AttentionStyle(names=("qkv_proj", "o_proj"), pattern=same_window_pattern(), heads_first=True),
        mlp=GLU,
    ).read,
    "glm": _GLM.read,
    "glm4": _GLM._replace(frame=DecoderFrame(norms=GLM4_NORMS)).read,
    "olmo": DecoderFamily(
        frame=DecoderFrame(norm=OLMO_NORM, norms=(), other_norms=2, final_norm=None), attention=BIASED
    ).read,
    "olmo2": _OLMO2.read,
    "olmo3": _OLMO2._replace(attention=FULLY_NORMED._replace(pattern=alternating_window_pattern(4, 4096))).read,
    "exaone4": DecoderFamily(
        frame=DecoderFrame(norms=POST_NORMS, post_norms=True),
        attention=AttentionStyle(qk_norm="head", pattern=alternating_window_pattern(4, 4096, full_rotates=False)),
        kv_heads=32,
    ).read,
    "cohere": _COHERE.read,
    "cohere2": _COHERE._replace(
        attention=BIASED._replace(pattern=alternating_window_pattern(4, 4096, full_rotates=False))
    ).read,
    "stablelm": _read_stablelm,
    "starcoder2": DecoderFamily(
        frame=DecoderFrame(
            tied=True,
            norm=LAYER,
            hidden_dropout=("residual_dropout", 0.0),
            embedding_dropout=("embedding_dropout", 0.0),
        ),
        attention=AttentionStyle(bias=("use_bias", True), out_bias=("use_bias", True), pattern=same_window_pattern()),
        mlp=MlpStyle(names=("c_fc", "c_proj"), bias=("use_bias", True), activation="gelu_pytorch_tanh"),
        kv_heads=2,
    ).read,
    "phi": DecoderFamily(
        frame=DecoderFrame(
            norm=LAYER,
            norms=("input_layernorm",),
            parallel=True,
            final_norm="model.final_layernorm",
            head_bias=True,
            hidden_dropout=("resid_pdrop", 0.0),
            embedding_dropout=("embd_pdrop", 0.0),
        ),
        attention=_PHI_ATTENTION,
        mlp=MlpStyle(names=("fc1", "fc2"), bias=True, activation="gelu_new"),
    ).read,
    "persimmon": DecoderFamily(
        frame=DecoderFrame(norm=LAYER, final_norm="model.final_layernorm", hidden_dropout=("hidden_dropout", 0.0)),
        attention=_PHI_ATTENTION._replace(names=("query_key_value", "dense"), qk_norm_when=("qk_layernorm", True)),
        mlp=MlpStyle(names=("dense_h_to_4h", "dense_4h_to_h"), bias=True, activation="relu2"),
    ).read,
    "bitnet": _read_bitnet,
}
