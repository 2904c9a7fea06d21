"""Memory as people read it: the verdict, what takes the bytes, advice, and one estimate beside another."""
