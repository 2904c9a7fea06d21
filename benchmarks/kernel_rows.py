"""Measured times of kernels, read from the tables of aiconfigurator or from the committed sample of them.

Each row has the kernel, engine, number format and implementation, the shape that the formula of the kernel takes, and
the seconds. A row belongs to one of two halves by a hash of what it is: curves are fitted to one and judged on the
other.
"""

import csv
import gzip
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from planner.performance.kernels.attention import AttentionShape, LatentShape
from planner.performance.kernels.products import ExpertShape, ProductShape
from planner.performance.kernels.times import Collective, collective_shape, element_format

SOURCE: Final = "ai-dynamo/aiconfigurator@095f58a (Apache-2.0)"
CARDS: Final = {
    "a100_sxm": "a100-sxm4-80gb",
    "h100_sxm": "h100-sxm5-80gb",
    "h200_sxm": "h200-sxm-141gb",
    "b200_sxm": "b200-sxm-180gb",
    "b300_sxm": "b300-sxm-288gb",
    "gb200": "gb200-186gb",
    "gb300": "gb300-288gb",
    "l40s": "l40s",
    "rtx_pro_6000_server": "rtx-pro-6000-blackwell-server",
    "b60": "arc-pro-b60-24gb",
}
"""Catalog ids of the systems."""
FORMATS: Final = {
    "bfloat16": "bf16",
    "fp8": "fp8",
    "fp8_block": "fp8-block",
    "nvfp4": "nvfp4",
    "int4_wo": "int4-weights",
    "int8_wo": "int8-weights",
    "sq": "int8",
    "w4a16_mxfp4": "mxfp4-weights",
    "w4a8_mxfp4_mxfp8": "mxfp4-fp8",
}
_ENGINES: Final = {"trtllm": "tensorrt-llm"}
_INTEL: Final = "arc-pro-b60-24gb"
_SAME_KERNEL: Final = {
    "sglang": "sglang_torch_linear",
    "vllm_default": "torch.nn.functional.linear",
    "vllm_flash_attn": "vllm_flash_attn_fa2",
    "flash_attention": "fa3",
    "moe_torch_flow": "moe_torch_flow_cutlass",
    "vllm_fused_moe": "vllm_unquantizedfusedmoe_triton_tritonexperts",
}
"""Later names of the kernels of the A100, whose tables are of earlier collectors.

**Source**: ai-dynamo/aiconfigurator@000b928 collector/sglang/collect_attn.py (`FlashAttentionBackend`, which is
FlashAttention-3's package); vllm-project/vllm `get_flash_attn_version` (3 on capability 9, 2 before)."""
_COLLECTIVES: Final[Mapping[str, Collective]] = {
    "all_reduce": "all-reduce",
    "all_gather": "all-gather",
    "reduce_scatter": "reduce-scatter",
    "alltoall": "all-to-all",
}
_GATED_VERSIONS: Final = ("0.5.10", "0.14.0")
"""Versions that ran the experts of Nemotron, which have no gate, with one."""
_NOT_GATED_WIDTHS: Final = ("1856", "2688")
_WIDE_GROUP: Final = 32
COLUMNS: Final = ("system", "kernel", "engine", "version", "format", "implementation", "head", "sizes", "microseconds")


class KernelRow(NamedTuple):
    """A measured kernel on one card."""

    card: str
    kernel: str
    engine: str
    version: str
    format: str
    implementation: str
    head_size: int
    shape: tuple[float, ...]
    seconds: float

    @property
    def key(self) -> tuple[str, str, str, str]:
        """Return what one curve describes: kernel, engine, format and implementation."""
        return self.kernel, self.engine, self.format, self.implementation

    @property
    def draw(self) -> int:
        """Return a number that orders rows as if at random, and always in the same way."""
        text = repr((self.card, *self.key, tuple(map(float, self.shape))))
        return int.from_bytes(hashlib.md5(text.encode(), usedforsecurity=False).digest()[:6], "big")

    @property
    def is_held_out(self) -> bool:
        """Return whether curves are judged on this row, and not fitted to it."""
        return self.draw % 2 == 1


def read_tables(folder: Path) -> list[KernelRow]:
    """Return the rows of all tables below `folder`, which has one folder for each system."""
    rows = []
    for path in sorted(folder.glob("*/*.csv.gz")):
        table, engine, version = path.name.removesuffix(".csv.gz").split("-", 2)
        reader = _READERS.get(table)
        if reader is not None:
            with gzip.open(path, "rt", encoding="utf-8") as text:
                measured = [row for row in csv.DictReader(text) if float(row["latency"] or 0) > 0]
            own = _ENGINES.get(engine, engine)
            card = CARDS[path.parent.name]
            rows += [_renamed(row) for each in measured for row in reader(card, own, version, each)]
    return rows


