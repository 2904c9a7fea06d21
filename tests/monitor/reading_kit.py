"""Readings of each kind."""

from hypothesis import strategies as st

from planner.monitor.readings.reading import Cause, Reading, missing

READINGS = st.one_of(
    st.builds(Reading, st.integers(-(2**63), 2**64) | st.floats(allow_nan=False), st.none(), st.booleans()),
    st.sampled_from(Cause).map(missing),
)
