"""Owning: what hardware is bought for, costs to run, is sold for again, and what the books say."""
