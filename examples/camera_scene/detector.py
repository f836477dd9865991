"""A small network that finds things in pictures, and how it is taught. It is told of no task.

A thing is a row of seven numbers: its kind, its class (a colour, say), x, y, z, cosine and sine of its yaw.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from bilevel.tabletop.rendering import Canvas

SIZE, CELL = (192, 128), 4  # width and height of a picture, and of the squares that the network tells apart, in pixels
DECIMETRE = 0.1  # heights are learned in these
LEVEL = 0.01  # what is seen as near as this to the height at which its kind rests is there
Array = Any


class Detector(nn.Module):
    """For each square of a picture and each kind: whether one is there, where in it, how high, turned how, its class.

    It is told where the robot's hand is, too, which any robot knows.
    """

    def __init__(self, kinds: int, classes: int, hand: int) -> None:
        super().__init__()
        self.kinds = kinds

        def layer(inputs: int, outputs: int, stride: int = 1) -> nn.Module:
            convolution = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
            return nn.Sequential(convolution, nn.BatchNorm2d(outputs), nn.ReLU())

        self.fine = nn.Sequential(layer(3, 16, 2), layer(16, 32, 2), layer(32, 32))
        self.coarse = nn.Sequential(layer(32, 64, 2), layer(64, 64))
        self.hand = nn.Sequential(nn.BatchNorm1d(hand), nn.Linear(hand, 64))
        self.context = nn.Sequential(layer(64, 64), layer(64, 64))
        self.both = nn.Sequential(layer(96, 48), layer(48, 48))
        inputs = 48 + 3 * CELL**2  # features and the colours of all pixels
        self.head = nn.Sequential(nn.Conv2d(inputs, 96, 1), nn.ReLU(), nn.Conv2d(96, kinds * (6 + classes), 1))

    def forward(self, pictures: Tensor, hands: Tensor) -> Tensor:
        """(pictures, kinds, rows, columns, 6 + classes): is one there, across, down, height, cosine, sine, classes."""
        pixels = pictures.permute(0, 3, 1, 2).float() / 128 - 1
        fine = self.fine(pixels)
        coarse = self.context(self.coarse(fine) + self.hand(hands)[:, :, None, None])
        both = self.both(torch.cat([fine, functional.interpolate(coarse, scale_factor=2.0)], 1))
        found = self.head(torch.cat([both, functional.pixel_unshuffle(pixels, CELL)], 1))
        return torch.unflatten(found, 1, (self.kinds, -1)).permute(0, 1, 3, 4, 2)

    @torch.no_grad()
    def detect(self, picture: Array, hand: Array, canvas: Canvas, resting: Array, threshold: float = 0.6) -> Array:
        """Return (things, 8): what is in the picture, and how sure; `resting` has the heights of kinds at rest."""
        found = self(torch.tensor(picture)[None], torch.tensor(hand, dtype=torch.float32)[None])[0]
        sure = found[..., 0].sigmoid()
        peaks = (sure == functional.max_pool2d(sure[None], 3, 1, 1)[0]) & (sure > threshold)
        kind, down, across = peaks.nonzero().T.numpy()
        numbers, height = found[peaks].numpy(), np.array(resting)[kind]
        where = (np.stack([across, down], 1) + 0.5 + numbers[:, 1:3]) * CELL / SIZE
        z = numbers[:, 3] * DECIMETRE
        points = canvas.unproject(where, np.where(abs(z - height) < LEVEL, height, z))
        rows = np.column_stack([kind, numbers[:, 6:].argmax(1), points, numbers[:, 4:6], sure[peaks]])
        return rows[np.argsort(-rows[:, 7])]


def loss(found: Tensor, places: Tensor, rows: Tensor) -> Tensor:
    """What is wrong with what was found, given where the things are, (pictures, things, 2), in squares, nan for none.

    As in CenterNet: a focal loss for where things are, and the rest is learned at and beside their middles.
    """
    _, kinds, height, width, _ = found.shape
    picture, thing = places.isfinite().all(2).nonzero(as_tuple=True)
    where, row = places[picture, thing], rows[picture, thing]
    kind, size = row[:, 0].long(), torch.tensor([width, height])
    y, x = torch.arange(height) + 0.5, torch.arange(width) + 0.5
    far = ((x - places[..., :1]) ** 2)[:, :, None] + ((y - places[..., 1:]) ** 2)[..., None]
    near = (-far / 1.5).exp().nan_to_num(0.0)  # (pictures, things, height, width)
    near = torch.stack([(near * (rows[:, :, 0] == k)[..., None, None]).amax(1) for k in range(kinds)], 1)
    across, down = where.long().clamp(torch.tensor(0), size - 1).T
    score, is_middle = found[..., 0], torch.zeros_like(near, dtype=torch.bool)
    is_middle[picture, kind, down, across] = True
    hits = (1 - score.sigmoid()) ** 2 * functional.logsigmoid(score) * is_middle
    others = (1 - near) ** 4 * score.sigmoid() ** 2 * functional.logsigmoid(-score) * ~is_middle
    total = -(hits.sum() + others.sum())
    for beside in ((0, 0), (1, 0), (-1, 0), (0, 1), (0, -1)):
        cell = (torch.stack([across, down], 1) + torch.tensor(beside)).clamp(torch.tensor(0), size - 1)
        here = found[picture, kind, cell[:, 1], cell[:, 0]]
        aims = torch.cat([where - cell - 0.5, row[:, 4:5] / DECIMETRE, row[:, 5:]], 1)
        total = total + 0.4 * (here[:, 1:6] - aims).abs().sum()
        total = total + 0.2 * functional.cross_entropy(here[:, 6:], row[:, 1].long(), reduction="sum")
    return total / max(1, len(picture))
