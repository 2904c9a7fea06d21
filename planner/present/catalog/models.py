"""Models as table rows, and the details of a model's architecture."""

from typing import Final

from planner.dtypes import AS_STORED, SCHEMES
from planner.memory.weights import placed_tensors
from planner.models.architecture import (
    Architecture,
    Attention,
    LatentAttention,
    LayerGroup,
    Moe,
    Role,
    Stack,
    StateMixer,
)
from planner.models.catalog import ModelRecord
from planner.present import format as fmt
from planner.present.columns import Column, Detail, DetailGroup, number_column, text_column

ROLE_TITLES: Final[dict[Role, str]] = {
    "linear": "Projections",
    "expert": "Experts",
    "embedding": "Embeddings",
    "head": "Output head",
    "router": "Routers",
    "norm": "Norms",
    "bias": "Biases",
    "conv": "Convolutions",
    "other": "Other tensors",
}
KIND_TITLES: Final = {
    "decoder": "decoder",
    "encoder": "encoder",
    "encoder-decoder": "encoder and decoder",
    "vision-encoder": "image encoder",
    "vision-language": "image and text",
    "diffusion": "diffusion pipeline",
}


def architecture_details(architecture: Architecture) -> tuple[DetailGroup, ...]:
    """Return a model's parameter counts, layers by stack, vocabulary and stored formats."""
    kind = Detail("Kind", f"{KIND_TITLES[architecture.kind]}, {architecture.model_type}")
    alone = len(architecture.stacks) == 1
    return (
        DetailGroup("Parameters", _parameter_details(architecture)),
        *((DetailGroup("Components", _component_details(architecture)),) if architecture.components else ()),
        *(
            DetailGroup("Layers" if alone else stack.name.capitalize(), _stack_details(stack))
            for stack in architecture.stacks
        ),
        DetailGroup("Input and output", (kind, *_token_details(architecture), *_format_details(architecture))),
    )


def is_sparse(architecture: Architecture) -> bool:
    """Return whether each token uses only a part of the parameters, as in a mixture of experts."""
    return architecture.active_parameters < architecture.parameters


def _parameter_details(architecture: Architecture) -> tuple[Detail, ...]:
    rows = [Detail("All", _exact_and_rounded_text(architecture.parameters))]
    if is_sparse(architecture):
        rows.append(Detail("Active per token", _exact_and_rounded_text(architecture.active_parameters)))
    counts: dict[Role, int] = {}
    for tensor, count in placed_tensors(architecture):
        counts[tensor.role] = counts.get(tensor.role, 0) + tensor.size * count
    rows.extend(Detail(title, fmt.integer(counts[role])) for role, title in ROLE_TITLES.items() if role in counts)
    return tuple(rows)


def _component_details(architecture: Architecture) -> tuple[Detail, ...]:
    return tuple(
        Detail(one.name, f"{_exact_and_rounded_text(one.parameters)} parameters") for one in architecture.components
    )


def _stack_details(stack: Stack) -> tuple[Detail, ...]:
    rows = [Detail("Number", fmt.integer(stack.layer_count)), Detail("Width", fmt.integer(stack.hidden))]
    # Groups that differ only in what is not shown here share one line.
    counts: dict[str, int] = {}
    for group in stack.groups:
        phrase = _layer_phrase(group)
        counts[phrase] = counts.get(phrase, 0) + group.count
    rows.extend(Detail(fmt.plural(count, "layer"), phrase) for phrase, count in counts.items())
    return tuple(rows)


def _layer_phrase(group: LayerGroup) -> str:
    """Return the parts of one layer as a phrase: attention or state mixer, and feed-forward."""
    layer = group.layer
    mixers = [_mixer_phrase(mixer) for mixer in (layer.mixer, layer.second_mixer) if mixer is not None]
    cross = ["cross-attention"] if layer.cross_attention else []
    return "; ".join([*mixers, *cross, *_feed_forward_phrases(group)])


def _mixer_phrase(mixer: Attention | LatentAttention | StateMixer) -> str:
    """Return a layer's attention or state mixer as a phrase: `32 heads of 128, 8 key/value heads`."""
    if isinstance(mixer, StateMixer):
        return f"{mixer.name}, {fmt.integer(mixer.inner_dim)} wide"
    if isinstance(mixer, LatentAttention):
        return f"{mixer.heads} heads on a latent of {mixer.latent_dim}"
    shared = "" if mixer.kv_heads == mixer.heads else f", {fmt.plural(mixer.kv_heads, 'key/value head')}"
    window = f", window of {fmt.integer(mixer.window)} tokens" if mixer.window else ""
    return f"{fmt.plural(mixer.heads, 'head')} of {mixer.head_dim}{shared}{window}"


