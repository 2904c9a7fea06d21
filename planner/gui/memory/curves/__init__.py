"""Memory over one number of the plan."""
