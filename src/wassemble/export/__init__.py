"""Heads: a learned fusion frozen into a file that runs anywhere.

`export_onnx` writes an ONNX file and golden vectors, `verify_head` replays them, `load_head` runs
it; `export_torch` gives the same as a torch module. The mathematics stands once, in the rules:
`Rule.unroll`, run on the nodes of `graph`.
"""

from wassemble.export.head import Head, Verdict, export_onnx, load_head, verify_head
from wassemble.export.torch_module import export_torch

__all__ = ["Head", "Verdict", "export_onnx", "export_torch", "load_head", "verify_head"]
