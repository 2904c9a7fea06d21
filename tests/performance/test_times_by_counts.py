"""Networks known by their counts: traced modules, and the images of diffusion pipelines."""

import pytest
from small_models import bundled

from planner.models.pipeline import networks_of
from planner.performance.estimate import estimate_time
from planner.performance.inference.denoising import decoder_counts, denoiser_counts
from planner.performance.inference.images import pipeline_counts
from planner.performance.links import links_of
from planner.performance.setting import TimeSetting
from planner.performance.traced import Step, step_time
from planner.performance.vision import Counts, module_time, passes, product_share
from planner.workload.defaults import with_defaults
from planner.workload.training import Training
from planner.workload.workload import Inference

RESNET_50 = Counts(2 * 4.09e9, 11.1e6)
TRAINED = RESNET_50.of_training()
SD_15 = "stable-diffusion-v1-5/stable-diffusion-v1-5"


def gpu(name):
    return bundled().hardware.gpu(name)


def step(card="rtx-4090", cards=1, task="training", counts=TRAINED, loading=None, **changes):
    one = Step(task, counts, 1, "fp16", **changes)
    return step_time(
        one, gpu(card) if isinstance(card, str) else card, links_of(gpu("rtx-4090"), TimeSetting()), cards, loading
    )


def test_products_and_passes_over_memory_follow_each_other():
    time = module_time(RESNET_50, gpu("rtx-4090"), "fp16")
    assert time.products == pytest.approx(8.18e9 / (0.95 * 165.2e12))
    assert time.memory == pytest.approx(9 * 11.1e6 * 2 / 1008e9)
    assert time.host == 0


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
    one = Step("training", TRAINED, 1, precision)
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
    assert known.high_seconds == pytest.approx(1.3 * known.seconds)
    assert known.notes == ()
    assert unknown.high_seconds == pytest.approx(1.6 * unknown.seconds)
    assert "No such network was measured" in unknown.notes[0]


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
    assert compiled.host == 0
    found = step(counts=many)
    assert (found.bound, found.term("host").seconds > 0) == ("host", True)


def test_stacked_memory_is_reached_less_and_8_bits_too():
    assert passes(gpu("a100-sxm4-80gb"), "convolutions", compiled=False) == pytest.approx(9 * 1.35)
    assert passes(gpu("tesla-v100-sxm2-32gb"), "convolutions", compiled=False) == 9
    assert product_share(gpu("h100-sxm5-80gb"), "fp8") == 0.65
    assert product_share(gpu("a100-sxm4-80gb"), "fp8") == 0.95


def test_a_t4_is_held_by_its_power():
    t4, large = gpu("tesla-t4"), gpu("quadro-rtx-8000")
    assert product_share(t4, "fp16") == pytest.approx(24 / 65)
    assert product_share(t4, "fp32") == product_share(large, "fp16") == 0.95
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
    assert fp32.products == pytest.approx(8 * tf32.products)
    assert fp32.memory == tf32.memory
    assert module_time(RESNET_50, gpu("rtx-4090").evolve(rates=()), "fp16") is None


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


@pytest.mark.parametrize(
    ("model", "side", "text", "denoiser_tflop", "decoder_tflop"),
    [
        (SD_15, 64, 77, 0.80, 2.5),
        ("stabilityai/stable-diffusion-xl-base-1.0", 128, 77, 6.8, 10.5),
        ("stabilityai/stable-diffusion-3-medium-diffusers", 128, 333, 8.9, 10.5),
        ("PixArt-alpha/PixArt-Sigma-XL-2-1024-MS", 128, 300, 6.6, 10.5),
        ("black-forest-labs/FLUX.1-dev", 128, 512, 74.4, 10.5),
    ],
)
def test_operations_of_denoisers_and_decoders(model, side, text, denoiser_tflop, decoder_tflop):
    denoiser, decoder = networks_of(bundled().models.model(model).components)
    assert denoiser_counts(denoiser, side, side, text).flops == pytest.approx(denoiser_tflop * 1e12, rel=0.02)
    assert decoder_counts(decoder, side, side).flops == pytest.approx(decoder_tflop * 1e12, rel=0.02)


def image(card="a100-pcie-80gb", **changes):
    architecture = bundled().models.model(SD_15)
    workload = with_defaults(Inference(**changes), architecture, 1)
    return architecture, workload, estimate_time(architecture, workload, ((gpu(card), 1),))


def test_an_image_is_its_steps_twice_with_guidance():
    architecture, guided, _ = image()
    plain = image(diffusion={"guidance": False})[1]
    denoiser, decoder = networks_of(architecture.components)
    one, last = denoiser_counts(denoiser, 64, 64, 77).flops, decoder_counts(decoder, 64, 64).flops
    encoders = 2 * 77 * sum(part.parameters for part in architecture.components if part.part == "text")
    assert pipeline_counts(architecture, guided).flops == pytest.approx(60 * one + last + encoders)
    assert pipeline_counts(architecture, plain).flops == pytest.approx(30 * one + last + encoders)


def test_an_a100_makes_the_images_a_second_that_were_measured():
    # LambdaLabsML/lambda-diffusers: 1.61 images a second in fp16 with 16 at once.
    _, _, found = image(batch=16, compute="fp16")
    assert found.samples_per_second == pytest.approx(1.61, rel=0.15)
    assert found.kind == "service"
    assert "30 denoising steps" in found.notes[0]
    assert image(compute="fp32")[2].samples_per_second < found.samples_per_second


def test_an_image_takes_as_many_steps_as_are_set():
    architecture, workload, usual = image()
    cards = ((gpu("a100-pcie-80gb"), 1),)
    few = estimate_time(architecture, workload, cards, TimeSetting(diffusion_steps=4))
    assert 4 < usual.seconds / few.seconds < 30 / 4
    assert "4 denoising steps" in few.notes[0]
    assert estimate_time(architecture, workload, cards, TimeSetting(diffusion_steps=30)).seconds == usual.seconds


def test_a_card_without_a_rate_makes_no_image():
    architecture, workload, _ = image()
    bare = gpu("a100-pcie-80gb").evolve(rates=())
    assert estimate_time(architecture, workload, ((bare, 1),)).unsupported
