"""Learning a kernel by gradients through the solver, from candidate kernels and the truth."""

from wassemble.ensemble.learning.kernels.learn import LearnedKernel, learn_kernel

__all__ = ["LearnedKernel", "learn_kernel"]
