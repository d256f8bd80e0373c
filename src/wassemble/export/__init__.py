"""Heads: a learned fusion frozen into a file that runs anywhere."""

from wassemble.export.head import Head, Verdict, export_onnx, load_head, verify_head

__all__ = ["Head", "Verdict", "export_onnx", "load_head", "verify_head"]
