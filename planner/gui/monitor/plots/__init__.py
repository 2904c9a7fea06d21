"""The plots of the Monitor tab: a grid of plots and a band of events with a shared time axis."""
