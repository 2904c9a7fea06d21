"""Scripts as they are: run unchanged until their last traced step, with files, downloads and loaders answered."""
