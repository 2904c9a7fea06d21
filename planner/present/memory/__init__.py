"""Text and tables about memory: the verdict, the breakdown, advice, and comparisons of estimates."""
