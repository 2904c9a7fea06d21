"""Which layers each stage of a pipeline holds, and how many micro-batches are on their way in it."""

from small_models import GPT2, bundled, llama, other, small_llama

from planner.memory.parallel.pipeline import stages_of
from planner.models.architecture import StoredTensors


def test_the_first_stage_has_the_embedding_and_the_last_the_head():
    whole = llama()
    first, middle, last = stages_of(whole, (10, 12, 10))
    assert first.architecture.main.before == whole.main.before
    assert not first.architecture.head
    assert not middle.architecture.main.before
    assert not middle.architecture.main.after
    assert last.architecture.main.after == whole.main.after
    assert last.architecture.head == whole.head
    assert sum(stage.architecture.parameters for stage in (first, middle, last)) == whole.parameters


def test_the_first_stage_may_have_the_head_as_well():
    network = small_llama(num_hidden_layers=4)
    first, last = (stage.architecture for stage in stages_of(network, (2, 2), head_on_first=True))
    assert (first.head, first.main.before, first.main.after) == (network.head, network.main.before, network.main.after)
    assert (last.head, last.main.before, last.main.after) == ((), (), ())


def test_one_stage_is_the_network():
    whole = llama()
    assert [stage.architecture for stage in stages_of(whole, (32,))] == [whole]


def test_a_tied_head_is_copied_to_the_last_stage():
    tied = other("gpt2", GPT2)
    stages = stages_of(tied, (6, 6))
    table = 50_257 * 768
    assert sum(stage.architecture.parameters for stage in stages) == tied.parameters + table
    assert not any(stage.architecture.tied_head for stage in stages)


def test_equal_stages_are_one_object():
    stages = stages_of(llama(), (8, 8, 8, 8))
    assert stages[1].architecture is stages[2].architecture
    stages = stages_of(llama(), (8, 8, 8, 8), formats_by_layer=True)
    assert stages[1].architecture is not stages[2].architecture
    assert [stage.architecture.main.first_place for stage in stages] == [0, 8, 16, 24]


def test_stages_hold_the_layers_at_their_places():
    gemma = bundled().models.model("google/gemma-3-4b-it")
    count = gemma.main.layer_count
    stages = stages_of(gemma, (count // 2, count - count // 2))
    held = [sum(group.count for group in stage.architecture.main.groups) for stage in stages]
    assert held == [count // 2, count - count // 2]
    assert all(
        sorted(place for group in stage.architecture.main.groups for place in group.places or range(group.count))
        == list(range(stage.layers))
        for stage in stages
    )
    assert sum(stage.architecture.stored_bytes for stage in stages) >= gemma.stored_bytes


def test_towers_are_on_the_first_stage():
    qwen = bundled().models.model("Qwen/Qwen2-VL-2B-Instruct")
    first, last = stages_of(qwen, (14, 14))
    assert [stack.name for stack in first.architecture.stacks] == [stack.name for stack in qwen.stacks]
    assert len(last.architecture.stacks) == 1


def test_layers_of_several_kinds_are_where_they_stand():
    scout = bundled().models.model("meta-llama/Llama-4-Scout-17B-16E-Instruct")
    deepseek = bundled().models.model("deepseek-ai/DeepSeek-V3")
    first, last = stages_of(deepseek, (3, 58))
    dense, routed = ({type(g.layer.feed_forward).__name__ for g in s.architecture.main.groups} for s in (first, last))
    assert (dense, routed) == ({"Mlp"}, {"Moe"})
    stages = stages_of(scout, (24, 24))
    assert sum(stage.architecture.main.layer_count for stage in stages) == scout.main.layer_count


def test_stages_load_their_share_of_the_files():
    stored = tuple(
        StoredTensors(place=place, format="BF16", bytes=1000, elements=500)
        for place in ("embedding", "layers", "output")
    )
    whole = llama(num_hidden_layers=4).evolve(stored=stored)
    first, last = (stage.architecture.stored for stage in stages_of(whole, (1, 3)))
    assert {part.place: part.bytes for part in first} == {"embedding": 1000, "layers": 250}
    assert {part.place: part.bytes for part in last} == {"layers": 750, "output": 1000}


def test_a_tied_head_loads_the_embedding_again():
    stored = (StoredTensors(place="embedding", format="F32", bytes=1000, elements=500),)
    tied = small_llama(tie_word_embeddings=True).evolve(stored=stored)
    assert [[part.bytes for part in stage.architecture.stored] for stage in stages_of(tied, (1, 1))] == [[1000], [1000]]


def test_interleaved_stages_take_turns():
    gpt = small_llama(num_hidden_layers=8)
    stages = stages_of(gpt, (4, 4), interleave=2)
    assert [stage.layers for stage in stages] == [4, 4]
    assert sum(stage.architecture.parameters for stage in stages) == gpt.parameters
