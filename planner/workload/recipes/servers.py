"""Options of inference servers as workload fields, for writing and for reading: vLLM, llama-server and Ollama.

**Source**: vLLM 0.33.0 `engine/arg_utils.py` and `config/{cache,scheduler,parallel}.py`; llama.cpp
`tools/server/README.md` at commit 00dc805; Ollama `docs/modelfile.mdx` and `docs/faq.mdx`.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, Literal, NamedTuple

from planner.dtypes import GGUF_FILE_TYPES
from planner.parsing import parse_json
from planner.storage import UnreadableFileError
from planner.units import GIB
from planner.workload.recipes.config_reader import ConfigReader
from planner.workload.software.registry import SOFTWARE, serving_support

_MOST_LAYERS: Final = 1_000
"""Layers that patterns are tried on; more than any model has, so that all of these stand for all layers."""
_LONGEST_PATTERN: Final = 8_192
_REPEATED_GROUP: Final = re.compile(r"\)[*+{?]")
_REPEATED: Final = re.compile(r"[*+{]")
_NO_EXPERTS: Final = ("attn_q", "attn_output", "ffn_up", "ffn_down", "ffn_gate", "ffn_up_shexp", "ffn_gate_inp")
_GGUF_NAME: Final = re.compile(r"[-.](\w+)\.gguf$", re.IGNORECASE)


class Option(NamedTuple):
    """A server's option with its workload field, its values by ours, and a comment that explains the setting.

    A word is one that the server knows, a text any. `values` translates our values to the server's, and several of ours
    may share one; the last one is read back.
    """

    key: str
    field: str
    kind: Literal["integer", "number", "switch", "word", "text"]
    comment: str
    values: Mapping[str, str] = {}

    @property
    def ours(self) -> dict[str, str]:
        """Return our values by the server's."""
        return {theirs: ours for ours, theirs in self.values.items()}


