"""Models of public libraries that are run and traced, each with small inputs."""
