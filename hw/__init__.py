"""Hardware: Amaranth units, their registry, and the Verilog they become."""

import warnings

# A unit may be built only to be asked for its latency or its ports, and is then never elaborated.
warnings.filterwarnings("ignore", message=r"<axs6\.hw\..* created but never used")
