"""Networks of many kinds, each as a target that can be traced, and the runs of them that are compared."""
