"""Exact methods that disagree are found, in integers."""

from optexp_jax.bench.outcome import Outcome, Role, disagreements
from optexp_jax.counts.scores import Score

ROLES = {"one": Role.EXACT, "two": Role.EXACT, "beam": Role.HEURISTIC, "peer": Role.CLAIMS}


def faults(**scores: tuple[int, int]) -> list[str]:
    outcomes = {
        name: Outcome(Score(*score), proved=ROLES[name] is not Role.HEURISTIC)
        for name, score in scores.items()
    }
    return disagreements("here", outcomes, ROLES)


def test_the_same_ratio_in_other_integers_agrees():
    assert faults(one=(1, 2), two=(2, 4)) == []


def test_two_optima_that_differ():
    (fault,) = faults(one=(1, 2), two=(1, 3))
    assert "here" in fault
    assert "1/3" in fault
    assert "1/2" in fault


def test_a_difference_that_floats_do_not_see():
    big = 10**17
    assert big / (big + 1) == (big - 1) / big
    assert len(faults(one=(big, big + 1), two=(big - 1, big))) == 1


def test_nobody_is_above_a_proved_optimum():
    assert "above the optimum" in faults(one=(1, 2), beam=(2, 3))[0]
    assert "above the optimum" in faults(one=(1, 2), peer=(2, 3))[0]


def test_below_the_optimum_only_exact_methods_are_wrong():
    assert faults(one=(1, 2), beam=(1, 3), peer=(1, 4)) == []


def test_without_a_proof_nothing_is_wrong():
    outcomes = {
        "one": Outcome(Score(1, 2), proved=False),
        "two": Outcome(Score(1, 3), proved=False),
        "beam": Outcome(Score(2, 3)),
    }
    assert disagreements("here", outcomes, ROLES) == []
    assert disagreements("here", {"one": Outcome(None)}, ROLES) == []
