"""Training and test data of the built-in models."""

from dataclasses import dataclass

import torch
from torch import Tensor

TEST_SHARE = 0.5
SEED = 0


@dataclass(frozen=True, eq=False)
class Digits:
    """Handwritten digits, in two parts that share no image.

    Args:
        images, labels: to train on: float32 (N, 8, 8) in 0 to 1, and the digits, int64 (N,).
        test_images, test_labels: the test set.
    """

    images: Tensor
    labels: Tensor
    test_images: Tensor
    test_labels: Tensor


def digits() -> Digits:
    """The 1,797 images of 8 x 8 pixels that scikit-learn ships as `load_digits`.

    They are the test part of "Optical Recognition of Handwritten Digits" (UCI). Half of each
    digit's images, drawn with a fixed seed, are the training set (898), the other half the test set
    (899): so large that one image is 0.11 points of accuracy.
    """
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split

    every = load_digits()
    images, test_images, labels, test_labels = train_test_split(
        every.images / 16,
        every.target,
        test_size=TEST_SHARE,
        random_state=SEED,
        stratify=every.target,
    )
    return Digits(
        torch.tensor(images, dtype=torch.float32),
        torch.tensor(labels),
        torch.tensor(test_images, dtype=torch.float32),
        torch.tensor(test_labels),
    )
