"""The generated label maps are what was asked for."""

import numpy as np

from optexp_jax.stand_ins import make_annotations


def test_more_labels_than_a_byte_holds():
    made = make_annotations(60, 24, seed=0, objects=847, parts=300, scenes=40)
    objects, parts, materials, _ = made.maps
    assert objects.max() > 512
    assert parts.max() > 255
    # An object is of one material, and every one has it: labels that wrapped would share theirs.
    np.testing.assert_array_equal(objects > 0, materials > 0)
    pairs = np.unique(np.stack([objects.ravel(), materials.ravel()]), axis=1)
    assert len(np.unique(pairs[0])) == pairs.shape[1]


def test_few_labels_stay_small():
    made = make_annotations(2, 8, seed=0)
    assert {labels.dtype for labels in made.maps} == {np.dtype(np.uint8)}
