"""The captioners that are fused: their network, their training, their files."""
