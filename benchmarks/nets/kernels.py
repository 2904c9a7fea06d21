"""Single operators as published benchmarks run them: a script that runs each of its arguments twice, forward and back.

An argument is a kernel, whose kernels it are, and its sizes: `geglu,liger,8,1024,4096,11008`. Each frees all that it
had before the next one starts. Kernels that write in place do here what they do to memory, with PyTorch's operators.

**Source**: linkedin/Liger-Kernel benchmark/scripts/benchmark_{geglu,rope,kl_div,fused_moe}.py and utils.py
`run_memory_benchmark` (`retain_graph=True`), src/liger_kernel/ops/{geglu,rope}.py; InternLM/xtuner@b934f46
docs/en/pretrain_sft/advanced_tutorial/loss.md; for misses that they explain, Baichuan2's modeling_baichuan.py
`NormHead`, diffusers' `AutoencoderKL.decode`, and what old versions kept of BERT (old_transformers.py).
"""

import sys
from collections.abc import Callable
from typing import Any, Final

import torch
from torch import nn
from torch.nn import functional

PASSES: Final = 2
"""Gradients of the first pass stay, and the second adds to them."""
IN_PLACE: Final = "liger"
_LAST_LEVEL: Final = 4
Pass = Callable[[], object]


def _half(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, device="cuda", dtype=torch.bfloat16, requires_grad=True)


