"""The costs of kinds of work, which are corrected by how long mixtures of them take.

Usual costs are those of another machine and of other data. Here each kind has a factor, which is 1
until something is measured. A measurement changes the factor of each kind by how much of it was
done and by how unsure the factor is. Kinds share causes (the speed of the processor, that of the
memory), so one that was not measured yet follows those that were. This is a Kalman filter for
factors that do not change.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

Seconds = npt.NDArray[np.float64]
"""float64[kinds], the seconds that an amount of each kind usually takes."""

_LEAST_FACTOR = 0.05
_LEAST_DOUBT = 1e-3
"""No measurement is surer than this, in seconds."""


class MeasuredCosts:
    """Factors of the usual costs of kinds of work."""

    def __init__(self, causes: Sequence[Sequence[float]], own: Sequence[float]) -> None:
        self._factors = np.ones(len(own))
        shared = np.array(causes)
        self._covariance = shared.T @ shared + np.diag(np.square(own))

    def measured(self, usual: Seconds, seconds: float, doubts: Sequence[float]) -> None:
        """Correct the factors. Cost: some 20 microseconds.

        A measurement that is far from what was expected, as of a process that was stopped for a
        while, is as unsure as it is far.
        """
        expected = float(usual @ self._factors)
        if expected <= 0:
            return
        too_long = max(1.0, seconds / expected)
        doubt = np.square(usual * self._factors * doubts).sum() * too_long**2 + _LEAST_DOUBT**2
        spread = self._covariance @ usual
        gain = spread / (usual @ spread + doubt)
        self._factors = np.maximum(self._factors + gain * (seconds - expected), _LEAST_FACTOR)
        self._covariance -= np.outer(gain, spread)

    def seconds(self, usual: Seconds) -> float:
        """Return how long work is expected to take, in seconds."""
        return float(usual @ self._factors)
