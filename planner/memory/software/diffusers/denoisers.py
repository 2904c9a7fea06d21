"""Operators of the denoisers of diffusers, in the order and with the variables of its modules, for a `Tape`.

**Source**: diffusers 0.42 models/unets/unet_2d_condition.py, unet_2d_blocks.py, resnet.py, attention.py,
attention_processor.py, normalization.py and models/transformers/transformer_{2d,flux,sd3}.py,
pixart_transformer_2d.py, which traces of these modules agree with (`benchmarks/denoiser_accuracy.py`).
"""

from functools import partial
from typing import Final, NamedTuple

from planner.memory.training.tape import Tape, Value
from planner.models.diffusion import Component, Denoiser, DiffusionTransformer, ImageDecoder, UNet, UNetModule
from planner.units import ceil_div

_FP32: Final = 4
_FACTORS: Final = 4
_TIME: Final = 256
_KERNEL: Final = 9
_COLORS: Final = 3
_TEXT: Final = "time_text_embed"
_ADAPTIVE: Final = "adaln_single.emb"
_JOINT: Final = "transformer_blocks"
_SINGLE: Final = "single_transformer_blocks"
_LAST: Final = f"{_JOINT}.last"
_DUAL: Final = f"{_JOINT}.dual"
_POOLED: Final = ("add_embedding.linear_1", f"{_TEXT}.text_embedder.linear_1")


class DenoiserInputs(NamedTuple):
    """Sizes that a denoiser reads: a latent image, text tokens, and the numbers of a pooled text, 0 for none.

    `guided` means that it embeds the strength of guidance (FLUX), `sized` that it embeds the size of the image
    (PixArt), `normed_heads` that queries and keys are normed (Stable Diffusion 3.5).
    """

    height: int
    width: int
    text: int
    pooled: int = 0
    guided: bool = False
    sized: bool = False
    normed_heads: bool = False


def denoiser_inputs(component: Component, height: int, width: int, text: int) -> DenoiserInputs:
    """Return the sizes that a denoiser reads for a latent image and `text` tokens, by the shapes of its tensors."""
    shapes = {tensor.name.removesuffix(".weight"): tensor.shape for tensor in component.tensors}
    pooled = next((shapes[name][1] for name in _POOLED if name in shapes), 0)
    return DenoiserInputs(
        height,
        width,
        text,
        pooled,
        guided=f"{_TEXT}.guidance_embedder.linear_1" in shapes,
        sized=f"{_ADAPTIVE}.resolution_embedder.linear_1" in shapes,
        normed_heads=f"{_JOINT}.attn.norm_q" in shapes,
    )


def denoiser_pass(tape: Tape, network: Denoiser, inputs: DenoiserInputs) -> Value:
    """Return what `network` predicts for an image, with its operators recorded on `tape`."""
    if isinstance(network, UNet):
        return _UNetPass(tape, network, inputs).run()
    return _TransformerPass(tape, network, inputs).run()


class _FeatureMaps:
    """Convolutions and residual blocks over feature maps of `height` × `width`, whose sides each level halves.

    Residual blocks read an embedded time of `time_width` numbers if they are given one.
    """

    time_width = 0

    def __init__(self, tape: Tape, height: int, width: int) -> None:
        self.tape, self.height, self.width = tape, height, width
        self.size = tape.formats.computed

    def pixels(self, level: int) -> int:
        """Return the number of pixels of the feature maps of a level."""
        return ceil_div(self.height, 2**level) * ceil_div(self.width, 2**level)

    def convolved(self, x: Value, level: int, into: int, out: int, kernel: int = _KERNEL) -> Value:
        """Return the output of a convolution with feature maps of `level`."""
        return self.tape.convolution(x, self.pixels(level) * out, kernel * into * out + out)

    def resnet(self, name: str, level: int, into: int, out: int, x: Value, time: Value | None = None) -> tuple[Value]:
        """Return the output of `ResnetBlock2D`."""
        tape = self.tape
        h = tape.activation(tape.norm(x, 2 * into))
        h = self.convolved(h, level, into, out)
        if time is not None:
            h = tape.add(h, tape.linear(tape.activation(time), self.time_width, out, f"{name}.time_emb_proj"))
        h = tape.norm(h, 2 * out)
        h = tape.activation(h)
        h = self.convolved(h, level, out, out)
        if into != out:
            x = self.convolved(x, level, into, out, kernel=1)
        return (tape.scaled(tape.add(x, h)),)


