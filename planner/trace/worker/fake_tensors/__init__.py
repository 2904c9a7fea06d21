"""Fake tensors made to behave as real ones: known values, assumed values, storages of the true size."""
