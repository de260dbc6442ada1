"""The segmented log engine."""
