"""One consensus of models that are on several machines, which torch.distributed connects."""
