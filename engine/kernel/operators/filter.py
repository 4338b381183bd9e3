"""Filters compute in float64 with an error bound; the cases that they cannot decide are asked of the host and remembered."""

import math

import numpy as np

from engine.kernel import entry_point, inlined, jit
from engine.kernel.state.goal_store import SALT, mixed
from engine.kernel.state.handle import as_net
from engine.kernel.state.layout import *

ULP = 2.0**-52  # twice the unit roundoff, which covers the rounding of the bounds themselves
TINY = 2.0**-1000  # covers underflow
EXACT = 2.0**53  # integers below are exact


@inlined
def compare(op, a, b, slack):
    """Compare in three values, and UNSURE where |a - b| is within the error bound; a nan bound is an unbound operand."""
    if slack != slack:
        return ERROR
    if slack != 0.0 and not abs(a - b) > slack:
        return UNSURE
    if op == LT:
        return TRUE if a < b else FALSE
    if op == LE:
        return TRUE if a <= b else FALSE
    if op == GT:
        return TRUE if a > b else FALSE
    if op == GE:
        return TRUE if a >= b else FALSE
    if op == NE:
        return TRUE if a != b else FALSE
    return TRUE if a == b else FALSE


@jit
def same(a, b, kind_a, kind_b):
    """Return whether two terms of these kinds are equal (SPARQL 1.1, 17.4.1.7), or UNSURE where their values have to decide.

    An unbound term gives ERROR.
    """
    if a == UNBOUND or b == UNBOUND:
        return ERROR
    if kind_a >= LITERAL_KIND and kind_b >= LITERAL_KIND and (kind_a == LITERAL_KIND or kind_b == LITERAL_KIND):
        return UNSURE
    return TRUE if a == b else FALSE


@inlined
def both(dominant, a, b):
    """Return AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above ERROR."""
    if a == dominant or b == dominant:
        return dominant
    if a == UNSURE or b == UNSURE:
        return UNSURE
    if a == ERROR or b == ERROR:
        return ERROR
    return 1 - dominant


@inlined
def sum_slack(a, b, slack):
    """Return the error bound of a + b: none is added where the sum is exact (Knuth's two-sum)."""
    s = a + b
    part = s - a
    error = (a - (s - part)) + (b - part)
    return slack if error == 0.0 else unsure_beyond(s, slack, slack + abs(s) * ULP)


@inlined
def unsure_beyond(result, operands, bound):
    """Return the error bound of a result: nan if an operand is unbound, inf where the result or its bound is beyond float64."""
    if operands != operands:
        return np.nan
    return bound if math.isfinite(result) and math.isfinite(bound) else np.inf


@inlined
def product_slack(a, b, slack_a, slack_b):
    product = abs(a * b)
    if slack_a == 0.0 and slack_b == 0.0 and product < EXACT and a == math.floor(a) and b == math.floor(b):
        return 0.0
    return unsure_beyond(a * b, slack_a + slack_b, abs(a) * slack_b + abs(b) * slack_a + slack_a * slack_b + product * ULP + TINY)


@jit
def evaluate(net, pc, row):
    """Return the verdict of the code at `pc` for a row.

    The top of the stack is at hand; the rest stands in `scratch`, above a place that nothing reads.
    """
    code, rows, numbers, consts, stack = net.code, net.rows, net.numbers, net.consts, net.scratch
    x, slack, top = 0.0, 0.0, 0
    while True:
        op, arg = code[pc, 0], code[pc, 1]
        pc += 1
        if op >= WITH_CONST:
            x, slack = combined(op - WITH_CONST, x, slack, consts[arg, 0], consts[arg, 1])
        elif op >= WITH_VAR:
            term = rows[row, arg]
            x, slack = combined(op - WITH_VAR, x, slack, numbers[term, 0], numbers[term, 1])
        elif op == STOP:
            return int(x)
        elif op == NOT:
            x = 1.0 - x if x <= TRUE else x
        elif op >= LT:
            x, slack = binary(op, stack[top, 0], stack[top, 1], x, slack)
            top -= 1
        else:
            top += 1
            stack[top, 0], stack[top, 1] = x, slack
            x, slack = pushed(net, op, arg, row)
    return UNSURE


