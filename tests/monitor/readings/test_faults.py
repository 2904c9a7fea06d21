"""Faults, their descriptions, and exits of the sampler."""

import pytest

from planner.monitor.readings.faults import (
    FAULTS,
    RESTART_EXIT_CODE,
    ActiveFaults,
    Fault,
    FaultKind,
    explain_sampler_exit,
)


def test_every_kind_of_fault_has_a_description():
    assert set(FAULTS) == set(FaultKind)
    assert all(about.title and about.advice for about in FAULTS.values())


def test_a_persisting_fault_keeps_its_start():
    book = ActiveFaults()
    book.note(Fault(FaultKind.LOST, 5.0, "GPU-a", "first"))
    book.note(Fault(FaultKind.LOST, 9.0, "GPU-a", "second"))
    book.note(Fault(FaultKind.NO_DRIVER, 1.0))
    assert [(fault.since_seconds, fault.detail) for fault in book.current] == [(1.0, ""), (5.0, "second")]
    assert book.current[1].description is FAULTS[FaultKind.LOST]
    book.keep_devices(frozenset({"GPU-b"}))
    assert [fault.kind for fault in book.current] == [FaultKind.NO_DRIVER]
    book.clear(FaultKind.NO_DRIVER, FaultKind.LOST)
    assert book.current == ()


@pytest.mark.parametrize(
    ("login", "words"),
    [("gpu-box", "gpu-box"), ("me@gpu-box:2222", "-p 2222 me@gpu-box"), ("[::1]", "::1"), ("[::1]:22", "-p 22 ::1")],
)
def test_advice_names_the_machine(login, words):
    assert f"(ssh {words})" in Fault(FaultKind.UNKNOWN_HOST_KEY, 0.0, login=login).description.advice
    assert f"(ssh-copy-id {words})" in Fault(FaultKind.REFUSED, 0.0, login=login).description.advice
    assert f" ssh://{login}/home" in Fault(FaultKind.NO_PROGRAM, 0.0, login=login).description.advice


@pytest.mark.parametrize(
    ("code", "report", "kind", "detail"),
    [
        (RESTART_EXIT_CODE, "", None, ""),
        (-11, 'File "pynvml.py", line 12 in nvmlInit', FaultKind.SAMPLER_CRASHED, "SIGSEGV in nvmlInit"),
        (-9, "", FaultKind.SAMPLER_FAILED, "SIGKILL"),
        (-250, "", FaultKind.SAMPLER_FAILED, "signal 250"),
        (0xC0000005, "", FaultKind.SAMPLER_CRASHED, "0xc0000005"),
        (1, "Traceback\nValueError: no", FaultKind.SAMPLER_FAILED, "ValueError: no"),
        (3, "", FaultKind.SAMPLER_FAILED, "exit code 3"),
        (None, "", FaultKind.SAMPLER_FAILED, "exit code None"),
    ],
)
def test_the_exit_of_a_sampler_is_explained(code, report, kind, detail):
    assert explain_sampler_exit(code, report) == (kind, detail)
