"""This package explains why a solution is one, by a derivation of it that is found again in what the log holds."""

from engine.provenance.derivation import Derivation
from engine.provenance.inference import Inference
from engine.provenance.justify import Target, justified
from engine.provenance.model import Absence, BackgroundFact, Budget, Members, Occurrence, Proof, Step, TooMuch, Used, World

__all__ = [
    "Absence",
    "BackgroundFact",
    "Budget",
    "Derivation",
    "Inference",
    "Members",
    "Occurrence",
    "Proof",
    "Step",
    "Target",
    "TooMuch",
    "Used",
    "World",
    "justified",
]  # fmt: skip
