"""What the packages share and no user needs: padding, kernels, meshes, memory, pytrees."""