def _feed_forward_phrases(group: LayerGroup) -> list[str]:
    """Return a layer's feed-forward block or experts as a phrase, if it has one."""
    block = group.layer.feed_forward
    if block is None:
        return []
    gated = "gated " if block.gated else ""
    if isinstance(block, Moe):
        shared = f" and shared ones {fmt.integer(block.shared_intermediate)} wide" if block.shared_intermediate else ""
        return [f"{block.top_k} of {block.experts} {gated}experts {fmt.integer(block.intermediate)} wide{shared}"]
    return [f"{gated}feed-forward {fmt.integer(block.intermediate)} wide"]


def _token_details(architecture: Architecture) -> tuple[Detail, ...]:
    """Return the detail lines on context length, vocabulary and output head."""
    if architecture.vocabulary is None:
        return ()
    context = "not stated" if architecture.max_context is None else f"{fmt.integer(architecture.max_context)} tokens"
    head = "tied to the embedding" if architecture.tied_head else "its own" if architecture.head else "none"
    return (
        Detail("Longest context", context),
        Detail("Vocabulary", fmt.integer(architecture.vocabulary)),
        Detail("Output head", head),
    )


def _format_details(architecture: Architecture) -> tuple[Detail, ...]:
    return (
        *_stored_format_details(architecture),
        *((Detail("Classes", fmt.integer(architecture.labels)),) if architecture.labels else ()),
    )


def stored_format_text(architecture: Architecture) -> str:
    """Return the format of the checkpoint in words, such as `FP8 (blocks of 128)`, or what is assumed."""
    if architecture.stored_as == AS_STORED:
        return "several formats"
    if architecture.components and not architecture.states_format:
        return fmt.UNKNOWN
    title = SCHEMES[architecture.stored_as].title
    return title if architecture.states_format else f"not known; {title} is assumed"


def _stored_format_details(architecture: Architecture) -> tuple[Detail, ...]:
    if not architecture.stored:
        return (Detail("Stored as", stored_format_text(architecture)),)
    by_format: dict[str, int] = {}
    for part in architecture.stored:
        by_format[part.format] = by_format.get(part.format, 0) + part.bytes
    largest_first = sorted(by_format.items(), key=lambda item: -item[1])
    mixture = ", ".join(f"{name} {fmt.size(count)}" for name, count in largest_first)
    return (
        Detail("Stored as", mixture if architecture.stored_as == AS_STORED else stored_format_text(architecture)),
        Detail(
            "In its files",
            f"{fmt.size(architecture.stored_bytes)}: {mixture}",
            f"the headers of its {architecture.container} files",
            exact=fmt.exact_bytes(architecture.stored_bytes),
        ),
    )


def _exact_and_rounded_text(parameters: int) -> str:
    """Return a parameter count in full and rounded: `8,030,261,248 (8.03 B)`."""
    exact, rounded = fmt.integer(parameters), fmt.parameters(parameters)
    return exact if exact == rounded else f"{exact} ({rounded})"


VERIFICATION_TITLES: Final = {
    "config_copy": "a copy of its config.json",
    "reimplementation_config": "its configuration in another framework",
    "dimension_dump": "a published table of its dimensions",
    "transformers_class_default": "the defaults of its transformers class",
    "inherited": "the configuration of its base model",
    "recalled_count_checked": "recalled, then checked against its exact parameter count",
    "other": "another document",
}

MODEL_COLUMNS: Final[tuple[Column[ModelRecord], ...]] = (
    text_column("name", "Name", lambda record: record.id, width=40, about="Name of the model, as on Hugging Face"),
    text_column(
        "family", "Family", lambda record: record.family, width=18, about="Models of one series and architecture"
    ),
    number_column(
        "parameters",
        "Parameters",
        lambda record: record.parameters,
        unit="billion",
        per_unit=1e9,
        width=12,
        tooltip=lambda record: fmt.integer(record.parameters),
        about="Number of weights; of mixtures of experts, all of them",
    ),
    number_column(
        "context",
        "Longest context",
        lambda record: record.context,
        unit="tokens",
        unknown="not stated",
        show=lambda tokens: fmt.integer(round(tokens)),
        width=16,
        about="Largest number of tokens that the model was made for",
    ),
    text_column(
        "kind",
        "Kind",
        lambda record: KIND_TITLES[record.kind],
        width=20,
        about="What the model does: text, images, vision …",
    ),
)


def model_details(record: ModelRecord, architecture: Architecture) -> tuple[DetailGroup, ...]:
    """Return the details of a catalog model: names, source and architecture."""
    known = Detail(
        "Based on",
        VERIFICATION_TITLES[record.verification],
        "; ".join(record.sources),
        as_of=f"read {fmt.date(record.as_of)}",
    )
    names = tuple(Detail("Also called", name) for name in record.aliases)
    variants = tuple(Detail(f"In {scheme}", name) for name, scheme in record.variants.items())
    model = (
        Detail("Name", record.id),
        Detail("Family", record.family),
        *names,
        *variants,
        *_published_size_detail(record),
        known,
    )
    return (DetailGroup("Model", model), *architecture_details(architecture))


def _published_size_detail(record: ModelRecord) -> tuple[Detail, ...]:
    published = record.published
    if published is None:
        return ()
    return (Detail("Size as published", published.value, published.source, published.difference or ""),)
