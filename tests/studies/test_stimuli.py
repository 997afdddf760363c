"""The data of energies, by name."""

import re

import pytest

from axs6.install import install_command
from axs6.studies import stimuli
from axs6.studies.stimuli import DIGITS, STIMULI, find_stimulus
from axs6.synth.energy_stimulus import Stimulus
from axs6.synth.errors import SynthesisError


def test_stimuli_are_found_by_name() -> None:
    assert list(STIMULI) == ["digits", "random"]
    assert all(find_stimulus(name) is stimulus for name, stimulus in STIMULI.items())
    with pytest.raises(SynthesisError, match="must be one of digits, random, not 'noise'"):
        find_stimulus("noise")


def test_missing_packages_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    wanting = Stimulus("digits", DIGITS.layers, ("torch", "no-such-package", "nor-this"))
    monkeypatch.setitem(stimuli.STIMULI, "digits", wanting)
    said = f"digits needs no-such-package and nor-this: {install_command('study')}"
    with pytest.raises(SynthesisError, match=re.escape(said)):
        find_stimulus("digits")


def test_what_makes_the_data_is_in_the_key() -> None:
    """Sources of the package that makes it, and versions of what it needs."""
    name, sources, *versions = DIGITS.key()
    assert (name, len(sources), len(versions)) == ("digits", 64, 2)
    assert find_stimulus("random").key() == ["random"]
