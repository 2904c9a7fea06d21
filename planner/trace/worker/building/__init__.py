"""From a request to modules and inputs that are ready to run."""
