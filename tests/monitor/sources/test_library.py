"""Loading a vendor's library, and what it lacks."""

import pytest
from cards_kit import write_files

from planner.monitor.readings.faults import FaultKind
from planner.monitor.readings.reading import Cause, missing
from planner.monitor.sources.library import LibrarySource
from planner.monitor.sources.source import CardGoneError, SourceFailedError


@pytest.mark.parametrize(("name", "function"), [("amd", "amdsmi_init"), ("intel", "zesInit")])
def test_a_library_that_cannot_be_opened_is_named(request, near_vendors, name, function):
    source = request.getfixturevalue(name)
    near_vendors.say_of_vendors(**{f"error__{function}": 34})
    with pytest.raises(SourceFailedError, match=f"{function} returned 0x22") as caught:
        source.find(0.0)
    assert caught.value.kind is FaultKind.SOURCE_FAILED


@pytest.mark.parametrize("name", ["amd", "intel"])
def test_without_its_library_or_its_cards_a_source_has_none(request, near_vendors, name):
    source = request.getfixturevalue(name)
    (device,) = source.find(0.0)
    source.close()
    with pytest.raises(CardGoneError):
        source.read(device, 1.0, slow=False)
    fresh = LibrarySource(near_vendors.root, source._interface._replace(names=("libno_such_library.so",)))
    assert fresh.find(0.0) == ()
    # A card that the system may suspend is not asked: the library would keep it awake.
    write_files(near_vendors.root / "sys/class/drm/card0", {"device/power/control": "auto"})
    assert source.find(0.0) == ()


def test_a_function_that_this_version_lacks_is_missing(amd, monkeypatch):
    (device,) = amd.find(0.0)
    monkeypatch.setattr(type(amd._library), "call", _without("amdsmi_get_energy_count", type(amd._library).call))
    assert amd.read(device, 1.0, slow=False)["energy_joules"] == missing(Cause.MISSING_SYMBOL)


def _without(name, call):
    def lacking(self, function, *arguments):
        return call(self, "amdsmi_no_such_function" if function == name else function, *arguments)

    return lacking
