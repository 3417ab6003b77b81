"""The length that pays on other images."""

import numpy as np
import pytest

import optexp_jax as ox


def layer(seed: int, n_samples: int = 60) -> tuple[ox.ConceptTable, np.ndarray]:
    rng = np.random.default_rng(seed)
    masks = rng.random((8, n_samples, 20)) < 0.15
    return ox.ConceptTable.from_masks(masks), masks


def test_a_planted_pair_needs_two_concepts():
    table, masks = layer(0)
    found = ox.choose_length(table, masks[0] | masks[3], longest=3)
    assert found.length == 2
    assert [each.length for each in found.compared] == [1, 2, 3]
    assert found.compared[1].loss == pytest.approx(0)
    assert found.compared[0].loss > found.compared[0].standard_error
    assert "length 2" in str(found)


def test_noise_needs_no_more_than_it_must():
    table, masks = layer(1)
    noisy = masks[2] ^ (np.random.default_rng(2).random(masks[2].shape) < 0.02)
    assert ox.choose_length(table, noisy, longest=3).length == 1


def test_the_shortest_within_one_standard_error_is_taken():
    table, masks = layer(3)
    found = ox.choose_length(table, masks[1], longest=3, groups=list("abcdef") * 10)
    good = [each.length for each in found.compared if each.as_good]
    assert found.length == min(good)
    assert all(
        each.loss > each.standard_error for each in found.compared if each.length < found.length
    )
