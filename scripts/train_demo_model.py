"""Train the network of `optexp demo` on generated scenes, and write its weights into the package.

    python scripts/train_demo_model.py

It takes a few minutes on one core. The same machine gives the same file every time.
"""

import argparse
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import safetensors.torch
import torch

from optexp_jax.activations.demo_network import PREPROCESSING, SIZE, STRIDE, DemoNetwork
from optexp_jax.datasets.shapes import Shapes

PACKAGE = Path(__file__).resolve().parent.parent / "optexp_jax"
CELLS = SIZE // STRIDE
SEED = 20
"""Of the scenes to learn from; the demo shows others."""


def example(place: tuple[int, int]) -> tuple[np.ndarray, np.ndarray]:
    """A scene as the network takes it, and the share of each cell that each concept covers."""
    seed, index = place
    scenes = Shapes(index + 1, seed, SIZE)
    sample = scenes[index]
    shares = np.zeros((len(scenes.concepts()), CELLS, CELLS), np.float32)
    for concept in sample.everywhere:
        shares[concept] = 1
    row, column = np.ogrid[:CELLS, :CELLS]
    for values in sample.maps:
        cells = values.reshape(CELLS, STRIDE, CELLS, STRIDE).transpose(0, 2, 1, 3)
        pixels = cells.reshape(CELLS, CELLS, STRIDE * STRIDE)
        for k in range(STRIDE * STRIDE):
            covered = pixels[:, :, k] >= 0
            concept = np.where(covered, pixels[:, :, k], 0)
            np.add.at(shares, (concept, row, column), covered / np.float32(STRIDE * STRIDE))
    return PREPROCESSING(sample.image), np.minimum(shares, 1)


def make_examples(n: int, seed: int, workers: int) -> tuple[torch.Tensor, torch.Tensor]:
    with ProcessPoolExecutor(workers) as pool:
        made = list(pool.map(example, [(seed, k) for k in range(n)], chunksize=50))
    images, shares = zip(*made, strict=True)
    return torch.from_numpy(np.stack(images)), torch.from_numpy(np.stack(shares))


def flip(images: torch.Tensor, shares: torch.Tensor, generator: torch.Generator):
    """Half of the examples, mirrored."""
    mirrored = torch.rand(len(images), generator=generator)[:, None, None, None] < 0.5
    return (
        torch.where(mirrored, images.flip(3), images),
        torch.where(mirrored, shares.flip(3), shares),
    )


def train(n: int, epochs: int, batch: int, rate: float, workers: int) -> DemoNetwork:
    images, shares = make_examples(n, SEED, workers)
    print(f"{n} scenes, {shares.shape[1]} concepts", flush=True)
    torch.manual_seed(SEED)
    generator = torch.Generator().manual_seed(SEED)
    network = DemoNetwork(shares.shape[1])
    # Rare concepts weigh more, or the network would learn to say no.
    weight = (1 / shares.mean((0, 2, 3)).clamp(min=1e-3)).sqrt()[:, None, None]
    loss_of = torch.nn.BCEWithLogitsLoss(pos_weight=weight)
    optimiser = torch.optim.AdamW(network.parameters(), rate, weight_decay=1e-3)
    steps = epochs * (n // batch)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, rate, total_steps=steps)
    started = time.perf_counter()
    for epoch in range(epochs):
        total = 0.0
        for chosen in torch.randperm(n, generator=generator)[: n // batch * batch].split(batch):
            seen, wanted = flip(images[chosen], shares[chosen], generator)
            optimiser.zero_grad()
            loss = loss_of(network(seen), wanted)
            loss.backward()
            optimiser.step()
            schedule.step()
            total += loss.item()
        seconds = time.perf_counter() - started
        print(f"epoch {epoch + 1}: loss {total / (n // batch):.4f}, {seconds:.0f} s", flush=True)
    return network.eval()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scenes", type=int, default=1500)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rate", type=float, default=4e-3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=PACKAGE / "data" / "demo_network.safetensors")
    options = parser.parse_args()
    torch.use_deterministic_algorithms(True)
    torch.set_num_threads(1)  # Sums in one order, whatever the number of cores.
    network = train(options.scenes, options.epochs, options.batch, options.rate, options.workers)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    kept = {
        name: tensor
        for name, tensor in network.state_dict().items()
        if not name.endswith("num_batches_tracked")
    }
    # Not with save_file, which makes files that only their owner may read.
    options.out.write_bytes(safetensors.torch.save(kept))
    print(f"{options.out.name}: {options.out.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
