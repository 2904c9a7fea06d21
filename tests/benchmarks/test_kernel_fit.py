"""Curves are fitted with the formulas of the planner, and rows are read back as they were written."""

import pytest


@pytest.fixture(scope="module")
def rows():
    from kernel_fit import SAMPLE
    from kernel_rows import read_sample

    return read_sample(SAMPLE)


def test_a_law_on_columns_gives_what_it_gives_on_numbers(rows):
    from kernel_fit import FORMULAS, STARTS, card_of, relative_errors

    checked = 0
    for kernel in STARTS:
        some = [row for row in rows if row.kernel == kernel][:5]
        shape, parameters = STARTS[kernel]
        errors = relative_errors(kernel, parameters, some)
        for row, error in zip(some, errors, strict=True):
            formula = FORMULAS[kernel]
            alone = formula.seconds(formula.curve(*parameters), shape(*row.shape), card_of(row))
            assert alone / row.seconds - 1 == pytest.approx(float(error), rel=1e-6, abs=1e-9)
            checked += 1
    assert checked == 5 * len(STARTS)


def test_the_sample_has_only_rows_to_which_no_curve_was_fitted(rows):
    assert len(rows) == 10_000
    assert sum(not row.is_held_out for row in rows) <= 10


def test_rows_are_read_as_they_were_written(rows, tmp_path):
    from kernel_rows import read_sample, write_sample

    write_sample(tmp_path / "rows.csv.gz", rows[:100])
    assert read_sample(tmp_path / "rows.csv.gz") == rows[:100]


def test_a_fit_finds_the_parameters_of_a_curve(rows):
    from kernel_fit import STARTS, fit, relative_errors

    some = [row for row in rows if row.key == ("all-reduce", "nccl", "nccl", "NCCL")]
    shape, start = STARTS["all-reduce"]
    errors = relative_errors("all-reduce", start, some)
    made = [
        row._replace(seconds=row.seconds * (1 + float(error)) * 1.25) for row, error in zip(some, errors, strict=True)
    ]
    assert shape._fields == ("cards", "sent_bytes")
    assert abs(relative_errors("all-reduce", fit("all-reduce", made), made)).max() < 0.02


def test_a_kernel_has_one_name_on_all_cards_but_another_on_intels(rows):
    assert {row.implementation for row in rows if row.key[:3] == ("product", "vllm", "bf16")} == {
        "torch.nn.functional.linear",
        "vllm_default on XPU",
    }


def test_a_card_of_its_own_family_gets_curves_of_cards_with_its_instructions(rows):
    from kernel_fit import left_out_curves, pools

    names = list(pools())
    assert names[-2:] == ["warp-level-cards", "all-cards"]
    assert pools()["warp-level-cards"] == {"a100-sxm4-80gb", "l40s", "rtx-pro-6000-blackwell-server"}
    key = ("latent-write", "vllm", "bf16", "vllm_triton_mla")
    few = [row for row in rows if row.key == key]
    (curve,) = left_out_curves(few, "l40s")
    assert curve.rows == sum(row.card == "a100-sxm4-80gb" for row in few)