@jit
def pushed(net, op, arg, row):
    if op == PUSH_VAR:
        term = net.rows[row, arg]
        return net.numbers[term, 0], net.numbers[term, 1]
    if op == PUSH_CONST:
        return net.consts[arg, 0], net.consts[arg, 1]
    if op == PUSH_DURATION:
        return duration(net, row)
    if op == PUSH_TERM or op == PUSH_KNOWN:
        term = net.rows[row, arg] if op == PUSH_TERM else arg
        return float(term), float(net.kinds[term])
    if op == BOUND_VAR:
        return float(TRUE if net.rows[row, arg] != UNBOUND else FALSE), 0.0
    return float(UNSURE), 0.0


@inlined
def duration(net, row):
    """Return getDURATION() in µs; an error for a timeless row."""
    micros = float(net.rows[row, END] - net.rows[row, START])
    return micros, np.nan if net.rows[row, END] < net.rows[row, START] else 0.0 if micros < EXACT else micros * ULP


@inlined
def combined(op, a, slack_a, b, slack_b):
    """Return the number that two make, with its error bound, or the verdict on a comparison."""
    if op == MUL:
        return a * b, product_slack(a, b, slack_a, slack_b)
    if op == ADD:
        return a + b, sum_slack(a, b, slack_a + slack_b)
    if op == SUB:
        return a - b, sum_slack(a, -b, slack_a + slack_b)
    return float(compare(op, a, b, slack_a + slack_b)), 0.0


@jit
def binary(op, a, slack_a, b, slack_b):
    if op == AND:
        return float(both(FALSE, int(a), int(b))), 0.0
    if op == OR:
        return float(both(TRUE, int(a), int(b))), 0.0
    if op == SAME:
        return float(same(int(a), int(b), int(slack_a), int(slack_b))), 0.0
    if op == ELSE:
        return (b if a == UNSURE else a), 0.0
    return combined(op, a, slack_a, b, slack_b)


@jit
def ask(net, who, row):
    """Return the number of the question `who` about `row`; a new question is put on the host's list."""
    first, n = net.asks[who, ASK_SLOT], net.asks[who, ASK_SLOTS]
    hash_ = who * SALT
    for k in range(n):
        hash_ = mixed(hash_, net.rows[row, net.slots[first + k]])
    head = hash_ & (len(net.question_heads) - 1)
    q = net.question_heads[head]
    while q != NONE:
        if net.questions[q, ASK_HASH] == hash_ and net.questions[q, ASK_WHO] == who and same_arguments(net, q, row, first, n):
            return q
        q = net.questions[q, ASK_NEXT]
    q, questions = net.at[ASKED], net.questions
    questions[q, ASK_NEXT], questions[q, ASK_HASH] = net.question_heads[head], hash_
    questions[q, ASK_WHO], questions[q, ASK_ANSWER] = who, OPEN_QUESTION
    for k in range(n):
        questions[q, ASK_ARG + k] = net.rows[row, net.slots[first + k]]
    net.question_heads[head] = q
    net.at[ASKED] = q + 1
    return q


@inlined
def same_arguments(net, q, row, first, n):
    for k in range(n):
        if net.questions[q, ASK_ARG + k] != net.rows[row, net.slots[first + k]]:
            return False
    return True


@entry_point
def spread_questions(address, heads):
    """Enter the memo's questions into the larger table `heads`."""
    net = as_net(address)
    for q in range(net.at[ASKED]):
        head = net.questions[q, ASK_HASH] & (len(heads) - 1)
        net.questions[q, ASK_NEXT] = heads[head]
        heads[head] = q


@jit
def judge(net, filter_, row):
    """Return TRUE, FALSE (errors too) or PENDING: the host has been asked. code[filter_] = (question, _)."""
    verdict = evaluate(net, filter_ + 1, row)
    if verdict == UNSURE:
        answer = net.questions[ask(net, net.code[filter_, 0], row), ASK_ANSWER]
        if answer == OPEN_QUESTION:
            return PENDING
        net.at[SPENT] += ANSWER_COST
        return answer
    return TRUE if verdict == TRUE else FALSE
