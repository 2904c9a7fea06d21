"""Published runs that the estimator misses, with the mechanism that explains it: a script that runs its one argument.

The argument is a run and its sizes, `prompt_in_pieces,0.6B,30720,2048`.

**Source**: of each run in its docstring.
"""

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import torch
import transformers
from kernels import image_decoder
from torch import nn
from torch.nn import functional

_QWEN3: Final = {
    "0.6B": {"hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16},
    "8B": {"hidden_size": 4096, "intermediate_size": 12_288, "num_hidden_layers": 36, "num_attention_heads": 32},
}
_WRITTEN: Final = 2048
_HALF: Final = torch.bfloat16


def _uncopied(_: nn.Module, query: torch.Tensor, *__: object, **___: object) -> tuple[torch.Tensor, None]:
    """Return memory for the mixed tokens: FlashAttention reads keys and values where they are, copying nothing."""
    return torch.empty_like(query.transpose(1, 2)), None


def prompt_in_pieces(size: str, prompt: str, piece: str) -> None:
    """Read the last two pieces of a prompt into a Qwen3's cache for it and 2,048 more tokens, and write one.

    The cache is allocated once, so that earlier pieces leave nothing.

    **Source**: transformers 4.51.3 generation/utils.py `_prefill_chunking` (`prefill_chunk_size`), cache_utils.py
    `StaticCache`.
    """
    transformers.AttentionInterface.register("uncopied", _uncopied)
    sizes: dict[str, Any] = _QWEN3[size] | {"vocab_size": 151_936, "num_key_value_heads": 8, "head_dim": 128}
    config = transformers.Qwen3Config(**sizes, tie_word_embeddings=size == "0.6B", attn_implementation="uncopied")
    with torch.device("cuda"):
        model = transformers.Qwen3ForCausalLM._from_config(config, dtype=_HALF)  # noqa: SLF001
    cache = transformers.StaticCache(config, int(prompt) + _WRITTEN)
    with torch.no_grad():
        for tokens in [int(piece)] * min(2, int(prompt) // int(piece)) + [1]:
            model(torch.zeros(1, tokens, dtype=torch.int64, device="cuda"), past_key_values=cache, logits_to_keep=1)


def bert_generating(attention: str, batch: str, prompt: str, written: str) -> None:
    """Take the last steps of `generate` with BERT, which has no cache, so that each step reads all tokens again.

    It is loaded in fp32 and cast on the card, which leaves its blocks with ends (`hf_model.to(torch.float16)`).

    **Source**: the benchmark of transformers' pages on attention (`--is_decoder`, `model.generate`); transformers 4.38
    modeling_bert.py (`use_cache` only of a decoder), generation/utils.py (`outputs` lives until the next is assigned).
    """
    config = transformers.BertConfig(attn_implementation=attention)
    with torch.device("cuda"):
        model = transformers.BertLMHeadModel(config).half().eval()
    outputs = None
    with torch.no_grad():
        for tokens in range(int(prompt) + int(written) - 3, int(prompt) + int(written)):
            ids = torch.zeros(int(batch), tokens, dtype=torch.int64, device="cuda")
            outputs = model(ids, attention_mask=torch.ones_like(ids))
    del outputs


def bert_summed(attention: str, batch: str, tokens: str) -> None:
    """Take steps with the sum of all logits as the loss and without an optimizer, in fp32.

    **Source**: huggingface/optimum tests/benchmark/benchmark_bettertransformer_training_minimal.py, and the script of
    huggingface/transformers#31031 that comes from it (`model.zero_grad()`, `outputs.logits.sum().backward()`).
    """
    config = transformers.BertConfig(attn_implementation=attention)
    with torch.device("cuda"):
        model = transformers.BertLMHeadModel(config)
    model.train()
    ids = torch.zeros(int(batch), int(tokens), dtype=torch.int64, device="cuda")
    for _ in range(6):
        model.zero_grad()
        outputs = model(ids, attention_mask=torch.ones_like(ids))
        outputs.logits.sum().backward()


def distilbert(attention: str, batch: str, tokens: str) -> None:
    """Read a batch with a DistilBERT without a head that was cast on the card, while the first result is still held.

    **Source**: the benchmark of transformers' pages on attention (`AutoModel`; `benchmark` holds the warm-up's result).
    """
    config = transformers.DistilBertConfig(attn_implementation=attention)
    with torch.device("cuda"):
        model = transformers.DistilBertModel(config).half().eval()
    ids = torch.zeros(int(batch), int(tokens), dtype=torch.int64, device="cuda")
    with torch.no_grad():
        first = model(ids, torch.ones(int(batch), int(tokens), device="cuda"))
        model(ids, torch.ones(int(batch), int(tokens), device="cuda"))
    del first


class BookAttention(nn.Module):
    """Attention of the book's GPT: written out, or PyTorch's."""

    def __init__(self, width: int, heads: int, *, own: bool) -> None:
        super().__init__()
        self.heads, self.own = heads, own
        self.qkv = nn.Linear(width, 3 * width, bias=False) if not own else None
        self.parts = nn.ModuleList([nn.Linear(width, width, bias=False) for _ in range(3)]) if own else None
        self.out = nn.Linear(width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the mixed tokens."""
        batch, tokens, width = x.shape
        if self.parts is None:
            assert self.qkv is not None
            parts = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
            mixed = functional.scaled_dot_product_attention(*parts, dropout_p=0.1, is_causal=True)
            return self.out(mixed.transpose(1, 2).contiguous().view(batch, tokens, width))
        key, query, value = (
            part(x).view(batch, tokens, self.heads, width // self.heads).transpose(1, 2) for part in self.parts
        )
        scores = query @ key.transpose(2, 3)
        mask = torch.triu(torch.ones(tokens, tokens, device=x.device), diagonal=1)
        scores.masked_fill_(mask.bool(), -torch.inf)
        weights = torch.softmax(scores / (width // self.heads) ** 0.5, dim=-1)
        weights = functional.dropout(weights, 0.1)
        mixed = (weights @ value).transpose(1, 2)
        return self.out(mixed.reshape(batch, tokens, width))


class BookLayer(nn.Module):
    """A layer of the book's GPT."""

    def __init__(self, width: int, heads: int, *, own: bool) -> None:
        super().__init__()
        self.attention = BookAttention(width, heads, own=own)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])
        self.block = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU("tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        shortcut = x
        x = self.norms[0](x)
        x = self.attention(x)
        x = functional.dropout(x, 0.1)
        x = x + shortcut
        shortcut = x
        x = self.norms[1](x)
        x = self.block(x)
        x = functional.dropout(x, 0.1)
        return x + shortcut


def book_gpt(attention: str, batch: str, tokens: str) -> None:
    """Train the book's GPT of 124 million parameters for three steps in bf16, its head not tied, in its first epoch.

    **Source**: rasbt/LLMs-from-scratch ch05/10_llm-training-speed/00_orig.py `MultiHeadAttention` (`own`),
    01_opt_single_gpu.py `GPTModel`, `calc_loss_batch`, `train_model_simple_with_timing`.
    """
    width, vocabulary = 768, 50_257
    with torch.device("cuda"):
        embeddings = nn.ModuleList([nn.Embedding(vocabulary, width), nn.Embedding(int(tokens), width)])
        layers = nn.Sequential(*(BookLayer(width, 12, own=attention == "own") for _ in range(12)))
        last = nn.Sequential(nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False))
    model = nn.ModuleList([embeddings, layers, last]).to(_HALF)
    optimizer = torch.optim.AdamW(model.parameters(), fused=True)

    def loss_of() -> torch.Tensor:
        ids = torch.zeros(int(batch), int(tokens), dtype=torch.int64, device="cuda")
        x = embeddings[0](ids) + embeddings[1](torch.arange(int(tokens), device="cuda"))
        x = functional.dropout(x, 0.1)
        logits = last(layers(x))
        return functional.cross_entropy(logits.flatten(0, 1), ids.flatten())

    for step in range(3):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        optimizer.step()
        if not step:
            with torch.no_grad():
                loss_of()


def image(size: str) -> None:
    """Take one step of FLUX's denoiser for an image of `size` latent pixels a side, and decode it.

    Of the denoiser's 19 and 38 blocks one of each runs, with the weights of its products. cuDNN lays channels-first
    images out anew for tensor cores, and their results back.

    **Source**: diffusers 0.35 models/transformers/transformer_flux.py `FluxTransformerBlock`,
    `FluxSingleTransformerBlock`, `FluxAttnProcessor`, models/embeddings.py `apply_rotary_emb`; `kernels.image_decoder`;
    NVIDIA's guide to convolutional layers ("automatic transpose operations" around kernels that need NHWC).
    """
    width, text, heads = 3072, 512, 24
    picture = (int(size) // 2) ** 2
    angles = [torch.empty(text + picture, width // heads, device="cuda") for _ in range(2)]
    linear = partial(nn.Linear, device="cuda", dtype=_HALF)
    qkv = [linear(width, width) for _ in range(3)]

    def scaled(x: torch.Tensor) -> torch.Tensor:
        normed = functional.layer_norm(x, (width,))
        return normed * (1 + x[:, :1]) + x[:, :1]

    def turned(x: torch.Tensor) -> torch.Tensor:
        x = x.unflatten(-1, (heads, -1))
        x = x * torch.rsqrt(x.float().pow(2).mean(-1, keepdim=True)).to(_HALF)
        real, imaginary = x.reshape(*x.shape[:-1], -1, 2).unbind(-1)
        rotated = torch.stack([-imaginary, real], dim=-1).flatten(3)
        cosine, sine = (angle[: x.shape[1], None] for angle in angles)
        return (x.float() * cosine + rotated.float() * sine).to(_HALF)

    def mixed(x: torch.Tensor) -> torch.Tensor:
        query, key, value = (one(x) for one in qkv)
        query, key = turned(query), turned(key)
        parts = (part.transpose(1, 2) for part in (query, key, value.unflatten(-1, (heads, -1))))
        return functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)

    up, down = linear(width, 4 * width), linear(4 * width, width)
    out, single = linear(width, width), linear(5 * width, width)
    with torch.no_grad():
        x, y = (torch.randn(1, tokens, width, device="cuda", dtype=_HALF) for tokens in (picture, text))
        normed = torch.cat([scaled(y), scaled(x)], 1)
        attended = mixed(normed)
        del normed
        x, y = x + out(attended[:, text:]) * x[:, :1], y + out(attended[:, :text]) * y[:, :1]
        del attended
        x, y = (part + down(functional.gelu(up(scaled(part)), approximate="tanh")) * part[:, :1] for part in (x, y))
        whole = torch.cat([y, x], 1)
        del x, y
        normed = scaled(whole)
        inner = functional.gelu(up(normed), approximate="tanh")
        whole = whole + single(torch.cat([mixed(normed), inner], 2)) * whole[:, :1]
        del normed, inner, whole
    image_decoder("torch", int(size), 2)()


def bert_adafactor(batch: str, tokens: str) -> None:
    """Take two steps of BERT Large with Adafactor under autocast, each layer computed again.

    **Source**: transformers docs/source/en/perf_train_gpu_one.mdx (`gradient_checkpointing`, `fp16`, `adafactor`).
    """
    config = transformers.BertConfig(
        hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096,
        attn_implementation="eager",
    )  # fmt: skip
    with torch.device("cuda"):
        model = transformers.BertForSequenceClassification(config)
    model.gradient_checkpointing_enable()
    model.train()
    optimizer = transformers.Adafactor(model.parameters(), lr=5e-5, scale_parameter=False, relative_step=False)
    for _ in range(2):
        for _ in range(4):
            ids = torch.zeros(int(batch), int(tokens), dtype=torch.int64, device="cuda")
            with torch.autocast("cuda", torch.float16):
                loss = model(ids, labels=ids[:, 0]).loss
            loss.backward()
        optimizer.step()
        model.zero_grad(set_to_none=False)


RUNS: Final[dict[str, Callable[..., None]]] = {
    one.__name__: one
    for one in (prompt_in_pieces, bert_generating, bert_summed, distilbert, image, book_gpt, bert_adafactor)
}

if __name__ == "__main__":
    run, *words = sys.argv[1].split(",")
    RUNS[run](*words)
