"""Numbers of layers of pipeline stages, where nothing but their sum decides."""


def stage_layers(layers: int, stages: int) -> tuple[int, ...]:
    """Return the number of layers of each pipeline stage in training, as even as possible.

    **Formula**: layers ÷ stages if that is an integer; otherwise the embedding and the head count as a layer each, and
    the first stages have one more.

    **Source**: Megatron-LM (even stages); torchtitan `distributed/pipeline_parallel.py`
    `generate_llm_fqn_per_model_part` (weights of the input and output modules, 1 by default).
    """
    if layers % stages == 0:
        return (layers // stages,) * stages
    each, more = divmod(layers + 2, stages)
    counts = [each + (1 if index < more else 0) for index in range(stages)]
    counts[0] -= 1
    counts[-1] -= 1
    return without_empty_stages(counts)


def without_empty_stages(counts: list[int]) -> tuple[int, ...]:
    """Return `counts` with one layer moved from the largest stages to each stage without layers."""
    while 0 in counts:
        counts[counts.index(max(counts))] -= 1
        counts[counts.index(0)] += 1
    return tuple(counts)
