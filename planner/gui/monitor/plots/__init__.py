"""The plots of the Monitor tab: a grid of them over one time axis, with a band of events."""
