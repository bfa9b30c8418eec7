"""A variational autoencoder of handwritten digits, as users write it."""

from __future__ import annotations

import pytest

from tinytg import Tensor, TinyJit, nn


class VAE:
    """Images (batch, 64) of values from 0 to 1 to logits of the same, and the normal distribution between."""

    def __init__(self, width: int, latent: int) -> None:
        self.latent = latent
        self.encoder, self.to_latent = nn.Linear(64, width), nn.Linear(width, 2 * latent)
        self.decoder = [nn.Linear(latent, width), Tensor.relu, nn.Linear(width, 64)]

    def encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        mean, log_variance = self.to_latent(self.encoder(x).relu()).chunk(2, dim=-1)
        return mean, log_variance

    def __call__(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = self.encode(x)
        z = mean + (0.5 * log_variance).exp() * mean.randn_like()
        return z.sequential(self.decoder), mean, log_variance


def parts(logits: Tensor, mean: Tensor, log_variance: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
    """What reconstruction and the distance from the standard normal cost, in nats an image."""
    rebuilt = logits.binary_crossentropy_logits(x, reduction="none").sum(1).mean()
    distance = (-0.5 * (1 + log_variance - mean**2 - log_variance.exp())).sum(1).mean()
    return rebuilt, distance


@pytest.mark.slow
def test_digits_are_encoded_and_made_up() -> None:
    datasets = pytest.importorskip("sklearn.datasets", reason="needs scikit-learn's digits")
    images = (datasets.load_digits().data / 16).astype("float32")
    learnt, tested = Tensor(images[:1500]), Tensor(images[1500:])
    Tensor.manual_seed(4)
    model = VAE(96, 6)
    optimizer = nn.optim.Adam(nn.state.get_parameters(model), lr=6e-3)

    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        optimizer.zero_grad()
        rebuilt, distance = parts(*model(x), x)
        (rebuilt + distance).backward()
        optimizer.step()
        return rebuilt, distance

    history = [step(learnt[Tensor.randint(64, high=len(learnt))].realize()) for _ in range(300)]
    first, last = history[0], [float(Tensor.stack(*costs).mean().item()) for costs in zip(*history[-20:], strict=True)]
    assert float(first[0].item()) > 42 and sum(last) < 30, last
    assert last[1] > 2  # what is between says something of the image
    with Tensor.no_grad():
        mean, _ = model.encode(tested)
        rebuilt = mean.sequential(model.decoder).sigmoid()
        error = float((rebuilt - tested).square().mean().item())
        spread = float((tested - tested.mean(0)).square().mean().item())
        assert error < 0.6 * spread, (error, spread)
        made = Tensor.randn(501, 6).sequential(model.decoder).sigmoid().numpy()
    assert abs(made.mean() - images.mean()) < 0.04 and abs(made.std() - images.std()) < 0.12
    assert made.std(0).max() > 0.15  # not always the same image