DTYPE_OPTION: Final = Option(
    "--dtype", "compute", "word", "compute precision", {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
)
"""Compute precision, which vLLM, SGLang and TensorRT-LLM name alike."""
QUANTIZATION_OPTION: Final = Option(
    "--quantization",
    "weights",
    "word",
    "weight format",
    {"fp8": "fp8", "nf4": "bitsandbytes", "awq4-128": "awq", "gptq4-128": "gptq"},
)
"""Format of the weights, which vLLM and SGLang name alike."""
VLLM_OPTIONS: Final = (
    DTYPE_OPTION,
    QUANTIZATION_OPTION,
    Option("--max-model-len", "context_length", "integer", "context: prompt and output tokens together"),
    Option("--max-num-seqs", "engine.max_num_seqs", "integer", "sequences in one step"),
    Option("--max-num-batched-tokens", "engine.max_num_batched_tokens", "integer", "tokens in one step"),
    Option(
        "--kv-cache-dtype",
        "kv_cache",
        "word",
        "KV-cache precision",
        {"fp8": "fp8", "fp16": "float16", "bf16": "bfloat16"},
    ),
    Option("--gpu-memory-utilization", "engine.memory_utilization", "number", "share of each GPU's memory"),
    Option("--block-size", "engine.block_size", "integer", "tokens in each block of the KV cache"),
    Option("--enforce-eager", "engine.enforce_eager", "switch", "no CUDA graphs"),
    Option("--tensor-parallel-size", "parallel.tensor", "integer", "tensor parallelism"),
    Option("--pipeline-parallel-size", "parallel.pipeline", "integer", "pipeline parallelism"),
    Option("--data-parallel-size", "parallel.data", "integer", "replicas"),
    Option("--max-loras", "adapters.slots", "integer", "LoRA adapters on the GPU at once"),
    Option("--max-lora-rank", "adapters.rank", "integer", "highest rank of LoRA adapters"),
)
"""Options of `vllm serve`."""
DRAFT_TOKENS: Final = "tokens drafted before each check"
DRAFT_MODEL: Final = "checkpoint that drafts"
DRAFT_METHOD: Final = "how tokens are drafted"
VLLM_SPECULATION: Final = (
    Option(
        "method",
        "speculation.method",
        "word",
        DRAFT_METHOD,
        {"model": "draft_model", **{name: name for name in ("mtp", "eagle", "eagle3", "ngram")}},
    ),
    Option("model", "speculation.model", "text", DRAFT_MODEL),
    Option("num_speculative_tokens", "speculation.tokens", "integer", DRAFT_TOKENS),
)
"""Keys of vLLM's `--speculative-config`, a section in JSON; `--spec-method` and so on set them, too."""
LLAMA_SERVER_OPTIONS: Final = (
    Option("--parallel", "engine.slots", "integer", "requests answered at the same time"),
    Option(
        "--cache-type-k",
        "kv_cache",
        "word",
        "KV-cache precision",
        {
            "fp32": "f32",
            "bf16": "f16",
            "fp16": "f16",
            **{name: name for name in ("q8_0", "q5_1", "q5_0", "q4_1", "q4_0")},
        },
    ),
    Option("--flash-attn", "attention", "word", "attention", {"eager": "off", "flash": "on", "sdpa": "on"}),
    Option("--n-gpu-layers", "gpu_layers", "integer", "layers on the GPU, with the output layer"),
    Option("--batch-size", "engine.n_batch", "integer", "tokens in a logical batch"),
    Option(
        "--ubatch-size", "engine.n_ubatch", "integer", "tokens in a physical batch, for which the compute buffer is"
    ),
    Option("--swa-full", "engine.swa_full", "switch", "full context for sliding-window layers"),
    Option("--n-cpu-moe", "engine.n_cpu_moe", "integer", "first layers whose routed experts are in RAM"),
    Option(
        "--spec-type",
        "speculation.method",
        "word",
        DRAFT_METHOD,
        {"model": "draft-simple", "mtp": "draft-mtp", "eagle3": "draft-eagle3", "ngram": "ngram-simple"},
    ),
    Option("--spec-draft-n-max", "speculation.tokens", "integer", DRAFT_TOKENS),
)
"""Options of llama-server; the context and the unified cache, which depend on slots, are written beside them."""
OLLAMA_OPTIONS: Final = (
    Option("num_ctx", "context_length", "integer", "context of each request"),
    Option("num_gpu", "gpu_layers", "integer", "layers on the GPU, with the output layer"),
)
"""Parameters of a Modelfile."""
OLLAMA_ENVIRONMENT: Final = (
    Option("OLLAMA_NUM_PARALLEL", "engine.slots", "integer", "requests answered at the same time"),
    Option(
        "OLLAMA_KV_CACHE_TYPE",
        "kv_cache",
        "word",
        "KV-cache precision, of the whole server",
        {"bf16": "f16", "fp16": "f16", "q8_0": "q8_0", "q4_0": "q4_0"},
    ),
    Option("OLLAMA_FLASH_ATTENTION", "attention", "word", "attention", {"eager": "0", "flash": "1", "sdpa": "1"}),
    Option("LLAMA_ARG_BATCH", "engine.n_batch", "integer", "tokens in a logical batch"),
    Option("LLAMA_ARG_UBATCH", "engine.n_ubatch", "integer", "tokens in a physical batch"),
    Option("LLAMA_ARG_N_CPU_MOE", "engine.n_cpu_moe", "integer", "first layers whose routed experts are in RAM"),
)
"""Environment variables of Ollama's server, which hands `LLAMA_ARG_…` on to llama-server."""
_VLLM_NEUTRAL: Final = frozenset(("--host", "--port", "--served-model-name", "--trust-remote-code", "--load-format"))
_LLAMA_NEUTRAL: Final = frozenset(
    (
        "--host",
        "--port",
        "--alias",
        "--fit",
        "--cache-type-v",
        "--metrics",
        "--load-mode",
        "--spec-draft-ngl",
    )
)
_SPECULATION: Final = "--speculative-config"
_SEVERAL: Final = ("--lora-target-modules", "--lora-modules", "--lora-paths")
"""Options with several words."""
_SHORT: Final = {
    "-sc": "--speculative-config",
    "-md": "--spec-draft-model",
    "--model-draft": "--spec-draft-model",
    "-ngld": "--spec-draft-ngl",
    "--n-gpu-layers-draft": "--spec-draft-ngl",
    "-tp": "--tensor-parallel-size",
    "-pp": "--pipeline-parallel-size",
    "-dp": "--data-parallel-size",
    "-q": "--quantization",
    "-c": "--ctx-size",
    "-np": "--parallel",
    "-ctk": "--cache-type-k",
    "-ctv": "--cache-type-v",
    "-fa": "--flash-attn",
    "-ngl": "--n-gpu-layers",
    "--gpu-layers": "--n-gpu-layers",
    "-b": "--batch-size",
    "-ub": "--ubatch-size",
    "-m": "--model",
    "-a": "--alias",
    "-kvu": "--kv-unified",
    "-no-kvu": "--no-kv-unified",
    "-ts": "--tensor-split",
    "-sm": "--split-mode",
    "-hf": "--hf-repo",
    "-ot": "--override-tensor",
    "-cmoe": "--cpu-moe",
    "-ncmoe": "--n-cpu-moe",
}


def parse_options(words: tuple[str, ...]) -> dict[str, object]:
    """Return the options among a command's words by their long names; other words are the key `""`.

    A switch has the value True. Later values replace earlier ones.
    """
    options: dict[str, object] = {}
    key = ""
    for word in words:
        if word.startswith("-") and not word[1:2].isdecimal():
            name, joined, value = word.partition("=")
            key = _SHORT.get(name, name)
            options[key] = value if joined else True
            key = "" if joined else key
        elif key in _SEVERAL:
            known = options[key]
            options[key] = [*known, word] if isinstance(known, list) else [word]
        elif key:
            options[key] = word
            key = ""
        else:
            options.setdefault("", word)
    return options


def read_engine_command(
    reader: ConfigReader, profile: str, options: tuple[Option, ...], model: str, cache: str
) -> None:
    """Read the options of a server with a paged cache; `model` and `cache` are the keys of its model and cache format.

    The limit on concurrent sequences, which is one of the program's settings, is the batch of the plan.
    """
    reader.set_task_inference()
    reader.read_model("" if reader.has("") else model)
    reader.assume("engine", SOFTWARE[profile].title, "profile", profile)
    read_options(reader, options)
    limit = serving_support(profile).sequence_limit
    key = next(option.key for option in options if option.field == f"engine.{limit}")
    sequences = reader.integer(key)
    if sequences is not None:
        reader.set(key, "batch", sequences)
    if reader.field("kv_cache") is None:
        reader.assume(cache, "auto", "kv_cache", reader.field("compute") or "bf16")
    set_cards(reader)


def read_vllm_options(reader: ConfigReader) -> None:
    """Read the options of `vllm serve`."""
    read_engine_command(reader, "vllm", VLLM_OPTIONS, "--model", "--kv-cache-dtype")
    if reader.flag("--enable-expert-parallel"):
        reader.set("--enable-expert-parallel", "parallel.expert", reader.field("parallel.data") or 1)
    images = reader.strings("--limit-mm-per-prompt")
    if images is not None:
        reader.ignore_unestimated("--limit-mm-per-prompt", "the number of images in each prompt")
    size = reader.number("--kv-offloading-size")
    if size:
        reader.set("--kv-offloading-size", "cache_in_ram_bytes", round(size * GIB))
    _read_vllm_speculation(reader)
    read_adapters(reader, "--max-loras", "--lora-target-modules", slots=1)
    reader.ignore_rest(_VLLM_NEUTRAL)


def read_adapters(reader: ConfigReader, slots_key: str, targets_key: str, slots: int) -> None:
    """Read whether a server has slots for LoRA adapters, by default so many, and the layers that have one."""
    targets = reader.strings(targets_key)
    reader.ignore_all(("--lora-modules", "--lora-paths"), "each takes a slot when it is used")
    if reader.flag("--enable-lora"):
        reader.record_read("--enable-lora", "adapters.slots")
        if reader.field("adapters.slots") is None:
            reader.assume(slots_key, slots, "adapters.slots", slots)
    if targets is not None and targets != ("all",):
        reader.set(targets_key, "adapters.targets", targets)


def _read_vllm_speculation(reader: ConfigReader) -> None:
    """Read how tokens are drafted: a section in JSON, or an option for each of its keys."""
    shortcuts = {"method": "--spec-method", "model": "--spec-model", "num_speculative_tokens": "--spec-tokens"}
    read_options(reader, tuple(option._replace(key=shortcuts[option.key]) for option in VLLM_SPECULATION))
    text = reader.string(_SPECULATION)
    if text is None:
        return
    try:
        config = parse_json(text)
    except UnreadableFileError:
        config = None
    if not isinstance(config, dict):
        reader.fail(_SPECULATION, "must be an object in JSON")
    inner = reader.inline(_SPECULATION, config)
    read_options(inner, VLLM_SPECULATION)
    inner.ignore_rest(())


def read_llama_server(reader: ConfigReader) -> None:
    """Read the options of `llama-server`; its context is for all slots together."""
    reader.set_task_inference()
    key = next((key for key in ("--alias", "--model", "--hf-repo") if reader.has(key)), "--model")
    reader.read_model(key)
    reader.assume("engine", "llama-server", "profile", "llama.cpp")
    _read_weights(reader, "--model")
    if reader.raw("--n-gpu-layers") == "all":
        reader.ignore("--n-gpu-layers", "all layers, as in a plan that sets no number")
    read_options(reader, LLAMA_SERVER_OPTIONS)
    _read_slots(reader, "--parallel")
    context, slots = reader.integer("--ctx-size", low=0), reader.integer("--parallel")
    if context:
        reader.set("--ctx-size", "context_length", max(context // (slots or 1), 1))
    for key, value in (("--kv-unified", True), ("--no-kv-unified", False)):
        reader.set_if_enabled(key, "engine.kv_unified", value)
    adapters = reader.strings("--lora")
    if adapters:
        reader.set("--lora", "adapters.slots", len(adapters))
    draft = reader.string("--spec-draft-model")
    if draft is not None:
        reader.set("--spec-draft-model", "speculation.model", draft.rpartition("/")[2].removesuffix(".gguf"))
    _read_experts_in_ram(reader, "--cpu-moe", "--override-tensor")
    split = reader.strings("--tensor-split")
    if split is not None and len(split) > 1:
        reader.set("--tensor-split", "parallel.pipeline", len(split))
        if all(share.isdecimal() for share in split) and reader.string("--split-mode") in (None, "layer"):
            reader.set("--tensor-split", "parallel.pipeline_layers", tuple(map(int, split)))
    set_cards(reader)
    reader.ignore_rest(_LLAMA_NEUTRAL)


def read_ollama(reader: ConfigReader) -> None:
    """Read the parameters of a Modelfile and the environment of its server."""
    reader.set_task_inference()
    reader.read_model("ALIAS" if reader.has("ALIAS") else "FROM")
    reader.assume("engine", "llama-server", "profile", "llama.cpp")
    _read_weights(reader, "FROM")
    read_options(reader, OLLAMA_OPTIONS)
    read_options(reader, OLLAMA_ENVIRONMENT)
    _read_experts_in_ram(reader, "LLAMA_ARG_CPU_MOE", "LLAMA_ARG_OVERRIDE_TENSOR")
    _read_slots(reader, "OLLAMA_NUM_PARALLEL")
    reader.ignore_rest(("OLLAMA_SCHED_SPREAD",))


def override_of_layers(layers: Iterable[int]) -> str:
    """Return the value of `--override-tensor` that keeps the routed experts of `layers` in RAM, for llama.cpp.

    **Source**: llama.cpp 0.5.0 common/common.h: LLM_FFN_EXPS_REGEX, behind the number of a layer.
    """
    return rf"blk\.({'|'.join(map(str, layers))})\.ffn_(up|down|gate|gate_up)_(ch|)exps=CPU"


def _read_experts_in_ram(reader: ConfigReader, every: str, overrides: str) -> None:
    """Read which layers' routed experts are in RAM: all of them by the key `every`, or those that `overrides` match."""
    if reader.flag(every):
        reader.set(every, "engine.n_cpu_moe", _MOST_LAYERS)
    text = reader.string(overrides)
    if text is None:
        return
    layers: set[int] = set()
    for override in text.strip("\"'").split(","):
        pattern, _, place = override.rpartition("=")
        found = _layers_matched(pattern) if place.upper().startswith("CPU") else None
        if found is None:
            reader.ignore_unestimated(
                overrides, f"{override[:40]}; only whole layers' routed experts in RAM are estimated"
            )
            return
        layers.update(found)
    if layers == set(range(_MOST_LAYERS)):
        reader.set(overrides, "engine.n_cpu_moe", _MOST_LAYERS)
    else:
        reader.set(overrides, "engine.cpu_moe_layers", tuple(sorted(layers)))


def _layers_matched(pattern: str) -> list[int] | None:
    """Return the layers all of whose routed experts a pattern of tensor names matches; None if it matches others too.

    Patterns in which a repeated part repeats something are not tried, since they may take for ever.
    """
    if len(pattern) > _LONGEST_PATTERN or _REPEATED_GROUP.search(pattern) or len(_REPEATED.findall(pattern)) > 2:
        return None
    try:
        matches = re.compile(pattern).search
    except re.error:
        return None
    found = []
    for layer in range(_MOST_LAYERS):
        experts = [bool(matches(f"blk.{layer}.ffn_{part}_exps.weight")) for part in ("up", "down", "gate")]
        if any(bool(matches(f"blk.{layer}.{part}.weight")) for part in _NO_EXPERTS) or len(set(experts)) > 1:
            return None
        if experts[0]:
            found.append(layer)
    return found or None


def read_options(reader: ConfigReader, options: tuple[Option, ...]) -> None:
    """Read a table of options; a value that the table does not have is recorded as not estimated."""
    for option in options:
        key, ours = option.key, option.ours
        if option.kind == "switch":
            reader.set_if_enabled(key, option.field)
        elif option.kind == "integer" and reader.raw(key) != "all":
            reader.set_or_default(key, option.field, reader.integer(key, low=0))
        elif option.kind == "text":
            if (text := reader.string(key)) is not None:
                reader.set(key, option.field, text)
        elif option.kind == "number":
            reader.set_or_default(key, option.field, reader.number(key, high=1))
        elif (name := reader.string(key) if option.kind == "word" else None) is not None:
            if name in ours:
                reader.set(key, option.field, ours[name])
            else:
                reader.ignore_unestimated(key, f"{name[:40]}; the default is assumed")


def _read_weights(reader: ConfigReader, key: str) -> None:
    """Read the format of a GGUF file from its name, which ends with it by custom."""
    named = _GGUF_NAME.search(reader.string(key) or "")
    known = {name.casefold(): name for name in GGUF_FILE_TYPES}
    if named is not None and named[1].casefold() in known:
        reader.set(key, "weights", known[named[1].casefold()])


def _read_slots(reader: ConfigReader, key: str) -> None:
    slots = reader.integer(key)
    if slots is not None:
        reader.set(key, "batch", slots)


def set_cards(reader: ConfigReader) -> None:
    """Set the number of cards to the product of the degrees of parallelism."""
    cards = 1
    for name in ("tensor", "pipeline", "data"):
        degree = reader.field(f"parallel.{name}")
        cards *= degree if isinstance(degree, int) else 1
    reader.set_known_count(cards)
