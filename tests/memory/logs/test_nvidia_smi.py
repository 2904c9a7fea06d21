"""Tables and lists of nvidia-smi."""

import log_excerpts as logs

from planner.memory.logs.read import read_log
from planner.units import MIB


def found(text):
    """Return the amounts by their name; those of several devices by name and device."""
    return {
        (item.name, item.device) if item.device not in (None, "0") else item.name: item
        for item in read_log(text).measured
    }


def test_the_table_of_nvidia_smi():
    amounts = found(logs.SMI_TABLE)
    assert amounts["used on the GPU"].bytes == 393 * MIB
    assert amounts["used on the GPU"].sense == "moment"
    assert amounts["nvidia-smi's total"].bytes == 24564 * MIB
    assert read_log(logs.SMI_TABLE).engine is None


def test_the_largest_process_is_the_one_that_is_meant():
    amounts = found(logs.SMI_PROCESSES)
    assert amounts["./llama-server, process 884422"].counter == "process"
    assert amounts["/usr/lib/xorg/Xorg, process 1714"].counter == "other-processes"


def test_lists_of_nvidia_smi():
    amounts = found(logs.SMI_LISTS)
    assert amounts["used on the GPU"].bytes == 9123 * MIB
    assert amounts["nvidia-smi's total"].bytes == 46068 * MIB
    assert amounts["/usr/bin/python3, process 52114"].bytes == 6294 * MIB
    assert amounts["tritonserver, process 44378"].counter == "other-processes"
    alone = found("name, memory.used [MiB]\nTesla T4, 4303 MiB\nTesla T4, [N/A]\n")
    assert [item.bytes for item in alone.values()] == [4303 * MIB]
    total = found("memory.used [MiB], memory.total [MiB]\n[N/A], 16384 MiB\n")
    assert list(total) == ["nvidia-smi's total"]
