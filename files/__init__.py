"""Tensors in files: weights as packed blocks in a safetensors container, and back."""

from axs6.files.decode import decode_file
from axs6.files.describe import describe_file
from axs6.files.encode import Options, encode_file

__all__ = ["Options", "decode_file", "describe_file", "encode_file"]
