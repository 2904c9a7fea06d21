"""Catalog names of the cards and models of the published speeds, and networks that the catalog does not have."""

from collections.abc import Mapping
from typing import Final

GPUS: Final = {
    "A10": "a10",
    "A100 (PCIe setup, size not stated)": "a100-pcie-80gb",
    "A100": "a100-sxm4-80gb",
    "A100 40GB": "a100-sxm4-40gb",
    "A100 40GB PCIe": "a100-pcie-40gb",
    "A100 80GB": "a100-sxm4-80gb",
    "A100 80GB PCIe": "a100-pcie-80gb",
    "A100 80GB SXM4": "a100-sxm4-80gb",
    "A100 PCIe 80GB": "a100-pcie-80gb",
    "A100 SXM (40GB per the quoting repo)": "a100-sxm4-40gb",
    "A100 SXM 40GB": "a100-sxm4-40gb",
    "A100 SXM 80GB": "a100-sxm4-80gb",
    "A100 SXM 80GB (330W)": "a100-sxm4-80gb",
    "A100 SXM 80GB (400W CTS)": "a100-sxm4-80gb",
    "B200": "b200-sxm-180gb",
    "B200 180GB": "b200-sxm-180gb",
    "B200 192GB SXM5": "b200-sxm-180gb",
    "B200 SXM 180GB": "b200-sxm-180gb",
    "GB200 186GB": "gb200-186gb",
    "GB200 192GB": "gb200-186gb",
    "GB300": "gb300-288gb",
    "GH200 Grace Hopper Superchip 96GB": "gh200-96gb",
    "B300": "b300-sxm-288gb",
    "GH200": "gh200-96gb",
    "Gaudi 2 96GB": "gaudi2",
    "H100": "h100-sxm5-80gb",
    "H100 80GB": "h100-sxm5-80gb",
    "H100 80GB PCIe": "h100-pcie-80gb",
    "H100 PCIe": "h100-pcie-80gb",
    "H100 PCIe 80GB": "h100-pcie-80gb",
    "H100 SXM 80GB": "h100-sxm5-80gb",
    "H20 96GB": "h20-96gb",
    "H200 NVL 141GB": "h200-nvl-141gb",
    "H200 SXM 141GB": "h200-sxm-141gb",
    "H200 SXM 141GB (400W CTS)": "h200-sxm-141gb",
    "Instinct MI300X 192GB HBM3": "instinct-mi300x",
    "Instinct MI325X 256GB HBM3E DLC": "instinct-mi325x",
    "Instinct MI325X 256GB HBM3e": "instinct-mi325x",
    "Instinct MI350X": "instinct-mi350x",
    "L4 24GB": "l4",
    "L40 48GB": "l40",
    "M1 7-Core GPU 8GB": "apple-m1",
    "M1 Max 32-Core GPU 64GB": "apple-m1-max",
    "M3 Max 40-Core GPU 64GB": "apple-m3-max",
    "MI250X (one GCD)": "instinct-mi250x",
    "RTX 3090 Ti 24GB": "geforce-rtx-3090-ti",
    "RTX PRO 6000 Blackwell Server 96GB": "rtx-pro-6000-blackwell-server",
    "TPU-v5e": "tpu-v5e",
    "TPU-v5p": "tpu-v5p",
    "V100 (Big Basin, NVLink)": "tesla-v100-sxm2-16gb",
    "V100": "tesla-v100-sxm2-32gb",
    "V100 16GB": "tesla-v100-sxm2-16gb",
    "V100 32GB": "tesla-v100-sxm2-32gb",
}
"""Names that the catalog does not resolve by itself; the source says which form factor it was."""

