"""AXS-6 in torch: models whose matrix products have the bits of the hardware."""

from axs6.torch.checkpoints import checkpoint_policy, load_checkpoint, save_checkpoint
from axs6.torch.convert import convert
from axs6.torch.feedback import ErrorFeedback
from axs6.torch.freeze import freeze, unfreeze
from axs6.torch.functional import MatMul, bmm, matmul
from axs6.torch.hadamard import hadamard
from axs6.torch.lfsr import Lfsr
from axs6.torch.ops import fake_quantise
from axs6.torch.packed import load_packed, packed_policy, save_packed
from axs6.torch.policy import Policy
from axs6.torch.profile import profile
from axs6.torch.quantise import decode, encode
from axs6.torch.quantised_gradients import QuantisedGradients
from axs6.torch.report import Report
from axs6.torch.unconverted import UnconvertedWarning

__all__ = [
    "ErrorFeedback",
    "Lfsr",
    "MatMul",
    "Policy",
    "QuantisedGradients",
    "Report",
    "UnconvertedWarning",
    "bmm",
    "checkpoint_policy",
    "convert",
    "decode",
    "encode",
    "fake_quantise",
    "freeze",
    "hadamard",
    "load_checkpoint",
    "load_packed",
    "matmul",
    "packed_policy",
    "profile",
    "save_checkpoint",
    "save_packed",
    "unfreeze",
]
