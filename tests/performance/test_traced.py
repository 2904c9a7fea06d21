"""Time of traced modules, from their counts."""

import pytest
from small_models import bundled

from planner.performance.estimate import estimate_time
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.performance.traced import OperationCounts, TracedStep, memory_passes, module_time, product_share, step_time
from planner.workload.defaults import with_defaults
from planner.workload.training import Training

RESNET_50 = OperationCounts(2 * 4.09e9, 11.1e6)


TRAINED = RESNET_50.training_step_counts()


def gpu(name):
    return bundled().hardware.gpu(name)


def step(card="rtx-4090", cards=1, task="training", counts=TRAINED, loading=None, **changes):
    one = TracedStep(task, counts, 1, "fp16", **changes)
    return step_time(
        one, gpu(card) if isinstance(card, str) else card, links_of(gpu("rtx-4090"), TimeSetting()), cards, loading
    )


def test_a_4090_trains_the_1301_images_a_second_that_were_measured():
    # lambdal/deeplearning-benchmark: ResNet-50, mixed precision.
    assert step().samples_per_second == pytest.approx(1301, rel=0.1)


@pytest.mark.parametrize(
    ("card", "precision", "images"),
    [
        ("a100-sxm4-80gb", "fp16", 1582),
        ("a100-sxm4-80gb", "tf32", 1066),
        ("h100-pcie-80gb", "fp16", 1976),
        ("b200-sxm-180gb", "fp16", 3076),
        ("b200-sxm-180gb", "tf32", 2967),
    ],
)
def test_stacked_memory_waits_for_what_normalises_channel_by_channel(card, precision, images):
    # lambdal/deeplearning-benchmark: ResNet-50, channels first, data that lies on the card.
    one = TracedStep("training", TRAINED, 1, precision)
    found = step_time(one, gpu(card), links_of(gpu(card), TimeSetting()))
    assert found.samples_per_second == pytest.approx(images, rel=0.1)
    term = found.term("elementwise")
    if (card, precision) == ("a100-sxm4-80gb", "tf32"):
        assert (found.bound, term.formula) == ("memory bandwidth", "b × n × w ÷ B")
    else:
        assert (found.bound, term.formula) == ("compute", "n ÷ e")
        assert term.seconds == pytest.approx(term.symbols[0].value / term.symbols[1].value)


def test_families_that_nothing_was_measured_on_have_a_wider_interval():
    known, unknown = step(), step("instinct-mi300x")
    assert known.high_seconds < 1.3 * known.seconds
    assert known.notes == ()
    assert unknown.high_seconds == pytest.approx(1.6 * unknown.seconds)
    assert "No network of this kind was measured" in unknown.notes[0]


def test_channels_last_and_compiled_networks_do_not_wait_for_it():
    first, last = step("a100-sxm4-80gb"), step("a100-sxm4-80gb", channels_last=True)
    assert last.seconds < first.seconds
    # NVIDIA/DeepLearningExamples: 2,470 images a second with the channels last.
    assert last.samples_per_second == pytest.approx(2470, rel=0.2)
    assert step("a100-sxm4-80gb", compiled=True).term("elementwise").formula == "b × n × w ÷ B"
    assert step("a100-sxm4-80gb", task="inference", counts=RESNET_50).bound == "memory bandwidth"


def test_what_normalises_is_known_of_nvidia_cards_alone():
    assert step("instinct-mi300x").term("elementwise").formula == "b × n × w ÷ B"
    slow = gpu("a100-sxm4-80gb")
    rates = tuple(rate for rate in slow.rates if rate.dtype != "fp32")
    assert step(slow.evolve(rates=rates)).term("elementwise").formula == "b × n × w ÷ B"


def test_calls_count_where_they_take_longer():
    many = RESNET_50._replace(calls=500.0)
    assert module_time(many, gpu("rtx-4090"), "fp16").seconds == pytest.approx(5e-3)
    compiled = module_time(many, gpu("rtx-4090"), "fp16", compiled=True)
    assert compiled.host == pytest.approx(500 * 2.4e-6)
    assert many.training_step_counts().calls == 1500
    found = step(counts=many)
    assert (found.bound, found.term("host").seconds > 0) == ("host", True)


