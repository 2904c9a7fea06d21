"""Fake tensors that behave like real ones: known values, assumed values, true storage sizes."""