class GateInPlace(torch.autograd.Function):
    """A gate and its product, which keeps its two inputs and writes their gradients over them."""

    @staticmethod
    def forward(ctx: Any, gate: torch.Tensor, up: torch.Tensor) -> torch.Tensor:
        """Return memory for the product."""
        ctx.save_for_backward(gate, up)
        return torch.empty_like(gate)

    @staticmethod
    def backward(ctx: Any, *_: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return what was kept."""
        return tuple(ctx.saved_tensors)


class RotationInPlace(torch.autograd.Function):
    """Rotated queries and keys, written over copies that are laid out by token."""

    @staticmethod
    def forward(ctx: Any, query: torch.Tensor, key: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return both."""
        return _laid_out(query), _laid_out(key)

    @staticmethod
    def backward(ctx: Any, *gradients: torch.Tensor) -> tuple[torch.Tensor, ...]:
        """Return both gradients."""
        return tuple(_laid_out(gradient) for gradient in gradients)


def _laid_out(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).contiguous().transpose(1, 2)


def geglu(provider: str, batch: int, tokens: int, hidden: int, inner: int) -> Pass:
    """Return a pass of a gated feed-forward block."""
    x, gate, up, down = _half(batch, tokens, hidden), _half(inner, hidden), _half(inner, hidden), _half(hidden, inner)

    def run() -> None:
        a, b = functional.linear(x, gate), functional.linear(x, up)
        gated = GateInPlace.apply(a, b) if provider == IN_PLACE else functional.gelu(a, approximate="tanh") * b
        y = functional.linear(gated, down)
        y.backward(torch.randn_like(y), retain_graph=True)

    return run


def rope(provider: str, tokens: int, hidden: int, heads: int, kv_heads: int) -> Pass:
    """Return a pass of the rotation of queries and keys, whose angles are a product of matrices."""
    width = hidden // heads
    query, key = (_half(1, tokens, count, width).transpose(1, 2) for count in (heads, kv_heads))
    gradients = torch.randn_like(query), torch.randn_like(key)
    cosine, sine = (torch.randn(1, tokens, width, device="cuda", dtype=torch.bfloat16) for _ in range(2))

    def run() -> None:
        if provider == IN_PLACE:
            rotated = RotationInPlace.apply(query, key)
        else:
            rotated = tuple(x * cosine.unsqueeze(1) + _half_turn(x) * sine.unsqueeze(1) for x in (query, key))
        torch.autograd.grad(rotated, (query, key), gradients, retain_graph=True)

    return run


def _half_turn(x: torch.Tensor) -> torch.Tensor:
    half = x.shape[-1] // 2
    first = x[..., :half]
    second = x[..., half:]
    return torch.cat((-second, first), dim=-1)


def kl_div(_: str, batch: int, tokens: int, vocabulary: int) -> Pass:
    """Return a pass of the divergence of two distributions."""
    x = torch.randn(batch * tokens, vocabulary, requires_grad=True, device="cuda").log_softmax(dim=-1)
    target = torch.randn(batch * tokens, vocabulary, device="cuda").softmax(dim=-1)
    loss = nn.KLDivLoss(reduction="batchmean")
    return lambda: loss(x, target).backward(retain_graph=True)


def fused_moe(_: str, tokens: int, experts: int, hidden: int, inner: int, visits: int) -> Pass:
    """Return a pass of experts one after another, each with the same share of the tokens."""
    x = _half(tokens, hidden)
    gate_up, down = _half(experts, 2 * inner, hidden) * 0.02, _half(experts, hidden, inner) * 0.02
    weights, share = _half(tokens, visits), tokens * visits // experts

    def run() -> None:
        out = torch.zeros_like(x)
        for expert in range(experts):
            rows = torch.arange(share, device="cuda")
            gate, up = functional.linear(x[rows], gate_up[expert]).chunk(2, dim=-1)
            y = functional.linear(functional.silu(gate) * up, down[expert])
            out.index_add_(0, rows, y * weights[rows, rows % visits, None])
        out.backward(torch.randn_like(out), retain_graph=True)

    return run


def head(_: str, tokens: int, hidden: int, vocabulary: int) -> Pass:
    """Return a pass of a head and the cross entropy of its logits, whose gradients are dropped after it."""
    x, weight = _half(tokens, hidden), _half(vocabulary, hidden)
    target = torch.randint(0, vocabulary, (tokens,), device="cuda")

    def run() -> None:
        logits = functional.linear(x, weight)
        functional.cross_entropy(logits, target).backward()
        x.grad = weight.grad = None

    return run


def norm_head(_: str, tokens: int, hidden: int, vocabulary: int) -> Pass:
    """Return a pass of Baichuan's head, which normalises its frozen weight under autocast each time."""
    x = _half(tokens, hidden)
    weight = torch.empty(vocabulary, hidden, device="cuda", dtype=torch.bfloat16)

    def run() -> None:
        with torch.autocast("cuda", dtype=torch.bfloat16):
            logits = functional.linear(x, functional.normalize(weight))
        logits.backward(torch.randn_like(logits))

    return run


def image_decoder(_: str, side: int, copies: int) -> Pass:
    """Return a pass of the decoder of FLUX's images from `side` latent pixels.

    cuDNN's workspace for its channels-first tensors holds the input of each convolution (`copies` 1), or also the
    output (2).
    """

    def convolved(x: torch.Tensor, channels: int, kernel: int = 3) -> torch.Tensor:
        weight = torch.empty(channels, x.shape[1], kernel, kernel, device="cuda", dtype=torch.bfloat16)
        workspace = [torch.empty_like(x)] if copies else []
        y = functional.conv2d(x, weight, padding=kernel // 2)
        workspace += [torch.empty_like(y)] if copies > 1 else []
        return y

    def residual(x: torch.Tensor, channels: int) -> torch.Tensor:
        y = x
        for _ in range(2):
            y = functional.group_norm(y, 32)
            y = functional.silu(y)
            y = convolved(y, channels)
        return (x if x.shape[1] == channels else convolved(x, channels, 1)) + y

    @torch.no_grad()
    def run() -> None:
        x = convolved(torch.randn(1, 16, side, side, device="cuda", dtype=torch.bfloat16), 512)
        for level, channels in enumerate((512, 512, 512, 256, 128)):
            for _ in range(3 if level else 2):
                x = residual(x, channels)
            if 0 < level < _LAST_LEVEL:
                x = functional.interpolate(x, scale_factor=2.0, mode="nearest")
                x = convolved(x, channels)
        convolved(functional.silu(functional.group_norm(x, 32)), 3)

    return run


class Kept(torch.autograd.Function):
    """A tensor that is kept for the backward pass, as softmax did with its input before PyTorch 1.11."""

    @staticmethod
    def forward(ctx: Any, scores: torch.Tensor) -> torch.Tensor:
        """Return the tensor."""
        ctx.save_for_backward(scores)
        return scores.view_as(scores)

    @staticmethod
    def backward(_: Any, gradient: torch.Tensor) -> torch.Tensor:
        """Return the gradient."""
        return gradient


class BertLayer(nn.Module):
    """A layer of BERT with eager attention: `width` = 64 a for a heads, and four times as wide inside."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 64
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.norms = nn.ModuleList([nn.LayerNorm(width), nn.LayerNorm(width)])

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """Return the layer's output."""
        parts = (one(x).unflatten(-1, (self.heads, 64)).transpose(1, 2) for one in (self.query, self.key, self.value))
        query, key, value = parts
        scores = query @ key.transpose(-1, -2) / 8 + mask
        probabilities = functional.dropout(torch.softmax(Kept.apply(scores.float()), -1), 0.1)
        mixed = self.out((probabilities @ value).transpose(1, 2).flatten(2))
        x = self.norms[0](x + functional.dropout(mixed, 0.1))
        return self.norms[1](x + functional.dropout(self.down(functional.gelu(self.up(x))), 0.1))


def bert(precision: str, batch: int, tokens: int, layers: int, width: int) -> Pass:
    """Return a step of BERT with two classes as PyTorch 1.10 ran it, in fp32 or under autocast in fp16."""
    stack = nn.ModuleList([BertLayer(width) for _ in range(layers)]).to("cuda")
    words = nn.Embedding(30_522 + 512 + 2, width, device="cuda")
    classes = nn.Sequential(nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 2)).to("cuda")
    optimizer = torch.optim.AdamW([*stack.parameters(), *words.parameters(), *classes.parameters()], foreach=False)

    def run() -> None:
        mask = torch.zeros(batch, 1, 1, tokens, device="cuda")
        with torch.autocast("cuda", torch.float16, precision == "fp16"):
            x = functional.dropout(words(torch.randint(0, 30_000, (batch, tokens), device="cuda")), 0.1)
            for layer in stack:
                x = layer(x, mask)
            loss = functional.cross_entropy(classes(x[:, 0]), torch.zeros(batch, device="cuda", dtype=torch.int64))
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=False)

    return run


_ALL: Final = (geglu, rope, kl_div, fused_moe, head, norm_head, image_decoder, bert)
KERNELS: Final[dict[str, Callable[..., Pass]]] = {one.__name__: one for one in _ALL}


def main(words: list[str]) -> None:
    """Run each kernel that `words` name, one after another."""
    for word in words:
        name, provider, *sizes = word.split(",")
        run = KERNELS[name](provider, *map(int, sizes))
        for _ in range(PASSES):
            run()
        del run


if __name__ == "__main__":
    main(sys.argv[1:])
