"""Tables 3 and 4: how often a beam is not optimal on Broden, and the IoUs.

Real data goes into the requests as `data` and `weights`: see docs/how_to/reproducing.md.
"""

from paper_tables import print_tables

from optexp_jax.reproduction import TableRequest

MODELS = ("resnet18", "alexnet", "densenet161")
REQUESTS = [TableRequest("categories", model) for model in MODELS]

if __name__ == "__main__":
    print_tables("Tables 3 and 4", REQUESTS)
