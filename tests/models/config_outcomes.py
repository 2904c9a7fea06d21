"""Configurations that tests read, whether they can be read or are refused."""

import copy
from typing import Any

from planner.errors import ModelFileError
from planner.models.architecture import Architecture
from planner.models.readers.config_json import read_config


def read_or_refuse(config: dict[str, Any]) -> None:
    """Read `config`, and check that it is a network or is refused with a hint, and that it stays as it was."""
    before = copy.deepcopy(config)
    outcome = outcome_of(config)
    if isinstance(outcome, ModelFileError):
        assert outcome.message.startswith("config.json: ")
        assert outcome.hint
    else:
        assert 0 < outcome.active_parameters <= outcome.parameters
    # Not ==: a NaN put in by a mutation is not equal to itself.
    assert repr(config) == repr(before)


def outcome_of(config: dict[str, Any]) -> Architecture | ModelFileError:
    """Return the network, or the error of a configuration that cannot be read."""
    try:
        return read_config(config, "config.json")
    except ModelFileError as error:
        return error
