"""Spectra over time against their definition by numpy's transform."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tg_frontend import Tensor

rng = np.random.default_rng(7)
SIGNAL = rng.standard_normal((2, 53))


def expected(x: Any, n: int, hop: int, window: Any, center: bool, onesided: bool = True) -> Any:
    """Pieces, cut one by one."""
    if center:
        x = np.pad(x, ((0, 0), (n // 2, n // 2)), mode="reflect")
    full = np.zeros(n)
    left = (n - len(window)) // 2
    full[left : left + len(window)] = window
    pieces = np.stack([x[:, i : i + n] * full for i in range(0, x.shape[1] - n + 1, hop)], 2)
    return np.fft.rfft(pieces, axis=1) if onesided else np.fft.fft(pieces, axis=1)


@pytest.mark.parametrize(("n", "hop", "width"), [(8, 2, 8), (8, 3, 6), (7, 2, 7), (11, 11, 5), (1, 1, 1)])
@pytest.mark.parametrize("center", [True, False])
def test_there_and_back(n: int, hop: int, width: int, center: bool) -> None:
    window = rng.random(width) + 0.1
    given = (n, hop, width, Tensor(window))
    found = Tensor(SIGNAL).stft(*given, center=center)
    np.testing.assert_allclose(found.numpy(), expected(SIGNAL, n, hop, window, center), atol=1e-13)
    one = Tensor(SIGNAL[0]).stft(*given, center=center, normalized=True)
    np.testing.assert_allclose(one.numpy(), found.numpy()[0] / np.sqrt(n), atol=1e-13)
    both = Tensor(SIGNAL).stft(*given, center=center, onesided=False)
    np.testing.assert_allclose(both.numpy(), expected(SIGNAL, n, hop, window, center, False), atol=1e-13)
    turned = Tensor(SIGNAL * 1j).stft(*given, center=center)
    np.testing.assert_allclose(turned.numpy(), both.numpy() * 1j, atol=1e-13)
    if hop > width or (not center and n > width):
        return
    for spectrum, onesided in ((found, None), (both, False)):
        again = spectrum.istft(*given, center=center, onesided=onesided)
        count = again.shape[1]
        np.testing.assert_allclose(again.numpy(), SIGNAL[:, :count], atol=1e-12)
        assert count > SIGNAL.shape[1] - n - hop
    signal = turned.istft(*given, center=center, onesided=False, return_complex=True)
    np.testing.assert_allclose(signal.numpy(), 1j * SIGNAL[:, : signal.shape[1]], atol=1e-12)
    if width < n:
        return  # behind the last piece there are numbers that are in no window
    one_again = one.istft(*given, center=center, normalized=True, length=60)
    assert one_again.shape == (60,)
    np.testing.assert_allclose(one_again.numpy()[:40], SIGNAL[0, :40], atol=1e-12)


def test_the_gradient_flows() -> None:
    x: Any = Tensor(SIGNAL[0], requires_grad=True)
    window = Tensor.hann_window(8, dtype="float64")
    loss = x.stft(8, window=window).abs().square().sum()
    loss.backward()
    step = 1e-6
    for i in (0, 17, 52):
        ends = []
        for sign in (1, -1):
            moved = SIGNAL[0].copy()
            moved[i] += sign * step
            ends.append(Tensor(moved).stft(8, window=window).abs().square().sum().item())
        assert x.grad[i].item() == pytest.approx((ends[0] - ends[1]) / (2 * step), rel=1e-6)


def test_bad_input() -> None:
    x: Any = Tensor(SIGNAL)
    z = x.stft(8)
    wrong: list[tuple[Any, type[Exception], str]] = [
        (lambda: x.stft(8, 0), ValueError, r"Tensor\.stft: hop_length is 0"),
        (lambda: x.stft(0), ValueError, r"Tensor\.stft: n_fft is 0|hop_length is 0"),
        (lambda: x.stft(8.0), TypeError, r"Tensor\.stft: .*(integer|int)"),
        (lambda: x.stft(8, win_length=9), ValueError, r"Tensor\.stft: a window of 9 for pieces of n_fft=8"),
        (lambda: x.stft(8, window=Tensor.ones(7)), ValueError, r"Tensor\.stft: the window has shape \(7,\)"),
        (lambda: x.stft(8, window=[1.0] * 8), TypeError, r"Tensor\.stft: "),
        (lambda: x.stft(99, center=False), ValueError, r"Tensor\.stft: a signal of shape \(2, 53\) is shorter"),
        (lambda: x.reshape(1, 2, 53).stft(8), ValueError, r"Tensor\.stft: a signal has shape"),
        (lambda: (x * 1j).stft(8, onesided=True), ValueError, r"Tensor\.stft: onesided=True is for real numbers"),
        (lambda: x.stft(8, return_complex=False), TypeError, r"Tensor\.stft: return_complex=False is not offered"),
        (lambda: x.istft(8), TypeError, r"Tensor\.istft: complex numbers are wanted"),
        (lambda: z.istft(9, onesided=False), ValueError, r"Tensor\.istft: shape .* 9 frequencies are wanted"),
        (lambda: z.istft(8, return_complex=True), ValueError, r"Tensor\.istft: return_complex=True wants all"),
        (lambda: z[0, 0].istft(8), ValueError, r"Tensor\.istft: shape \(frequencies, pieces\)"),
        (lambda: z.istft(8, 8, window=Tensor.hann_window(8)), ValueError, r"Tensor\.istft: some numbers .* in no"),
    ]
    for call, error, message in wrong:
        with pytest.raises(error, match=message):
            call()