def test_the_terms_of_a_step_add_up():
    found = step()
    assert sum(term.exposed_seconds for term in found.terms) == pytest.approx(found.seconds)
    assert [term.name for term in found.terms] == ["convolutions", "elementwise"]
    assert found.terms[0].symbols[2].value == pytest.approx(165.2e12)
    assert (found.kind, found.bound) == ("step", "memory bandwidth")
    assert found.low_seconds < found.seconds < found.high_seconds
    assert found.mfu_fraction == pytest.approx(found.flops_per_step / found.seconds / 165.2e12)


def test_gradients_are_exchanged_behind_the_backward_pass():
    hidden = step(cards=2, gradient_bytes=1e6)
    assert hidden.term("gradient_exchange").exposed_seconds == 0
    assert hidden.samples_per_second == pytest.approx(2 * step().samples_per_second)
    shown = step(cards=2, gradient_bytes=1e9)
    assert shown.bound == "communication"
    assert shown.samples_per_second < hidden.samples_per_second
    assert step(cards=2, task="inference", gradient_bytes=1e9).term("gradient_exchange") is None


def test_cards_wait_for_loading():
    slow = step(loading=100.0)
    assert slow.samples_per_second == pytest.approx(100.0)
    assert slow.bound == "input"
    assert step(loading=1e6).term("input") is None


def test_a_card_without_figures_has_a_reason():
    found = step(gpu("rtx-4090").evolve(bandwidth_bytes_per_s=None))
    assert "is unknown" in found.unsupported


def test_a_card_with_no_16_bit_rate_has_no_share_of_it():
    rates = tuple(rate for rate in gpu("rtx-4090").rates if rate.dtype == "fp32")
    found = step(gpu("rtx-4090").evolve(rates=rates))
    assert found.mfu_fraction is None
    assert found.seconds > 0


def test_products_and_passes_over_memory_follow_each_other():
    time = module_time(RESNET_50, gpu("rtx-4090"), "fp16")
    assert time.products == pytest.approx(8.18e9 / (0.95 * 165.2e12))
    assert time.memory == pytest.approx(9 * 11.1e6 * 2 / 1008e9)
    assert time.host == 0


def test_stacked_memory_is_reached_less_and_8_bits_too():
    assert memory_passes(gpu("a100-sxm4-80gb"), "convolutions", compiled=False) == pytest.approx(9 * 1.35)
    assert memory_passes(gpu("tesla-v100-sxm2-32gb"), "convolutions", compiled=False) == 9
    assert product_share(gpu("h100-sxm5-80gb"), "fp8") == 0.65
    assert product_share(gpu("a100-sxm4-80gb"), "fp8") == product_share(gpu("a100-sxm4-80gb"), "fp16")


def test_products_reach_no_more_than_alone_but_on_cards_of_half_the_rate():
    assert product_share(gpu("a100-sxm4-80gb"), "fp16") == product_share(gpu("a100-sxm4-80gb"), "tf32") == 0.85
    assert product_share(gpu("l40s"), "fp16") == pytest.approx(0.66, rel=0.01)
    assert product_share(gpu("rtx-4090"), "fp16") == 0.95
    assert product_share(gpu("a10"), "tf32") == product_share(gpu("a10"), "fp16") < 0.75


def test_a_t4_is_held_by_its_power():
    t4, large = gpu("tesla-t4"), gpu("quadro-rtx-8000")
    assert product_share(t4, "fp16") == pytest.approx(24 / 65)
    assert product_share(t4, "fp32") == 0.95
    assert product_share(large, "fp16") == 0.6
    held = estimate_time(*trained(), ((t4, 1),))
    free = estimate_time(*trained(), ((large, 1),))
    spent, least = held.term("matrix_products").seconds, free.term("matrix_products").seconds
    assert spent > 2 * least


def trained():
    architecture = bundled().models.model("openai-community/gpt2")
    workload = Training(micro_batch=8, sequence_length=1024, compute="amp-fp16")
    return architecture, with_defaults(workload, architecture, 1)


def test_a_network_by_formats():
    fp32, tf32 = (module_time(RESNET_50, gpu("a100-sxm4-80gb"), kind) for kind in ("fp32", "tf32"))
    assert fp32.products * 0.95 == pytest.approx(8 * tf32.products * 0.85)
    assert fp32.memory == tf32.memory
    assert module_time(RESNET_50, gpu("rtx-4090").evolve(rates=()), "fp16") is None
