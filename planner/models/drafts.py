"""Networks that draft tokens for a model: its own prediction layer, EAGLE heads, or a smaller model."""

from typing import Final

from planner.errors import SpecError
from planner.models.architecture import Architecture, Attention, LatentAttention
from planner.models.layers import Layer, LayerGroup, Mlp, Stack, Tensor

_EAGLE3_VOCABULARY: Final = 32_000
_EAGLE3_INPUTS: Final = 3
_INTO_ATTENTION: Final = ("q_proj", "k_proj", "v_proj", "qkv_proj")


def with_draft(architecture: Architecture, method: str | None, model: Architecture | None = None) -> Architecture:
    """Return `architecture` with the network that drafts for it by `method`, of which `model` is a smaller model.

    Prediction layers and EAGLE heads share embedding and output head with the model; of these, EAGLE-3 has a head of
    its own, for 32,000 frequent tokens.

    **Formula**: MTP: the last layer, a projection of 2h to h, three norms. EAGLE: a dense layer as the model's, a
    projection of 2h to h. EAGLE-3: such a layer whose attention reads 2h, a projection of 3h to h, h × 32,000.

    **Source**: DeepSeek-V3 (arXiv 2412.19437, section 2.2); SafeAILab/EAGLE `model/cnets1.py` (EAGLE) and
    `model/cnets.py` (EAGLE-3). deepseek-ai/DeepSeek-V3 README_WEIGHTS.md has 11.5 billion parameters for its layer,
    SafeAILab/EAGLE 0.24, 0.37 and 0.99 billion for heads of Llama 2 with 7, 13 and 70 billion.

    Raises:
        SpecError: If the model has no such layer, or the smaller model another vocabulary.
    """
    if method in (None, "ngram"):
        return architecture
    if method == "model":
        return architecture.evolve(draft=_checked(architecture, model))
    if method == "mtp":
        return architecture.evolve(draft=_prediction_layer(architecture))
    return architecture.evolve(draft=_eagle_head(architecture, third=method == "eagle3"))


def _checked(architecture: Architecture, model: Architecture | None) -> Architecture:
    if model is None:
        raise SpecError("speculation.model", "the network of the draft model is not known here")
    if model.kind != "decoder":
        raise SpecError("speculation.model", f"a {model.kind} does not draft text", "Choose a smaller language model.")
    if model.vocabulary != architecture.vocabulary:
        raise SpecError(
            "speculation.model",
            f"it knows {model.vocabulary or 0:,} tokens, and the model {architecture.vocabulary or 0:,}",
            "Choose a smaller model of the same family.",
        )
    return model


def _attention_layers(architecture: Architecture) -> list[LayerGroup]:
    """Return the layers with attention and a feed-forward block, in order of their last places."""
    groups = [
        group
        for group in (architecture.main.groups if architecture.kind in ("decoder", "vision-language") else ())
        if isinstance(group.layer.mixer, Attention | LatentAttention) and group.layer.feed_forward is not None
    ]
    return sorted(groups, key=lambda group: group.places[-1] if group.places else 0)


def _prediction_layer(architecture: Architecture) -> Architecture:
    layers = _attention_layers(architecture)
    if not architecture.further_layers or not layers:
        raise SpecError(
            "speculation.method",
            "the model's configuration names no layer that predicts further tokens (num_nextn_predict_layers)",
            "Choose eagle3, or a smaller model with --draft-model.",
        )
    hidden = architecture.hidden
    norms = tuple(Tensor(name=name, shape=(hidden,), role="norm") for name in ("enorm", "hnorm", "shared_head.norm"))
    inputs = Tensor(name="eh_proj.weight", shape=(hidden, 2 * hidden), role="linear")
    return _head(architecture, layers[-1].layer, (inputs, *norms), architecture.vocabulary, ()).evolve(
        quantization=architecture.quantization, quantized_roles=architecture.quantized_roles
    )


def _eagle_head(architecture: Architecture, *, third: bool) -> Architecture:
    layers = [
        layer
        for layer in (group.layer for group in _attention_layers(architecture))
        if isinstance(layer.mixer, Attention) and isinstance(layer.feed_forward, Mlp)
    ]
    if not layers:
        raise SpecError(
            "speculation.method",
            "the width of EAGLE heads is known for dense models with attention only: those of others choose their own",
            "Choose mtp, or a smaller model with --draft-model.",
        )
    layer, hidden = layers[-1], architecture.hidden
    if third:
        wider = (
            tensor.evolve(shape=(tensor.shape[0], 2 * tensor.shape[1]))
            if len(tensor.shape) > 1 and any(part in tensor.name for part in _INTO_ATTENTION)
            else tensor
            for tensor in layer.tensors
        )
        layer = layer.evolve(tensors=tuple(wider))
        own_head = (Tensor(name="lm_head.weight", shape=(_EAGLE3_VOCABULARY, hidden), role="head"),)
        return _head(architecture, layer, (_projection(hidden, _EAGLE3_INPUTS),), _EAGLE3_VOCABULARY, own_head)
    return _head(architecture, layer, (_projection(hidden, 2),), architecture.vocabulary, ())


def _projection(hidden: int, inputs: int) -> Tensor:
    return Tensor(name="fc.weight", shape=(hidden, inputs * hidden), role="linear")


def _head(
    architecture: Architecture,
    layer: Layer,
    before: tuple[Tensor, ...],
    vocabulary: int | None,
    head: tuple[Tensor, ...],
) -> Architecture:
    stack = Stack(
        name="decoder",
        hidden=architecture.hidden,
        groups=(LayerGroup(layer=layer, count=1, places=(0,)),),
        before=before,
    )
    return Architecture(
        model_type="draft",
        kind="decoder",
        hidden=architecture.hidden,
        vocabulary=vocabulary,
        stacks=(stack,),
        head=head,
        stored_dtype="bf16",
    )
