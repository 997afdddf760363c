"""Training in block formats: tools around the products that `convert` replaces."""

from axs6.torch.training.blocks import choose_blocks
from axs6.torch.training.delayed import DelayedScales, DelayedScaling
from axs6.torch.training.distributed import Compression, check_same_options, compression_hook
from axs6.torch.training.elementwise import Elementwise
from axs6.torch.training.options import set_options
from axs6.torch.training.outliers import OutlierLinear, keep_outliers, split_outliers
from axs6.torch.training.scaler import GradScaler, saturated_share
from axs6.torch.training.schedule import FormatSchedule, reset_optimiser

__all__ = [
    "Compression",
    "DelayedScales",
    "DelayedScaling",
    "Elementwise",
    "FormatSchedule",
    "GradScaler",
    "OutlierLinear",
    "check_same_options",
    "choose_blocks",
    "compression_hook",
    "keep_outliers",
    "reset_optimiser",
    "saturated_share",
    "set_options",
    "split_outliers",
]