class _UNetPass(_FeatureMaps):
    """A forward pass through a U-Net."""

    def __init__(self, tape: Tape, network: UNet, inputs: DenoiserInputs) -> None:
        super().__init__(tape, inputs.height, inputs.width)
        self.network, self.inputs = network, inputs
        self.time_width = _FACTORS * network.channels[0]

    def run(self) -> Value:
        """Return the predicted noise."""
        tape, network, first = self.tape, self.network, self.network.channels[0]
        time = self.embedded_time()
        text = tape.value(self.inputs.text * network.text_width, self.size)
        x = tape.value(self.pixels(0) * network.latent_channels, self.size)
        x = self.convolved(x, 0, network.latent_channels, first)
        skips = [x]
        rising = False
        for number, step in enumerate(network.steps()):
            name = f"{step.kind}.{number}"
            if step.kind == "mid":
                x = self.resnet(f"{name}.0", step.level, step.into, step.out, x, time)[0]
                x = self.transformer(f"{name}.1", step, x, text)
                block = partial(self.resnet, f"{name}.2", step.level, step.out, step.out)
                x = tape.checkpoint(block, x, time)[0]
                rising = True
            elif step.kind == "resnet":
                if rising:
                    x = tape.concatenate(x, skips.pop())
                x = tape.checkpoint(partial(self.resnet, name, step.level, step.into, step.out), x, time)[0]
                if not rising and not network.depths[step.level]:
                    skips.append(x)
            elif step.kind == "transformer":
                x = self.transformer(name, step, x, text)
                if not rising:
                    skips.append(x)
            elif step.kind == "down":
                x = self.convolved(x, step.level + 1, step.out, step.out)
                skips.append(x)
            else:
                x = tape.resized(x, self.pixels(step.level - 1) * step.out)
                x = self.convolved(x, step.level - 1, step.out, step.out)
        x = tape.activation(tape.norm(x, 2 * first))
        return self.convolved(x, 0, first, network.latent_channels)

    def embedded_time(self) -> Value:
        """Return the embedding of the denoising step, to which SDXL adds that of pooled text and sizes."""
        time = self.embedded("time_embedding", self.network.channels[0])
        return self.tape.add(time, self.embedded("add_embedding", self.inputs.pooled)) if self.inputs.pooled else time

    def embedded(self, name: str, into: int) -> Value:
        """Return `into` numbers embedded by two linear layers."""
        tape, wide = self.tape, self.time_width
        x = tape.linear(tape.value(into, self.size), into, wide, f"{name}.linear_1")
        return tape.linear(tape.activation(x), wide, wide, f"{name}.linear_2")

    def transformer(self, name: str, step: UNetModule, x: Value, text: Value) -> Value:
        """Return the output of `Transformer2DModel`, whose blocks are checkpointed one by one."""
        tape, wide = self.tape, step.out
        h = tape.norm(x, 2 * wide)
        if self.network.linear_projection:
            h = tape.linear(h, wide, wide, f"{name}.proj_in")
        else:
            h = self.convolved(h, step.level, wide, wide, kernel=1)
        for _ in range(step.depth):
            h = tape.checkpoint(partial(self.block, f"{name}.transformer_blocks", step), h, text)[0]
        if self.network.linear_projection:
            h = tape.copy(tape.linear(h, wide, wide, f"{name}.proj_out"))
        else:
            h = self.convolved(tape.copy(h), step.level, wide, wide, kernel=1)
        return tape.add(h, x)

    def block(self, name: str, step: UNetModule, x: Value, text: Value) -> tuple[Value]:
        """Return the output of `BasicTransformerBlock` with a gated feed-forward block."""
        tape, wide = self.tape, step.out
        n = tape.norm(x, 2 * wide)
        x = tape.add(self.attention(step, n, n, wide, f"{name}.attn1"), x)
        n = tape.norm(x, 2 * wide)
        x = tape.add(self.attention(step, n, text, self.network.text_width, f"{name}.attn2"), x)
        n = tape.norm(x, 2 * wide)
        inner = _FACTORS * wide
        h = tape.linear(n, wide, 2 * inner, f"{name}.ff.net.0.proj")
        h, gate = tape.split(h, h.elements // 2, h.elements // 2)
        h = tape.multiply(h, tape.activation(gate))
        del gate
        return (tape.add(tape.linear(h, inner, wide, f"{name}.ff.net.2"), x),)

    def attention(self, step: UNetModule, x: Value, source: Value, source_width: int, name: str) -> Value:
        """Return the output of `AttnProcessor2_0`."""
        tape, wide = self.tape, step.out
        query = tape.linear(x, wide, wide, f"{name}.to_q", bias=False)
        key = tape.linear(source, source_width, wide, f"{name}.to_k", bias=False)
        value = tape.linear(source, source_width, wide, f"{name}.to_v", bias=False)
        h = tape.attention(query, key, value, self.network.heads[step.level] * self.pixels(step.level))
        h = tape.linear(h, wide, wide, f"{name}.to_out.0")
        return tape.scaled(h)


def image_encoder_pass(tape: Tape, network: ImageDecoder, height: int, width: int) -> Value:
    """Return the latent image of an image of `height` × `width` pixels, by the encoder that mirrors a decoder."""
    maps, channels, last = _FeatureMaps(tape, height, width), network.channels, len(network.channels) - 1
    x = maps.convolved(tape.value(maps.pixels(0) * _COLORS, maps.size), 0, _COLORS, channels[0])
    wide = channels[0]
    for level, out in enumerate(channels):
        for _ in range(network.layers):
            x = maps.resnet("", level, wide, out, x)[0]
            wide = out
        if level < last:
            x = maps.convolved(tape.copy(x), level + 1, wide, wide)
    x = maps.resnet("", last, wide, wide, x)[0]
    n = tape.norm(x, 2 * wide)
    query, key, value = (tape.linear(n, wide, wide, "") for _ in range(3))
    h = tape.attention(query, key, value, maps.pixels(last))
    x = tape.scaled(tape.add(tape.linear(h, wide, wide, ""), x))
    del n, query, key, value, h
    x = maps.resnet("", last, wide, wide, x)[0]
    return maps.convolved(tape.activation(tape.norm(x, 2 * wide)), last, wide, 2 * network.latent_channels)


class _TransformerPass:
    """A forward pass through a diffusion transformer: FLUX, Stable Diffusion 3 or PixArt."""

    def __init__(self, tape: Tape, network: DiffusionTransformer, inputs: DenoiserInputs) -> None:
        self.tape, self.network, self.inputs = tape, network, inputs
        self.size, self.hidden, self.inner = tape.formats.computed, network.hidden, network.intermediate
        self.heads = network.hidden // network.head_dim
        self.image = ceil_div(inputs.height, network.patch) * ceil_div(inputs.width, network.patch)

    def run(self) -> Value:
        """Return the predicted velocity or noise, patch by patch."""
        return _RUNS[self.network.family](self)

    def mlp(self, into: int, name: str, out: int = 0) -> Value:
        """Return an embedding of `into` numbers by two linear layers, as of the time or of a pooled text."""
        tape, wide = self.tape, out or self.hidden
        x = tape.activation(tape.linear(tape.value(into, self.size), into, wide, f"{name}.linear_1"))
        return tape.linear(x, wide, wide, f"{name}.linear_2")

    def embedded_time(self) -> Value:
        """Return the embedded denoising step, with that of the pooled text, and of the strength of guidance."""
        time = self.mlp(_TIME, f"{_TEXT}.timestep_embedder")
        time = self.tape.add(time, self.mlp(self.inputs.pooled, f"{_TEXT}.text_embedder"))
        return self.tape.add(time, self.mlp(_TIME, f"{_TEXT}.guidance_embedder")) if self.inputs.guided else time

    def patches(self) -> Value:
        """Return the embedded patches of a latent image, with their positions."""
        cells = self.network.latent_channels * self.network.patch**2
        x = self.tape.value(self.image * cells, self.size)
        x = self.tape.convolution(x, self.image * self.hidden, cells * self.hidden + self.hidden)
        return self.tape.cast(self.tape.copy(x), self.size)

    def modulation(self, time: Value, parts: int, name: str) -> Value:
        """Return scales, shifts and gates of a block, computed from the embedded time."""
        return self.tape.linear(self.tape.activation(time), self.hidden, parts * self.hidden, name)

    def modulated(self, x: Value, by: Value) -> Value:
        """Return a norm of `x`, scaled and shifted."""
        return self.shifted(self.tape.norm(x, 0), by)

    def shifted(self, normed: Value, by: Value) -> Value:
        """Return `normed`, scaled and shifted."""
        return self.tape.add(self.tape.multiply(normed, by), by)

    def projected(self, x: Value, names: str) -> list[Value]:
        """Return queries, keys and values of tokens."""
        return [self.tape.linear(x, self.hidden, self.hidden, names.format(one)) for one in "qkv"]

    def attended(self, queries: Value, keys: Value, values: Value) -> Value:
        """Return the result of attention among all tokens."""
        return self.tape.attention(queries, keys, values, queries.elements // self.network.head_dim)

    def feed_forward(self, x: Value, name: str) -> Value:
        """Return the output of `FeedForward` with GELU."""
        tape = self.tape
        h = tape.activation(tape.linear(x, self.hidden, self.inner, f"{name}.net.0.proj"))
        return tape.linear(h, self.inner, self.hidden, f"{name}.net.2")

    def output(self, x: Value, time: Value) -> Value:
        """Return the patches that the last layers predict (`AdaLayerNormContinuous`)."""
        x = self.modulated(x, self.modulation(time, 2, "norm_out.linear"))
        return self.tape.linear(x, self.hidden, self.network.latent_channels * self.network.patch**2, "proj_out")

    def flux(self) -> Value:
        """Return what `FluxTransformer2DModel` predicts; its pipeline has packed the latents into patches."""
        tape, network, hidden = self.tape, self.network, self.hidden
        x = tape.value(self.image * network.latent_channels, self.size)
        x = tape.linear(x, network.latent_channels, hidden, "x_embedder")
        time = self.embedded_time()
        text = tape.value(self.inputs.text * network.text_width, self.size)
        text = tape.linear(text, network.text_width, hidden, "context_embedder")
        for _ in range(network.blocks):
            text, x = tape.checkpoint(self.flux_block, x, text, time)
        for _ in range(network.single_blocks):
            text, x = tape.checkpoint(self.flux_single_block, x, text, time)
        x = self.modulated(x, self.modulation(time, 2, "norm_out.linear"))
        return tape.linear(x, hidden, network.latent_channels, "proj_out")

    def rotated(self, x: Value) -> Value:
        """Return the result of `apply_rotary_emb`, which computes in fp32."""
        tape = self.tape
        real, imaginary = tape.split(x, x.elements // 2, x.elements // 2)
        turned = tape.concatenate(tape.scaled(imaginary), real)
        result = tape.add(tape.scaled(tape.cast(x, _FP32)), tape.scaled(tape.cast(turned, _FP32)))
        return tape.cast(result, x.width)

    def flux_block(self, x: Value, text: Value, time: Value) -> tuple[Value, ...]:
        """Return the outputs of `FluxTransformerBlock`: text and image."""
        tape = self.tape
        by = self.modulation(time, 6, f"{_JOINT}.norm1.linear")
        n = self.modulated(x, by)
        by_text = self.modulation(time, 6, f"{_JOINT}.norm1_context.linear")
        n_text = self.modulated(text, by_text)
        joined = self.flux_attention(f"{_JOINT}.attn", n, n_text)
        h_text, h = tape.split(joined, text.elements, x.elements)
        del joined
        h = tape.linear(h, self.hidden, self.hidden, f"{_JOINT}.attn.to_out.0")
        h_text = tape.linear(h_text, self.hidden, self.hidden, f"{_JOINT}.attn.to_add_out")
        h = tape.multiply(h, by)
        x = tape.add(x, h)
        n = self.modulated(x, by)
        f = tape.multiply(self.feed_forward(n, f"{_JOINT}.ff"), by)
        x = tape.add(x, f)
        h_text = tape.multiply(h_text, by_text)
        text = tape.add(text, h_text)
        n_text = self.modulated(text, by_text)
        f_text = self.feed_forward(n_text, f"{_JOINT}.ff_context")
        return tape.add(text, tape.multiply(f_text, by_text)), x

    def flux_attention(self, name: str, x: Value, text: Value | None) -> Value:
        """Return the result of `FluxAttnProcessor` before its output projections."""
        tape = self.tape
        q, k, v = self.projected(x, f"{name}.to_{{}}")
        q, k = tape.norm(q, self.network.head_dim), tape.norm(k, self.network.head_dim)
        if text is not None:
            q_text, k_text, v_text = self.projected(text, f"{name}.add_{{}}_proj")
            q_text, k_text = tape.norm(q_text, self.network.head_dim), tape.norm(k_text, self.network.head_dim)
            q, k = tape.concatenate(q_text, q), tape.concatenate(k_text, k)
            v = tape.concatenate(v_text, v)
        q, k = self.rotated(q), self.rotated(k)
        # Norms make them fp32 under autocast, and the result is cast to their format.
        return tape.cast(self.attended(q, k, v), q.width)

    def flux_single_block(self, x: Value, text: Value, time: Value) -> tuple[Value, ...]:
        """Return the outputs of `FluxSingleTransformerBlock`: text and image."""
        tape, text_elements, image_elements = self.tape, text.elements, x.elements
        x = tape.concatenate(text, x)
        by = self.modulation(time, 3, f"{_SINGLE}.norm.linear")
        n = self.modulated(x, by)
        m = tape.activation(tape.linear(n, self.hidden, self.inner, f"{_SINGLE}.proj_mlp"))
        h = self.flux_attention(f"{_SINGLE}.attn", n, None)
        h = tape.concatenate(h, m)
        h = tape.multiply(tape.linear(h, self.hidden + self.inner, self.hidden, f"{_SINGLE}.proj_out"), by)
        x = tape.add(x, h)
        return tape.part(x, text_elements), tape.part(x, image_elements)

    def sd3(self) -> Value:
        """Return what `SD3Transformer2DModel` predicts."""
        tape, network = self.tape, self.network
        x = self.patches()
        time = self.embedded_time()
        text = tape.value(self.inputs.text * network.text_width, self.size)
        text = tape.linear(text, network.text_width, self.hidden, "context_embedder")
        for place in range(network.blocks - 1):
            block = partial(self.sd3_block, dual=place < network.dual_blocks)
            text, x = tape.checkpoint(block, x, text, time)
        x = tape.checkpoint(self.sd3_last_block, x, text, time)[0]
        return self.output(x, time)

    def sd3_block(self, x: Value, text: Value, time: Value, *, dual: bool = False) -> tuple[Value, ...]:
        """Return the outputs of `JointTransformerBlock`: text and image."""
        tape = self.tape
        by = self.modulation(time, 9 if dual else 6, f"{_JOINT}.norm1.linear")
        normed = tape.norm(x, 0)
        n = self.shifted(normed, by)
        n2 = self.shifted(normed, by) if dual else None
        by_text = self.modulation(time, 6, f"{_JOINT}.norm1_context.linear")
        n_text = self.modulated(text, by_text)
        del normed
        h, h_text = self.sd3_attention(n, n_text, f"{_JOINT}.attn")
        h_text = tape.linear(h_text, self.hidden, self.hidden, f"{_JOINT}.attn.to_add_out")
        h = tape.linear(h, self.hidden, self.hidden, f"{_JOINT}.attn.to_out.0")
        x = self.sd3_rest(_JOINT, x, h, by, n2)
        h_text = tape.multiply(h_text, by_text)
        text = tape.add(text, h_text)
        n_text = self.modulated(text, by_text)
        f_text = self.feed_forward(n_text, f"{_JOINT}.ff_context")
        return tape.add(text, tape.multiply(f_text, by_text)), x

    def sd3_last_block(self, x: Value, text: Value, time: Value) -> tuple[Value, ...]:
        """Return the image that the last `JointTransformerBlock` makes, which has no use for the text afterwards."""
        by = self.modulation(time, 6, f"{_LAST}.norm1.linear")
        n = self.modulated(x, by)
        n_text = self.modulated(text, self.modulation(time, 2, f"{_LAST}.norm1_context.linear"))
        h = self.sd3_attention(n, n_text, f"{_LAST}.attn")[0]
        h = self.tape.linear(h, self.hidden, self.hidden, f"{_LAST}.attn.to_out.0")
        return (self.sd3_rest(_LAST, x, h, by, None),)

    def sd3_rest(self, name: str, x: Value, h: Value, by: Value, second: Value | None) -> Value:
        """Return the image after what a block's attention found, its second attention and its feed-forward block."""
        tape = self.tape
        h = tape.multiply(h, by)
        x = tape.add(x, h)
        if second is not None:
            h = self.sd3_attention(second, None, f"{_DUAL}.attn2")[0]
            h = tape.multiply(tape.linear(h, self.hidden, self.hidden, f"{_DUAL}.attn2.to_out.0"), by)
            x = tape.add(x, h)
        n = self.modulated(x, by)
        f = tape.multiply(self.feed_forward(n, f"{name}.ff"), by)
        return tape.add(x, f)

    def sd3_attention(self, x: Value, text: Value | None, name: str) -> tuple[Value, ...]:
        """Return the results of `JointAttnProcessor2_0` for image and text before its output projections."""
        tape = self.tape
        q, k, v = self.projected(x, f"{name}.to_{{}}")
        q, k = self.head_norm(q), self.head_norm(k)
        if text is not None:
            q_text, k_text, v_text = self.projected(text, f"{name}.add_{{}}_proj")
            q_text, k_text = self.head_norm(q_text), self.head_norm(k_text)
            q, k = tape.concatenate(q, q_text), tape.concatenate(k, k_text)
            v = tape.concatenate(v, v_text)
        h = self.attended(q, k, v)
        if text is None:
            return (h,)
        # Head by head in memory, so that its rows are copied.
        h = tape.copy(h)
        return tape.part(h, x.elements), tape.part(h, text.elements)

    def head_norm(self, x: Value) -> Value:
        """Return `RMSNorm` of each head, step by step; `x` itself in networks without it."""
        if not self.inputs.normed_heads:
            return x
        tape = self.tape
        squares = tape.activation(tape.cast(x, _FP32))
        root = tape.resized(squares, x.elements // self.network.head_dim)
        del squares
        x = tape.multiply(x, root)
        if self.size == tape.formats.parameter:
            x = tape.cast(x, self.size)
        return tape.multiply(x, tape.parameter(self.network.head_dim))

    def pixart(self) -> Value:
        """Return what `PixArtTransformer2DModel` predicts."""
        tape, network, hidden = self.tape, self.network, self.hidden
        x = self.patches()
        time = self.mlp(_TIME, f"{_ADAPTIVE}.timestep_embedder")
        if self.inputs.sized:
            third = hidden // 3
            names = ("resolution_embedder", "aspect_ratio_embedder")
            size, ratio = (self.mlp(_TIME, f"{_ADAPTIVE}.{name}", third) for name in names)
            time = tape.add(time, tape.concatenate(size, size, ratio))
        by = tape.linear(tape.activation(time), hidden, 6 * hidden, "adaln_single.linear")
        text = tape.value(self.inputs.text * network.text_width, self.size)
        text = tape.activation(tape.linear(text, network.text_width, hidden, "caption_projection.linear_1"))
        text = tape.linear(text, hidden, hidden, "caption_projection.linear_2")
        for _ in range(network.blocks):
            x = tape.checkpoint(self.pixart_block, x, text, by)[0]
        last = tape.add(tape.parameter(2 * hidden), time)
        x = self.modulated(x, last)
        return tape.linear(x, hidden, 2 * network.latent_channels * network.patch**2, "proj_out")

    def pixart_block(self, x: Value, text: Value, time: Value) -> tuple[Value]:
        """Return the output of `BasicTransformerBlock` with `ada_norm_single`."""
        tape = self.tape
        by = tape.add(tape.parameter(6 * self.hidden), time)
        n = self.modulated(x, by)
        h = tape.multiply(self.pixart_attention(n, n, f"{_JOINT}.attn1"), by)
        x = tape.add(h, x)
        h = self.pixart_attention(x, text, f"{_JOINT}.attn2")
        x = tape.add(h, x)
        n = self.modulated(x, by)
        f = tape.multiply(self.feed_forward(n, f"{_JOINT}.ff"), by)
        return (tape.add(f, x),)

    def pixart_attention(self, x: Value, source: Value, name: str) -> Value:
        """Return the output of `AttnProcessor2_0`."""
        tape, hidden = self.tape, self.hidden
        query = tape.linear(x, hidden, hidden, f"{name}.to_q")
        key = tape.linear(source, hidden, hidden, f"{name}.to_k")
        h = self.attended(query, key, tape.linear(source, hidden, hidden, f"{name}.to_v"))
        return tape.scaled(tape.linear(h, hidden, hidden, f"{name}.to_out.0"))


_RUNS: Final = {"flux": _TransformerPass.flux, "sd3": _TransformerPass.sd3, "pixart": _TransformerPass.pixart}
