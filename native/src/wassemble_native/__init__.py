"""Sweeps of entropic Wasserstein barycenters in native code, for wassemble.

`wassemble` finds this package by itself and checks what users give it; what is here checks that
arrays fit each other, so that no call leaves its memory.
"""

from wassemble_native.kernels import PackedKernel as PackedKernel
from wassemble_native.library import level as level, levels as levels
from wassemble_native.means import take_means as take_means
from wassemble_native.tiles import NativeTile as NativeTile

__version__ = "0.1.0"

#: Raised with every change after which an older or newer wassemble would not fit.
INTERFACE = 3
