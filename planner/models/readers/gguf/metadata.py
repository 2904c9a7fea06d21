"""Typed, validated access to the metadata of a GGUF file."""

from typing import Final, NoReturn

from planner.errors import ModelFileError
from planner.models.readers.config_fields import MAX_LAYERS, MAX_WIDTH
from planner.models.readers.gguf.header import GgufFile, GgufTensor, OmittedValue
from planner.models.readers.sources import quoted_text

_HINT: Final = "Check that it is a language model's GGUF file as llama.cpp's converter writes it."
_EMBEDDING: Final = "token_embd.weight"
_MAX_WINDOW: Final = 10**9
_MAX_CONTEXT: Final = 10**9


class GgufMetadata:
    """Metadata and tensors of a GGUF file that describe its network."""

    def __init__(self, file: GgufFile, place: str) -> None:
        self._file, self._place = file, place
        self._tensors = {tensor.name: tensor for tensor in file.tensors}

    @property
    def architecture(self) -> str:
        """Return the llama.cpp name of the file's architecture."""
        found = self._file.metadata.get("general.architecture")
        if not isinstance(found, str):
            self.fail("general.architecture", "is missing or no text")
        return found

    @property
    def kind(self) -> str:
        """Return the kind of the file's content, by default `model`."""
        return str(self._file.metadata.get("general.type", "model"))

    @property
    def layers(self) -> int:
        """Return the number of layers, without layers for multi-token prediction."""
        count = self.integer("block_count", high=MAX_LAYERS)
        more = self.optional_integer("nextn_predict_layers", low=0, high=count - 1) or 0
        return count - more

    @property
    def vocabulary(self) -> int:
        """Return the number of rows in the token embedding, or of vocabulary tokens if the file has no tensors."""
        table = self._tensors.get(_EMBEDDING)
        if table is not None:
            return table.shape[-1]
        tokens = self._file.metadata.get("tokenizer.ggml.tokens")
        return tokens.length if isinstance(tokens, OmittedValue) else self.integer("vocab_size")

    @property
    def context(self) -> int | None:
        """Return the maximum context length in tokens, or None if not stated."""
        return self.optional_integer("context_length", high=_MAX_CONTEXT)

    @property
    def dense_width(self) -> int | None:
        """Return the width of a dense feed-forward block from its tensors; some converters write a wrong value."""
        tensor = self.tensor("ffn_down.weight")
        return self.optional_integer("feed_forward_length", low=0) or None if tensor is None else tensor.shape[0]

    @property
    def kv_heads(self) -> int | None:
        """Return the number of key/value heads in attention layers; other layers state 0."""
        found = set(self.integers("attention.head_count_kv") or ()) - {0}
        if len(found) > 1:
            self.fail("attention.head_count_kv", "differs between layers, which is not supported for this architecture")
        return found.pop() if found else None

    @property
    def window(self) -> int | None:
        """Return the sliding window in tokens, or None."""
        return self.optional_integer("attention.sliding_window", low=0, high=_MAX_WINDOW) or None

    @property
    def expert_width(self) -> int:
        """Return the feed-forward width of an expert, from the tensors in old files that do not state it."""
        stated = self.optional_integer("expert_feed_forward_length")
        tensor = self.tensor("ffn_up_exps.weight")
        if stated is None and tensor is not None and len(tensor.shape) == 3:
            return tensor.shape[1]
        return stated or self.integer("feed_forward_length")

    @property
    def shared_width(self) -> int:
        """Return the total width of the shared experts; 0 if there are none."""
        tensor = self.tensor("ffn_up_shexp.weight")
        stated = self.optional_integer("expert_shared_feed_forward_length", low=0)
        return stated or (tensor.shape[-1] if tensor is not None else 0)

    @property
    def file_type(self) -> object:
        """Return the file type's number in `general.file_type`."""
        return self._file.metadata.get("general.file_type")

    def has(self, *name_endings: str) -> bool:
        """Return whether the file has a tensor whose name ends in one of `name_endings`."""
        return any(self.tensor(ending) is not None for ending in name_endings)

    def tensor(self, name_ending: str) -> GgufTensor | None:
        """Return the first tensor whose name ends in `name_ending`, or None."""
        return next(
            (
                tensor
                for name, tensor in self._tensors.items()
                if name == name_ending or name.endswith(f".{name_ending}")
            ),
            None,
        )

    def integer(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int:
        """Return the required whole number `name`; values per layer must be equal."""
        found = self.optional_integer(name, low=low, high=high)
        if found is None:
            self.fail(name, "is missing")
        return found

    def optional_integer(self, name: str, *, low: int = 1, high: int = MAX_WIDTH) -> int | None:
        """Return the whole number `name`, or None if it is missing."""
        found = self.integers(name, low=low, high=high)
        if found is None:
            return None
        if len(set(found)) != 1:
            self.fail(name, "differs between layers, which is not supported for this architecture")
        return found[0]

    def integers(self, name: str, *, low: int = 0, high: int = MAX_WIDTH) -> tuple[int, ...] | None:
        """Return the whole numbers `name`, one per layer or a single one, or None if they are missing."""
        value = self._file.metadata.get(self._key(name))
        if value is None:
            return None
        items = value if isinstance(value, tuple) and not isinstance(value, OmittedValue) else (value,)
        found = tuple(item for item in items if isinstance(item, int) and low <= item <= high)
        if len(found) != len(items) or not found:
            self.fail(name, f"must hold whole numbers from {low:,} to {high:,}")
        return found

    def flag(self, name: str) -> bool | None:
        """Return the flag `name`, or None if it is missing."""
        value = self._file.metadata.get(self._key(name))
        return value if isinstance(value, bool) else None

    def fail(self, name: str, reason: str) -> NoReturn:
        """Raise a `ModelFileError` about the value `name`."""
        raise ModelFileError(self._place, f"{quoted_text(self._key(name))} {reason}", _HINT)

    def _key(self, name: str) -> str:
        """Return the metadata key of the value `name`, with the architecture's prefix."""
        return name if name.startswith("general.") else f"{self.architecture}.{name}"
