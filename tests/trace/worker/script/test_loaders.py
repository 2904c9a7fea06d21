"""Data loaders of scripts: inline, without processes and threads."""

import pytest
from scripted import NET, peak_bytes, real_peak_bytes, script, traced

LOADED = (
    NET
    + """
from torch.utils.data import DataLoader, Dataset
class Rows(Dataset):
    def __len__(self):
        return 100_000
    def __getitem__(self, index):
        assert type(index) is int
        return torch.rand(64), index % 8
optimizer = torch.optim.Adam(net.parameters())
for x, y in DataLoader(Rows(), batch_size=16, shuffle=True OPTIONS):
    optimizer.zero_grad()
    nn.functional.cross_entropy(net(x), y).backward()
    optimizer.step()
"""
)
WORKERS = ", num_workers=3, persistent_workers=True, prefetch_factor=4, pin_memory=True, timeout=5"


def test_batches_are_those_of_the_real_run(tmp_path):
    request = script(tmp_path, LOADED.replace("OPTIONS", ""))
    assert abs(peak_bytes(traced(request)) - real_peak_bytes(request)) <= 64


@pytest.mark.parametrize("options", [WORKERS, ", num_workers=3, multiprocessing_context='spawn'"])
def test_workers_are_counted_and_not_started(tmp_path, options):
    inline = traced(script(tmp_path, LOADED.replace("OPTIONS", "")))
    recording = traced(script(tmp_path, LOADED.replace("OPTIONS", options)))
    assert peak_bytes(recording) == peak_bytes(inline)
    assert any("3 workers of a data loader" in note for note in recording.notes)
    assert not any("data loader" in note for note in inline.notes)
