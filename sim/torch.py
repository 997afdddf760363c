"""The old name of `axs6.torch`: it works until the next release, with a warning."""

import warnings

from axs6.torch import *  # noqa: F403 - whatever `axs6.torch` makes public

warnings.warn("axs6.sim.torch is axs6.torch now", DeprecationWarning, stacklevel=2)
