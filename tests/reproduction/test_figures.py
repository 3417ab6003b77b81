"""A unit's figure: the optimum above the beam, captured activation blue, missed yellow."""

import numpy as np

import optexp_jax as ox
from optexp_jax.datasets import ArrayDataset
from optexp_jax.pictures import SampleImages
from optexp_jax.reproduction.figures import IMAGES, LINE, PADDING, SIDE, FigureRow, draw_unit
from optexp_jax.runs import BitmapUnits


def explanation(formula: ox.Formula) -> ox.Explanation:
    return ox.Explanation(formula, 1, 2, 1.0, ox.Status.FEASIBLE)


def test_rows_show_what_each_method_captures():
    masks = np.zeros((2, 6, 8, 8), dtype=bool)
    masks[0, :, :, :4] = True  # left
    masks[1, :5, :, 4:] = True  # right, but not in the last sample
    bitmap = np.ones((1, 6, 8, 8), dtype=bool)
    bitmap[0, 5] = False
    bitmap[0, 2, :4] = False  # half of it, so that others come first
    table = ox.ConceptTable.from_masks(masks, names=["left", "right"])
    black = np.zeros((6, 8, 8, 3), np.uint8)
    images = SampleImages.of_dataset(ArrayDataset.from_masks(black, masks, ["left", "right"]))
    rows = [
        FigureRow("Optimal", explanation(ox.Formula.parse("left OR right", table))),
        FigureRow("Beam", explanation(ox.Formula.concept("left"))),
    ]
    figure = draw_unit(BitmapUnits(table, bitmap), images, 0, rows)
    assert figure.shape[1] == IMAGES * SIDE + (IMAGES + 1) * PADDING
    optimal = figure[2 * LINE + PADDING :][:SIDE]
    beam = figure[3 * LINE + SIDE + 3 * PADDING :][:SIDE]

    def colours(strip: np.ndarray, image: int) -> tuple[np.ndarray, np.ndarray]:
        left = PADDING + image * (SIDE + PADDING)
        return strip[SIDE // 2, left + SIDE // 4], strip[SIDE // 2, left + 3 * SIDE // 4]

    for image in range(IMAGES):  # samples 0, 1, 3 and 4: of 2 less is captured
        for blue in (*colours(optimal, image), colours(beam, image)[0]):
            assert blue[2] > blue[0]
        yellow = colours(beam, image)[1]
        assert yellow[0] > yellow[2]
    assert (figure[2 * LINE : 2 * LINE + PADDING] == 255).all()


def test_text_has_the_formula_and_its_iou():
    row = FigureRow("Beam", explanation(ox.Formula.concept("sky")))
    assert row.text == "Beam: sky, IoU 0.5000"
