"""Test vectors for every implementation of AXS-6 and of the other block formats: docs/vectors.md.

The outputs are those of the exact model, wherever they are computed, and the golden model must
give the same.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from axs6.golden.vectors.accumulators import ACCUMULATED
from axs6.golden.vectors.decoding import DECODE, UNPACK
from axs6.golden.vectors.encoding import ENCODE, STOCHASTIC
from axs6.golden.vectors.formats import format_subjects
from axs6.golden.vectors.products import BLOCK_DOT, DOT, MATMUL
from axs6.golden.vectors.sequences import FEEDBACK, LFSR
from axs6.golden.vectors.subject import Case, Subject, Vector
from axs6.replacing import make_folder, replacing

__all__ = ["SUBJECTS", "Case", "Subject", "Vector", "format_subjects", "write_vectors"]

SUBJECTS: Final = {
    subject.name: subject
    for subject in (
        ENCODE,
        STOCHASTIC,
        DECODE,
        UNPACK,
        BLOCK_DOT,
        DOT,
        MATMUL,
        ACCUMULATED,
        LFSR,
        FEEDBACK,
    )
}
"""Every subject but those of other formats, by its name."""


def write_vectors(folder: Path, subjects: Mapping[str, Subject]) -> Iterator[tuple[Path, int]]:
    """Write the files of these subjects; gives the path of each and the number of its cases.

    Raises:
        OSError: a file cannot be written.
        RuntimeError: the models differ; the message names the first case. The file is not written.
    """
    make_folder(folder)
    for subject in subjects.values():
        vectors = list(subject.vectors())
        for difference in subject.differences(vectors):
            raise RuntimeError(difference)
        path = folder / subject.file_name
        make_folder(path.parent)
        with replacing(path) as file:
            file.write(subject.write(vectors).encode())
        yield path, len(vectors)
