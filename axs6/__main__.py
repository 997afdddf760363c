"""`python -m axs6` is the command line."""

from axs6.cli import main

main()
