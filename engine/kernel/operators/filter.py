"""Filters compute in float64 with an error bound; the cases that they cannot decide are asked of the host and remembered."""

import math

import numpy as np

from engine.kernel import entry_point, inlined, jit
from engine.kernel.state.handle import answer_compiled, as_net
from engine.kernel.state.hash_table import SALT, enter_item, head_of, mix_hash, spread_items
from engine.kernel.state.layout import (
    ADD,
    AND,
    ANSWER_COST,
    ASK_ARG,
    BOUND_VAR,
    ELSE,
    ERROR,
    EXACT,
    FALSE,
    GE,
    GT,
    IDENTICAL,
    LE,
    LITERAL_KIND,
    LT,
    MUL,
    NE,
    NONE,
    NOT,
    OPEN_QUESTION,
    OR,
    PENDING,
    PUSH_CONST,
    PUSH_DURATION,
    PUSH_KNOWN,
    PUSH_TERM,
    PUSH_VAR,
    SAME,
    STOP,
    SUB,
    TINY,
    TRUE,
    ULP,
    UNBOUND,
    UNSURE,
    WITH_CONST,
    WITH_VAR,
)
from engine.kernel.state.rows import read_cell


@inlined
def compare_numbers(op, a, b, slack):
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
def compare_terms(a, b, kind_a, kind_b):
    """Return whether two terms of these kinds are equal (SPARQL 1.1, 17.4.1.7), or UNSURE where their values have to decide.

    An unbound term gives ERROR.
    """
    if a == UNBOUND or b == UNBOUND:
        return ERROR
    if kind_a >= LITERAL_KIND and kind_b >= LITERAL_KIND and (kind_a == LITERAL_KIND or kind_b == LITERAL_KIND):
        return UNSURE
    return TRUE if a == b else FALSE


@inlined
def combine_verdicts(dominant, a, b):
    """Return AND (dominant FALSE) or OR (dominant TRUE) of SPARQL's logic, with UNSURE above ERROR."""
    if a == dominant or b == dominant:
        return dominant
    if a == UNSURE or b == UNSURE:
        return UNSURE
    if a == ERROR or b == ERROR:
        return ERROR
    return 1 - dominant


@inlined
def bound_sum(a, b, slack):
    """Return the error bound of a + b: none is added where the sum is exact (Knuth's two-sum)."""
    s = a + b
    part = s - a
    error = (a - (s - part)) + (b - part)
    return slack if error == 0.0 else bound_result(s, slack, slack + abs(s) * ULP)


@inlined
def bound_result(result, operands, bound):
    """Return the error bound of a result: nan if an operand is unbound, inf where the result or its bound is beyond float64."""
    if operands != operands:
        return np.nan
    return bound if math.isfinite(result) and math.isfinite(bound) else np.inf


@inlined
def bound_product(a, b, slack_a, slack_b):
    product = abs(a * b)
    if slack_a == 0.0 and slack_b == 0.0 and product < EXACT and a == math.floor(a) and b == math.floor(b):
        return 0.0
    return bound_result(a * b, slack_a + slack_b, abs(a) * slack_b + abs(b) * slack_a + slack_a * slack_b + product * ULP + TINY)


@jit
def evaluate_code(net, pc, row):
    """Return the verdict of the code at `pc` for a row.

    The top of the stack is at hand; the rest stands in `scratch`, above a place that nothing reads.
    """
    code, rows, numbers, consts, stack = net.code, net.rows, net.numbers, net.consts, net.scratch
    x, slack, top = 0.0, 0.0, 0
    while True:
        op, arg = code[pc].op, code[pc].argument
        pc += 1
        if op >= WITH_CONST:
            x, slack = apply_operator(op - WITH_CONST, x, slack, consts[arg].value, consts[arg].slack)
        elif op >= WITH_VAR:
            term = rows[row, arg]
            x, slack = apply_operator(op - WITH_VAR, x, slack, numbers[term].value, numbers[term].slack)
        elif op == STOP:
            return int(x)
        elif op == NOT:
            x = 1.0 - x if x <= TRUE else x
        elif op >= LT:
            x, slack = apply_binary(op, stack[top].value, stack[top].slack, x, slack)
            top -= 1
        else:
            top += 1
            stack[top].value, stack[top].slack = x, slack
            x, slack = read_operand(net, op, arg, row)
    return UNSURE


