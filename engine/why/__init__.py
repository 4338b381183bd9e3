"""Why a solution is one: a derivation of it, found again in what the log holds."""

from engine.why.derivation import Derivation
from engine.why.evidence import Absence, Budget, Fact, Members, Occurrence, Proof, Step, TooMuch, Used, World
from engine.why.inference import Inference
from engine.why.solution import Target, justified

__all__ = [
    "Absence", "Budget", "Derivation", "Fact", "Inference", "Members", "Occurrence", "Proof", "Step", "Target", "TooMuch", "Used", "World", "justified",
]  # fmt: skip
