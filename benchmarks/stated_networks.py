"""Networks of published measurements that the catalog has not, from the configuration that their page states."""

from typing import Final, NamedTuple

from memory_rows import Excluded, Row

from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config
from planner.plan.catalog import Catalog
from planner.workload.training import Training

_BERT: Final[dict[str, object]] = {
    "model_type": "bert",
    "architectures": ["BertModel"],
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu",
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
_ALBERT: Final[dict[str, object]] = {
    "model_type": "albert",
    "architectures": ["AlbertModel"],
    "vocab_size": 30_000,
    "embedding_size": 128,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_act": "gelu_new",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
}
_GPT: Final[dict[str, object]] = {
    "model_type": "gpt2",
    "vocab_size": 50_257,
    "n_positions": 1024,
    "n_embd": 768,
    "n_layer": 12,
    "n_head": 12,
    "tie_word_embeddings": False,
}
_CONFIGURED: Final = {
    "albert/albert-base-v1": _ALBERT,
    "bert-base config, hidden 384": _BERT | {"hidden_size": 384},
    "bert-base config, 6 layers": _BERT | {"num_hidden_layers": 6},
}
"""Networks that the catalog has not. ALBERT is what its class is by default, in the base size of its documentation:
its page names `AlbertModel` and no configuration.

**Source**: transformers configuration_albert.py (defaults, "ALBERT-base style configuration"); docs/source/en/
benchmarks.md (`BertConfig(hidden_size=384)`, `num_hidden_layers=6`), model_doc/albert.md.
"""


class ScratchRun(NamedTuple):
    """A network that its script builds from scratch, and its training."""

    architecture: Architecture
    workload: Training


def architecture_of(row: Row, catalog: Catalog) -> Architecture:
    """Return the row's network: from the catalog, or from the configuration that its page states.

    Raises:
        PlannerError: If it is in neither.
    """
    if row.model in _CONFIGURED:
        return read_config(_CONFIGURED[row.model], row.model)
    return catalog.models.model(row.model)


def scratch_run(row: Row) -> ScratchRun | Excluded:
    """Return the book's GPT as GPT-2 of its sizes, whose loss reads the logits as they are, and its training.

    **Source**: rasbt/LLMs-from-scratch ch05/10_llm-training-speed/00_orig.py, 01_opt_single_gpu.py (`calc_loss_batch`).
    """
    if "compile" in row.technique:
        return Excluded("a network under torch.compile")
    own = "gelu_pytorch_tanh" if "torch LayerNorm" in row.technique or "Flash" in row.technique else "gelu_new"
    network = read_config(_GPT | {"activation_function": own}, row.id).evolve(loss_reads="logits")
    scheme = row.scheme or ""
    workload = Training(
        weights=scheme,
        compute=scheme,
        optimizer="adamw",
        micro_batch=int(row.batch),
        sequence_length=int(row.length),
        attention="flash" if "Flash" in row.technique else "eager",
    )
    return ScratchRun(network, workload)
