"""Where plans come from: training files of other programs, and well-known recipes."""
