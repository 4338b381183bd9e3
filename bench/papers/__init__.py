"""The experiments of the papers, each figure and table as rows: ours beside the paper's number, where that is legible
(docs/paper-experiments.md).
"""
