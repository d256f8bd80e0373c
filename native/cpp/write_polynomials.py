"""Write polynomials.h: log2 of a mantissa and 2 to a fraction, each for float and double.

All without what they are at 0, so that small results have all their digits.

Interpolated at Chebyshev nodes in extended precision, which is within a factor of two of the
best that a polynomial of its length can do; each is as long as its type can resolve. Needs a
`numpy.longdouble` that is longer than a double.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np

Long = np.longdouble
LN2 = np.log(Long(2))
# A mantissa is from sqrt(1/2) to sqrt(2).
ROOT = np.sqrt(Long(2))


def interpolate(function: Callable, low: float, high: float, n: int) -> np.ndarray:
    """Coefficients, lowest first, of the polynomial through ``n`` Chebyshev nodes."""
    angles = (2 * np.arange(n, dtype=Long) + 1) * np.arccos(Long(-1)) / (2 * n)
    nodes = (Long(low) + Long(high)) / 2 + (Long(high) - Long(low)) / 2 * np.cos(angles)
    slopes = function(nodes)
    for order in range(1, n):  # Newton's divided differences
        slopes[order:] = (slopes[order:] - slopes[order - 1 : -1]) / (
            nodes[order:] - nodes[:-order]
        )
    polynomial = np.zeros(n, Long)
    for node, slope in zip(nodes[::-1], slopes[::-1], strict=True):
        polynomial = np.concatenate([[Long(0)], polynomial[:-1]]) - node * polynomial
        polynomial[0] += slope
    return polynomial


def log2_over_offset(z: np.ndarray) -> np.ndarray:
    """log2(1 + z) / z."""
    return np.log1p(z) / z / LN2


def log2_over_quotient(square: np.ndarray) -> np.ndarray:
    """log2(m) / s for m = (1 + s) / (1 - s), by the square of s."""
    s = np.sqrt(square)
    return 2 * np.arctanh(s) / s / LN2


def exp2_minus_one_over(x: np.ndarray) -> np.ndarray:
    """(2^x - 1) / x."""
    return np.where(x == 0, LN2, np.expm1(x * LN2) / np.where(x == 0, 1, x))


def main() -> None:
    """Write the header beside this file."""
    quotient = ((ROOT - 1) / (ROOT + 1)) ** 2
    tables = {
        ("float", "log2_of_float"): interpolate(log2_over_offset, 1 / ROOT - 1, ROOT - 1, 9),
        ("float", "exp2_of_float"): interpolate(exp2_minus_one_over, -0.5, 0.5, 6),
        ("double", "log2_of_double"): interpolate(log2_over_quotient, 0, quotient, 8),
        ("double", "exp2_of_double"): interpolate(exp2_minus_one_over, -0.5, 0.5, 11),
    }
    lines = ["// Written by write_polynomials.py: coefficients, lowest first.", "#pragma once", ""]
    for (kind, name), values in tables.items():
        lines.append(f"constexpr {kind} {name}[] = {{")
        digits = 9 if kind == "float" else 17
        mark = "f" if kind == "float" else ""
        lines += [
            f"    {np.format_float_scientific(v, digits, unique=False)}{mark}," for v in values
        ]
        lines += ["};", ""]
    Path(__file__).with_name("polynomials.h").write_text("\n".join(lines[:-1]) + "\n")


if __name__ == "__main__":
    main()
