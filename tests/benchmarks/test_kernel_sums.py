"""Sums of kernels are taken for tables and formats that estimates leave to classes, too."""


def test_a_published_speed_is_restated_by_the_tables_of_an_engine():
    from kernel_sums import with_tables
    from throughput_inference import case_of, speeds_of
    from throughput_rows import truth

    from planner.plan.catalog import load_catalog

    catalog = load_catalog()
    row = next(
        row for row in truth(None) if row.source == "qw3" and "SGLang" in row.framework and row.precision == "FP8"
    )
    case = case_of(row, catalog)
    assert case.run.kernels is None
    restated = [with_tables(case, tables) for tables in ("vllm", "sglang", "llama.cpp")]
    assert [each and each.run.kernels.products for each in restated] == ["fp8", "fp8", None]
    speeds = [speeds_of(each).ours for each in (case, *restated[:2])]
    assert len(set(speeds)) == 3


def test_a_time_per_token_holds_its_share_of_the_prompts():
    from kernel_sums import _SETTINGS, run_of, seconds_per_token

    from planner.plan.catalog import load_catalog

    catalog = load_catalog()
    gpu, model = catalog.hardware.gpu("h100-sxm5-80gb"), catalog.models.model("Qwen/Qwen3-32B")
    run = run_of(gpu, model, _SETTINGS["kernels, launches as in vLLM"])(4)
    short, long = (
        seconds_per_token(run, {"batch_size": "8", "isl": prompt, "osl": "128"}) for prompt in ("128", "4096")
    )
    assert run.kernels is not None
    assert long > short + 8 / 128 * 0.1