@jit
def read_operand(net, op, arg, row):
    if op == PUSH_VAR:
        term = net.rows[row, arg]
        return net.numbers[term].value, net.numbers[term].slack
    if op == PUSH_CONST:
        return net.consts[arg].value, net.consts[arg].slack
    if op == PUSH_DURATION:
        return measure_duration(net, row)
    if op == PUSH_TERM or op == PUSH_KNOWN:
        term = net.rows[row, arg] if op == PUSH_TERM else arg
        return float(term), float(net.kinds[term])
    if op == BOUND_VAR:
        return float(TRUE if net.rows[row, arg] != UNBOUND else FALSE), 0.0
    return float(UNSURE), 0.0


@inlined
def measure_duration(net, row):
    """Return getDURATION() in µs; an error for a timeless row."""
    micros = float(net.rows[row].end - net.rows[row].start)
    return micros, np.nan if net.rows[row].end < net.rows[row].start else 0.0 if micros < EXACT else micros * ULP


@inlined
def apply_operator(op, a, slack_a, b, slack_b):
    """Return the number that two make, with its error bound, or the verdict on a comparison."""
    if op == MUL:
        return a * b, bound_product(a, b, slack_a, slack_b)
    if op == ADD:
        return a + b, bound_sum(a, b, slack_a + slack_b)
    if op == SUB:
        return a - b, bound_sum(a, -b, slack_a + slack_b)
    return float(compare_numbers(op, a, b, slack_a + slack_b)), 0.0


@jit
def apply_binary(op, a, slack_a, b, slack_b):
    if op == AND:
        return float(combine_verdicts(FALSE, int(a), int(b))), 0.0
    if op == OR:
        return float(combine_verdicts(TRUE, int(a), int(b))), 0.0
    if op == SAME:
        return float(compare_terms(int(a), int(b), int(slack_a), int(slack_b))), 0.0
    if op == IDENTICAL:
        return float(ERROR if int(a) == UNBOUND or int(b) == UNBOUND else TRUE if a == b else FALSE), 0.0
    if op == ELSE:
        return (b if a == UNSURE else a), 0.0
    return apply_operator(op, a, slack_a, b, slack_b)


@jit
def find_answer(net, who, row):
    """Return the answer to the question `who` about `row`, or OPEN_QUESTION if the host has to give it.

    Compiled code answers at less cost than an answer is found again. It gets the arguments where the next new question would have them.
    """
    first, n = net.asks[who].slot, net.asks[who].slots
    if net.answers[0] != 0:
        question = net.questions[net.at.asked]
        for k in range(n):
            net.questions[net.at.asked, ASK_ARG + k] = read_cell(net, row, net.slots[first + k])
        answer = answer_compiled(net.answers[0], net.answers[1], who, question)
        if answer != OPEN_QUESTION:
            return answer
    return net.questions[find_question(net, who, row)].answer


@jit
def find_question(net, who, row):
    """Return the number of the question `who` about `row`; a new one is put on the host's list."""
    first, n = net.asks[who].slot, net.asks[who].slots
    hash_ = who * SALT
    for k in range(n):
        hash_ = mix_hash(hash_, read_cell(net, row, net.slots[first + k]))
    q = net.question_heads[head_of(net.question_heads, hash_)]
    while q != NONE:
        if net.questions[q].hash == hash_ and net.questions[q].who == who and has_same_arguments(net, q, row, first, n):
            return q
        q = net.questions[q].next
    q, questions = net.at.asked, net.questions
    questions[q].hash, questions[q].who, questions[q].answer = hash_, who, OPEN_QUESTION
    for k in range(n):
        questions[q, ASK_ARG + k] = read_cell(net, row, net.slots[first + k])
    enter_item(net.question_heads, questions, q, q)
    net.at.asked = q + 1
    return q


@inlined
def has_same_arguments(net, q, row, first, n):
    for k in range(n):
        if net.questions[q, ASK_ARG + k] != read_cell(net, row, net.slots[first + k]):
            return False
    return True


@entry_point
def spread_questions(address, heads):
    """Enter the memo's questions into the larger table `heads`."""
    net = as_net(address)
    spread_items(heads, net.questions, net.at.asked, 0)


@jit
def judge_filter(net, filter_, row):
    """Return TRUE, FALSE (errors too) or PENDING: the host has been asked. code[filter_] = (question, _)."""
    verdict = evaluate_code(net, filter_ + 1, row)
    if verdict == UNSURE:
        answer = net.questions[find_question(net, net.code[filter_].op, row)].answer
        if answer == OPEN_QUESTION:
            return PENDING
        net.at.spent += ANSWER_COST
        return answer
    return TRUE if verdict == TRUE else FALSE
