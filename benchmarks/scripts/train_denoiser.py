"""Train the denoiser of an image pipeline as diffusers' example scripts do: two steps, on latents and embedded prompts."""

import json
import sys
from typing import Any

import diffusers
import peft
import torch
from torch.nn import functional

FORMATS = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
DEVICE = "cuda"


def built(config: dict[str, Any], weights: torch.dtype) -> torch.nn.Module:
    """Return the denoiser of a component's configuration, with what only its class knows filled in."""
    config = dict(config)
    kind = config.pop("_class_name")
    if "down_block_types" in config:
        config["up_block_types"] = [name.replace("Down", "Up") for name in reversed(config["down_block_types"])]
    if config.get("addition_embed_type") == "text_time":
        config.setdefault("addition_time_embed_dim", 256)
    if kind.startswith("SD3"):
        config.setdefault(
            "caption_projection_dim", config["num_attention_heads"] * config.get("attention_head_dim", 64)
        )
    if kind.startswith("PixArt"):
        config.setdefault("caption_channels", 4096)
    torch.set_default_dtype(weights)
    with torch.device(DEVICE):
        network = getattr(diffusers, kind).from_config(config)
    torch.set_default_dtype(torch.float32)
    return network.to(weights).train()


def drawn(network: Any, images: int, side: int, text: int, form: torch.dtype) -> tuple[dict[str, Any], torch.Tensor]:
    """Return inputs for latent images of `side` × `side` and prompts of `text` tokens, and what is to be predicted."""

    def numbers(*shape: int) -> torch.Tensor:
        return torch.randn(images, *shape, device=DEVICE, dtype=form)

    config, kind = network.config, type(network).__name__
    steps = torch.randint(0, 1000, (images,), device=DEVICE)
    latents = numbers(config.in_channels, side, side)
    if kind == "UNet2DConditionModel":
        inputs = {"sample": latents, "encoder_hidden_states": numbers(text, config.cross_attention_dim)}
        if config.addition_embed_type:
            inputs["added_cond_kwargs"] = {"text_embeds": numbers(1280), "time_ids": numbers(6)}
    elif kind == "SD3Transformer2DModel":
        inputs = {"hidden_states": latents, "encoder_hidden_states": numbers(text, config.joint_attention_dim)}
        inputs["pooled_projections"] = numbers(config.pooled_projection_dim)
    elif kind == "FluxTransformer2DModel":
        patches = (side // 2) ** 2
        latents = numbers(patches, config.in_channels)
        inputs = {"hidden_states": latents, "encoder_hidden_states": numbers(text, config.joint_attention_dim)}
        inputs["pooled_projections"] = numbers(config.pooled_projection_dim)
        inputs["txt_ids"] = torch.zeros(text, 3, device=DEVICE, dtype=form)
        inputs["img_ids"] = torch.zeros(patches, 3, device=DEVICE, dtype=form)
        inputs["guidance"] = torch.ones(images, device=DEVICE)
        return inputs | {"timestep": torch.rand(images, device=DEVICE).to(form)}, numbers(patches, config.in_channels)
    else:
        inputs = {"hidden_states": latents, "encoder_hidden_states": numbers(text, config.caption_channels)}
        inputs["encoder_attention_mask"] = torch.ones(images, text, device=DEVICE)
        sized = network.use_additional_conditions
        inputs["added_cond_kwargs"] = {
            "resolution": numbers(2) if sized else None,
            "aspect_ratio": numbers(1) if sized else None,
        }
    return inputs | {"timestep": steps}, torch.randn_like(latents)


def main(config: dict[str, Any], workload: dict[str, Any], text: int) -> None:
    """Train for two steps with a fused AdamW."""
    compute = workload["compute"]
    autocast, form = compute.startswith("amp-"), FORMATS[compute.removeprefix("amp-")]
    network: Any = built(config, FORMATS[workload["weights"]])
    if lora := workload.get("lora"):
        network.requires_grad_(False)
        targets = lora["targets"]
        peft.inject_adapter_in_model(peft.LoraConfig(r=lora["rank"], target_modules=targets), network)
        for parameter in network.parameters():
            if parameter.requires_grad:
                parameter.data = parameter.data.to(FORMATS[lora["adapter_dtype"]])
    if workload["activation_checkpointing"] == "full":
        network.enable_gradient_checkpointing()
    optimizer = torch.optim.AdamW([one for one in network.parameters() if one.requires_grad], fused=True)
    for _ in range(2):
        inputs, wanted = drawn(network, workload["micro_batch"], workload["image_size"][0] // 8, text, form)
        with torch.autocast(DEVICE, dtype=form if autocast else None, enabled=autocast):
            predicted = network(return_dict=False, **inputs)[0]
        if predicted.shape != wanted.shape:  # PixArt predicts a variance as well
            predicted = predicted.chunk(2, 1)[0]
        functional.mse_loss(predicted.float(), wanted.float()).backward()
        optimizer.step()
        optimizer.zero_grad()


main(*json.loads(sys.argv[1]))
