"""This package finds doubts about a program that is accepted all the same, each with its place in the program's text."""
