"""What a picture needs and does not have."""


class NoPicturesError(ValueError):
    """There can be no picture: images, maps or activations are not at hand. It says which."""