def _renamed(row: KernelRow) -> KernelRow:
    """Return `row` with one name for each kernel: what two makers' libraries run under one name are two."""
    if row.card == _INTEL:
        return row._replace(implementation=f"{row.implementation} on XPU")
    return row._replace(implementation=_SAME_KERNEL.get(row.implementation, row.implementation))


def read_sample(path: Path) -> list[KernelRow]:
    """Return the rows of the committed sample."""
    with gzip.open(path, "rt", encoding="utf-8") as text:
        return [
            KernelRow(*row[:6], int(row[6]), tuple(map(float, row[7].split())), float(row[8]) / 1e6)
            for row in list(csv.reader(text))[1:]
        ]


def write_sample(path: Path, rows: list[KernelRow]) -> None:
    """Write `rows` to `path`, without the time of writing, so that the same rows make the same file."""
    lines = [",".join(COLUMNS)]
    for row in rows:
        sizes = " ".join(f"{size:.12g}" for size in row.shape)
        lines.append(",".join((*row[:6], str(row.head_size), sizes, f"{row.seconds * 1e6:.5g}")))
    path.write_bytes(gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0))


def _product(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    kind = FORMATS[row["gemm_dtype"]]
    shape = ProductShape(float(row["m"]), float(row["n"]), float(row["k"]), *element_format(kind)[:2])
    yield KernelRow(card, "product", engine, version, kind, row["kernel_source"], 0, shape, _seconds(row))


def _attention(card: str, engine: str, version: str, row: dict[str, Any], kernel: str) -> Iterator[KernelRow]:
    heads, keys, window = int(row["num_heads"]), int(row["num_key_value_heads"]), float(row.get("window_size") or 0)
    cache = FORMATS[row["kv_cache_dtype"]]
    implementation = row["kernel_source"]
    if kernel == "attention-read":
        kind, tokens = f"{FORMATS[row['attn_dtype']]}/{cache}", float(row["isl"])
    else:
        kind, tokens = cache, float(row["step"]) + 1
        tokens = min(tokens, window or tokens)
        kernel += "-single" if heads == keys else ""
        if engine == "tensorrt-llm" and heads > _WIDE_GROUP * keys:
            implementation += "-wide"
    size = int(row["head_dim"])
    shape = AttentionShape(
        float(row["batch_size"]), tokens, heads, keys, size, window, element_format(cache).weight_bytes
    )
    yield KernelRow(card, kernel, engine, version, kind, implementation, size, shape, _seconds(row))


def _attention_read(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    return _attention(card, engine, version, row, "attention-read")


def _attention_write(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    return _attention(card, engine, version, row, "attention-write")


def _latent(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    kind = FORMATS[row["kv_cache_dtype"]]
    reads = row["op_name"] in ("mla_context", "context_mla")
    tokens = float(row["isl"]) if reads else float(row["step"]) + 1
    shape = LatentShape(float(row["batch_size"]), tokens, float(row["num_heads"]), element_format(kind).weight_bytes)
    kernel = "latent-read" if reads else "latent-write"
    yield KernelRow(card, kernel, engine, version, kind, row["kernel_source"], 0, shape, _seconds(row))


def _experts(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    kind = FORMATS[row["moe_dtype"]]
    ungated = row["inter_size"] in _NOT_GATED_WIDTHS and version not in _GATED_VERSIONS
    shape = ExpertShape(
        float(row["num_tokens"]),
        float(row["hidden_size"]),
        float(row["inter_size"]) / float(row["moe_tp_size"]),
        float(row["num_experts"]),
        float(row["topk"]),
        float(row["moe_ep_size"]),
        2.0 if ungated or "nongated" in row["kernel_source"] else 3.0,
        element_format(kind).weight_bytes,
        float(row["distribution"] != "balanced"),
    )
    yield KernelRow(card, "experts", engine, version, kind, row["kernel_source"], 0, shape, _seconds(row))


def _collective(card: str, engine: str, version: str, row: dict[str, Any]) -> Iterator[KernelRow]:
    element = row.get("nccl_dtype") or row.get("oneccl_dtype") or row.get("allreduce_dtype")
    kernel = _COLLECTIVES[row["op_name"]]
    size = float(row["message_size"]) * (1 if element == "int8" else 2)
    shape = collective_shape(kernel, int(row["num_gpus"]), size)
    source = row["kernel_source"]
    kind = "eager" if source.endswith("eager") else "nccl" if source.endswith(("NCCL", "CCL")) else "graph"
    yield KernelRow(card, kernel, engine, version, kind, source, 0, shape, _seconds(row))


def _seconds(row: dict[str, Any]) -> float:
    return float(row["latency"]) / 1e3


_READERS: Final = {
    "gemm": _product,
    "context_attention": _attention_read,
    "generation_attention": _attention_write,
    "context_mla": _latent,
    "generation_mla": _latent,
    "moe": _experts,
    "nccl": _collective,
    "oneccl": _collective,
    "custom_allreduce": _collective,
}