MODELS: Final = {
    "BERT-base SQuAD (seq 384)": "google-bert/bert-base-uncased",
    "BERT-large SQuAD (seq 384)": "google-bert/bert-large-uncased",
    "BERT-large": "google-bert/bert-large-uncased",
    "BLOOM": "bigscience/bloom",
    "BLOOM 176B": "bigscience/bloom",
    "BLOOM-176B": "bigscience/bloom",
    "DeepSeekV3": "deepseek-ai/DeepSeek-V3",
    "GPT OSS 120B": "openai/gpt-oss-120b",
    "Kimi_K2": "moonshotai/Kimi-K2-Instruct",
    "LLAMA2-7B": "meta-llama/Llama-2-7b-hf",
    "LLAMA2-13B": "meta-llama/Llama-2-13b-hf",
    "LLAMA2-70B": "meta-llama/Llama-2-70b-hf",
    "LLAMA3-8B": "meta-llama/Meta-Llama-3-8B",
    "LLAMA3-70B": "meta-llama/Meta-Llama-3-70B",
    "LLAMA3_8B": "meta-llama/Meta-Llama-3-8B",
    "LLAMA3_70B": "meta-llama/Meta-Llama-3-70B",
    "LLAMA3.1_405B": "meta-llama/Llama-3.1-405B",
    "Llama-2-7B": "meta-llama/Llama-2-7b-hf",
    "Llama-2-13B": "meta-llama/Llama-2-13b-hf",
    "Llama-2-70B": "meta-llama/Llama-2-70b-hf",
    "Llama-2-70B LoRA (MLPerf, GovReport)": "meta-llama/Llama-2-70b-hf",
    "Llama-3 7B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3 70B": "meta-llama/Meta-Llama-3-70B",
    "Llama-3-8B": "meta-llama/Meta-Llama-3-8B",
    "Llama-3-70B": "meta-llama/Meta-Llama-3-70B",
    "Llama-3.1-8B": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-8B (MLPerf, C4)": "meta-llama/Llama-3.1-8B",
    "Llama-3.1-70B": "meta-llama/Llama-3.1-70B",
    "Llama-3.1-405B": "meta-llama/Llama-3.1-405B",
    "Llama-3.1-405B (MLPerf, C4)": "meta-llama/Llama-3.1-405B",
    "Llama-3.2-3B": "meta-llama/Llama-3.2-3B",
    "Qwen2.5-1.5B-Instruct": "Qwen/Qwen2.5-1.5B",
    "Qwen3_235B_a22B": "Qwen/Qwen3-235B-A22B",
    "Qwen3_30B_a3B": "Qwen/Qwen3-30B-A3B",
    "TinyLlama 1.1B": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "TinyLlama-1.1B": "TinyLlama/TinyLlama-1.1B-Chat-v1.0",
    "phi-1.5": "microsoft/phi-1_5",
    "StableLM Alpha": "stabilityai/stablelm-base-alpha-3b",
}
"""The catalog's ids of models by the names in the table."""


def _mpt(width: int, heads: int, layers: int) -> dict[str, object]:
    """Return a network of llm-foundry's scaling table, with the fused attention that it was measured with."""
    return _gpt3(width, heads, layers) | {"vocab_size": 50_368}


def _gpt3(width: int, heads: int, layers: int) -> dict[str, object]:
    """Return a network of the GPT-3 series with Megatron's vocabulary of 51,200 (Brown et al. 2020, table 2.1)."""
    return {
        "model_type": "gpt2",
        "n_embd": width,
        "n_head": heads,
        "n_layer": layers,
        "n_positions": 2_048,
        "vocab_size": 51_200,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
    }


def _nemotron(width: int, heads: int, kv_heads: int, layers: int, inner: int) -> dict[str, object]:
    """Return a network of the Nemotron series (NeMo `nemotron_8b`, `_22b` and `_340b` recipes)."""
    return {
        "model_type": "nemotron",
        "hidden_size": width,
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "num_hidden_layers": layers,
        "intermediate_size": inner,
        "vocab_size": 256_000,
        "max_position_embeddings": 4_096,
        "hidden_act": "relu2",
        "tie_word_embeddings": False,
    }


CONFIGS: Final[Mapping[str, dict[str, object]]] = {
    "MPT-125m": _mpt(768, 12, 12),
    "MPT-350m": _mpt(1_024, 16, 24),
    "MPT-760m": _mpt(1_536, 12, 24),
    "MPT-1b": _mpt(2_048, 16, 24),
    "MPT-3b": _mpt(2_560, 20, 32),
    "MPT-7b": _mpt(4_096, 32, 32),
    "MPT-13b": _mpt(5_120, 40, 40),
    "MPT-30b": _mpt(7_168, 56, 48),
    "MPT-70b": _mpt(8_192, 64, 80),
    "GPT3-5B": _gpt3(4_096, 32, 24),
    "GPT3-20B": _gpt3(6_144, 48, 44),
    "GPT3-175B": _gpt3(12_288, 96, 96),
    "GPT-3 175B (MLPerf)": _gpt3(12_288, 96, 96),
    "GPT 22B": _gpt3(6_144, 64, 48),
    "GPT-3 175B": _gpt3(12_288, 96, 96),
    "GPT 175B": _gpt3(12_288, 96, 96),
    "GPT 530B": _gpt3(20_480, 128, 105),
    "GPT 1T": _gpt3(25_600, 160, 128),
    "MT-NLG 530B": _gpt3(20_480, 128, 105),
    "Nemotron-8B": _nemotron(4_096, 32, 32, 32, 16_384),
    "Nemotron-22B": _nemotron(6_144, 48, 48, 40, 24_576),
    "Nemotron-340B": _nemotron(18_432, 96, 8, 96, 73_728),
}
"""Networks that are not in the catalog, by their published shape."""
