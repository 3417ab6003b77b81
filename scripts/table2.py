"""Table 2: nodes and seconds a unit of ResNet18 in the three settings.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

REQUESTS = [TableRequest(preset, "resnet18") for preset in ("low", "intermediate", "high")]

if __name__ == "__main__":
    print_tables("Table 2", REQUESTS)
