"""What is kept of folds and resamples, as plain JSON: exact scores and the formulas behind them."""

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any, cast

from optexp_jax.counts.scores import Score
from optexp_jax.formulas.formula import Formula
from optexp_jax.runs.other_images import OtherImagesResult
from optexp_jax.runs.typed import make
from optexp_jax.validation.confidence_set import ConfidenceMember, ConfidenceSet
from optexp_jax.validation.held_out import FoldScore, HeldOut
from optexp_jax.validation.length import ChosenLength
from optexp_jax.validation.resamples import Scheme
from optexp_jax.validation.stability import ResampleScore, Stability


def other_images_to_json(result: OtherImagesResult | None) -> Any:
    """Everything, exactly; each formula is written once and named by its place."""
    if result is None:
        return None
    places: dict[Formula | None, int] = {}

    def place(formula: Formula | None) -> int:
        return places.setdefault(formula, len(places))

    told = {
        # With a chosen length, the held-out scores are those of that length.
        "held_out": _held_out(result.held_out, place) if result.chosen is None else None,
        "lengths": None
        if result.chosen is None
        else [_held_out(each.held_out, place) for each in result.chosen.compared],
        "stability": _stability(result.stability, place),
        "confidence": _confidence(result.confidence, place),
    }
    formulas = [None if each is None else each.to_dict() for each in places]
    return {"formulas": formulas, **told}


def other_images_from_json(data: Any) -> OtherImagesResult | None:
    """Inverse; ValueError for anything that could not have been written."""
    if data is None:
        return None
    given = _fields(data, {"formulas", "held_out", "lengths", "stability", "confidence"})
    formulas = [None if each is None else Formula.from_dict(each) for each in given["formulas"]]
    chosen = None
    held_out = _read_held_out(given["held_out"], formulas)
    if given["lengths"] is not None:
        by_length = [_read_held_out(each, formulas) for each in _list(given["lengths"])]
        known = [each for each in by_length if each is not None]
        if held_out is not None or not known or len({len(each.folds) for each in known}) != 1:
            raise ValueError("held-out scores by length do not fit together")
        if len(known) != len(by_length):
            raise ValueError("held-out scores of a length are missing")
        chosen = ChosenLength.of(known)
        held_out = chosen.held_out
    return OtherImagesResult(
        held_out,
        _read_stability(given["stability"], formulas),
        _read_confidence(given["confidence"], formulas),
        chosen,
    )


def _held_out(held_out: HeldOut | None, place: Any) -> Any:
    if held_out is None:
        return None
    return {
        "note": held_out.note,
        "folds": [
            [place(each.formula), *_pair(each.found), *_pair(each.held_out), each.proved]
            for each in held_out.folds
        ],
    }


def _read_held_out(data: Any, formulas: Sequence[Formula | None]) -> HeldOut | None:
    if data is None:
        return None
    given = _fields(data, {"note", "folds"})
    folds: list[FoldScore] = []
    for row in _list(given["folds"]):
        formula, i, u, held_i, held_u, proved = _list(row)
        fields = {
            "formula": _named(formulas, formula),
            "found": _score(i, u),
            "held_out": _score(held_i, held_u),
            "proved": proved,
        }
        folds.append(make(FoldScore, fields))
    if len(folds) < 2:
        raise ValueError("there are at least two folds")
    return make(HeldOut, {"folds": tuple(folds), "note": given["note"]})


def _stability(stability: Stability | None, place: Any) -> Any:
    if stability is None:
        return None
    return {
        "formula": place(stability.formula),
        "score": _pair(stability.score),
        "scheme": stability.scheme.value,
        "resamples": [
            [
                place(each.formula),
                *_pair(each.best),
                each.upper_bound,
                each.proved,
                *_pair(each.stored),
                *_pair(each.out_of_bag),
                each.recurs,
            ]
            for each in stability.resamples
        ],
    }


def _read_stability(data: Any, formulas: Sequence[Formula | None]) -> Stability | None:
    if data is None:
        return None
    given = _fields(data, {"formula", "score", "scheme", "resamples"})
    resamples: list[ResampleScore] = []
    for row in _list(given["resamples"]):
        formula, i, u, bound, proved, stored_i, stored_u, out_i, out_u, recurs = _list(row)
        if not isinstance(bound, int | float) or not math.isfinite(bound):
            raise ValueError(f"{bound!r} is no number")
        fields = {
            "formula": _named(formulas, formula),
            "best": _score(i, u),
            "upper_bound": float(bound),
            "proved": proved,
            "stored": _score(stored_i, stored_u),
            "out_of_bag": _score(out_i, out_u),
            "recurs": recurs,
        }
        resamples.append(make(ResampleScore, fields))
    formula = _named(formulas, given["formula"])
    if formula is None or (len(resamples) < 2 and given["scheme"] != Scheme.BOOTSTRAP.value):
        raise ValueError("no stored formula, or too few resamples")
    if not resamples:
        raise ValueError("there are no resamples")
    score = _score(*_list(given["score"]))
    return Stability(formula, score, tuple(resamples), Scheme(given["scheme"]))


def _confidence(near: ConfidenceSet | None, place: Any) -> Any:
    if near is None:
        return None
    return {
        "noise": [near.noise.numerator, near.noise.denominator],
        "complete": near.complete,
        "members": [[place(each.formula), *_pair(each.score)] for each in near.members],
    }


def _read_confidence(data: Any, formulas: Sequence[Formula | None]) -> ConfidenceSet | None:
    if data is None:
        return None
    given = _fields(data, {"noise", "complete", "members"})
    over, under = _list(given["noise"])
    if type(over) is not int or type(under) is not int or over < 0 or under < 1:
        raise ValueError(f"{given['noise']!r} is no share")
    members: list[ConfidenceMember] = []
    for row in _list(given["members"]):
        formula, i, u = _list(row)
        named = _named(formulas, formula)
        if named is None:
            raise ValueError("a member of a confidence set has no formula")
        members.append(ConfidenceMember(named, _score(i, u)))
    if not members:
        raise ValueError("a confidence set has at least one member")
    noise = Fraction(over, under)
    if [noise.numerator, noise.denominator] != [over, under]:
        raise ValueError(f"{over}/{under} is not in lowest terms")
    fields = {"members": tuple(members), "noise": noise, "complete": given["complete"]}
    return make(ConfidenceSet, fields)


def _pair(score: Score) -> list[int]:
    return [score.intersection, score.union]


def _score(intersection: object, union: object) -> Score:
    if type(intersection) is int and type(union) is int and 0 <= intersection <= union:
        return Score(intersection, union)
    raise ValueError(f"{intersection!r}/{union!r} is no IoU")


def _named(formulas: Sequence[Formula | None], place: object) -> Formula | None:
    if type(place) is not int or not 0 <= place < len(formulas):
        raise ValueError(f"there is no formula {place!r}")
    return formulas[place]


def _fields(data: Any, names: set[str]) -> Mapping[str, Any]:
    if not isinstance(data, dict) or set(cast(dict[str, Any], data)) != names:
        raise ValueError(f"{data!r} does not have just {', '.join(sorted(names))}")
    return cast(Mapping[str, Any], data)


def _list(data: Any) -> list[Any]:
    if not isinstance(data, list):
        raise ValueError(f"{data!r} is no list")
    return cast(list[Any], data)
