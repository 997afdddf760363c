"""AXS-6 in torch: models whose matrix products have the bits of the hardware."""

from axs6.sim.torch.convert import convert
from axs6.sim.torch.feedback import ErrorFeedback
from axs6.sim.torch.freeze import freeze, unfreeze
from axs6.sim.torch.functional import MatMul, bmm, matmul
from axs6.sim.torch.lfsr import Lfsr
from axs6.sim.torch.ops import fake_quantise
from axs6.sim.torch.packed import load_packed, packed_policy, save_packed
from axs6.sim.torch.policy import Policy
from axs6.sim.torch.profile import profile
from axs6.sim.torch.quantise import decode, encode
from axs6.sim.torch.quantised_gradients import QuantisedGradients
from axs6.sim.torch.report import Report
from axs6.sim.torch.unconverted import UnconvertedWarning

__all__ = [
    "ErrorFeedback",
    "Lfsr",
    "MatMul",
    "Policy",
    "QuantisedGradients",
    "Report",
    "UnconvertedWarning",
    "bmm",
    "convert",
    "decode",
    "encode",
    "fake_quantise",
    "freeze",
    "load_packed",
    "matmul",
    "packed_policy",
    "profile",
    "save_packed",
    "unfreeze",
]
