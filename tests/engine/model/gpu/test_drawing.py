"""Noise hangs on the seed and the place alone."""

import numpy as np

from engine.model.gpu.drawing import noise_keys


def test_a_place_has_one_key_wherever_it_stands():
    keys = noise_keys(3, np.arange(100))
    assert keys.shape == (100, 2)
    assert keys.dtype == np.int32
    assert (noise_keys(3, np.array([42]))[0] == keys[42]).all()


def test_seeds_and_places_have_keys_of_their_own():
    keys = np.concatenate([noise_keys(seed, np.arange(1000)) for seed in (0, 1, -1, 2**63)])
    assert len(np.unique(keys, axis=0)) == 4000


def test_keys_are_even_bits():
    bits = np.unpackbits(noise_keys(7, np.arange(4000)).view(np.uint8))
    assert abs(bits.mean() - 0.5) < 0.005
