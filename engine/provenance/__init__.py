"""This package explains why a solution is one, by a derivation of it that is found again in what the log holds."""

from engine.provenance.derivation import Derivation
from engine.provenance.inference import Inference
from engine.provenance.justify import Target, justified
from engine.provenance.model import Absence, BackgroundFact, Members, Occurrence, OwnEvent, Proof, Step, StepBudget, TooMuch, Used, World
from engine.provenance.own_events import OwnEvents

__all__ = [
    "Absence",
    "BackgroundFact",
    "Derivation",
    "Inference",
    "Members",
    "Occurrence",
    "OwnEvent",
    "OwnEvents",
    "Proof",
    "Step",
    "StepBudget",
    "Target",
    "TooMuch",
    "Used",
    "World",
    "justified",
]  # fmt: skip
