"""This module is the grammar: SPARQL 1.2 with EP-SPARQL's Chain (semantics.md section 11), in pyparsing.

Each production has the name and the number of its rule in SPARQL 1.1's grammar
(https://www.w3.org/TR/sparql11-query/#sparqlGrammar), from small ones to large ones: expressions, triples, patterns,
queries. Rules without a number are SPARQL 1.2's or our own. `+` is a sequence, `|` the first alternative that
matches, `[...]` a repetition and `Opt` an option. `node` names the function of nodes.py that makes the production's
node.

The grammar is LL(1) but for a keyword here and there, so a failed alternative is never long. Lists and chains of
operators are repetitions: only brackets nest. What is refused whatever follows it is recognised at its keyword
(`refused`).
"""

import difflib
from typing import NoReturn

from pyparsing import Forward, Opt, autoname_elements

from epsparql.errors import Edit, QueryError, Span, SyntaxFault
from epsparql.parser import ast, ast_queries, nodes
from epsparql.parser.elements import (
    SKIP,
    WORD_END,
    Labelled,
    Nested,
    QueryText,
    Sign,
    Terminal,
    counting,
    make_sign,
    node,
    parse_text,
    refused,
    refused_words,
    sign,
    word,
    words,
)  # fmt: skip
from epsparql.parser.keywords import AGGREGATES, BUILT_INS, KEYWORDS, OPERATOR_NAMES, PREVIOUS, SEQOPTIONAL
from epsparql.parser.prediction import predict
from epsparql.parser.terminals import (
    FIRST_OF_IRI,
    IRIREF,
    NUMBER,
    PNAME,
    a_,
    anon,
    blank_node_label,
    boolean_literal,
    build_iri_name,
    integer,
    iri,
    iri_ref,
    lang_tag,
    nil,
    numeric_literal,
    pname_ns,
    short_string,
    string,
    var,
)  # fmt: skip

group_graph_pattern, expression, path, graph_node = Forward(), Forward(), Forward(), Forward()
open_brace, close_brace, open_paren, close_paren = sign("{"), sign("}"), sign("("), sign(")")
open_bracket, close_bracket, comma, dot = sign("["), sign("]"), sign(","), sign(".")
open_triple, close_triple = sign("<<(", expected=None), sign(")>>")
braces = Labelled(group_graph_pattern, "a group in braces")
DISTINCT = f"(?i:DISTINCT){WORD_END}"

# ---------------------------------------------------------------- expressions
datatype = sign("^^", expected=None) + iri
rdf_literal = node(string + Opt(lang_tag | datatype), nodes.build_literal)  # [129] RDFLiteral
no_extension = refused(DISTINCT, lambda value: "DISTINCT stands in SPARQL's own aggregates only: no extension aggregates are known")
expression_list = node(  # [71] ArgList, [72] ExpressionList
    Nested(open_paren + Opt(no_extension) + Opt(expression + (comma + expression)[...]) + close_paren), nodes.build_list(ast.ExpressionList)
)
function_call = node(iri + expression_list, nodes.build_iri_or_function)  # [70] FunctionCall
bracketted_expression = node(  # [120] BrackettedExpression
    Nested(open_paren + expression + close_paren), lambda source, found: found[1]
)
exists_word = word("NOT", expected=None) + word("EXISTS") | word("EXISTS", expected=None)
exists_func = node(exists_word + Labelled(group_graph_pattern, "a group in braces"), nodes.build_exists)  # [125] ExistsFunc, [126] NotExistsFunc
distinct = Opt(word("DISTINCT", expected=None))
no_distinct = Opt(refused(DISTINCT, lambda value: "DISTINCT has no meaning in FIRST and LAST, which are the value of one element"))
separator = sign(";") + word("SEPARATOR") + sign("=") + string
aggregate = node(  # [127] Aggregate, with FIRST and LAST
    word("COUNT", expected=None) + Nested(open_paren + distinct + (sign("*") | expression) + close_paren)
    | word("GROUP_CONCAT", expected=None) + Nested(open_paren + distinct + expression + Opt(separator) + close_paren)
    | words(("FIRST", "LAST"), None) + Nested(open_paren + no_distinct + expression + close_paren)
    | words(set(AGGREGATES) - {"COUNT", "GROUP_CONCAT", "FIRST", "LAST"}, None) + Nested(open_paren + distinct + expression + close_paren),
    nodes.build_aggregate,
)


def refuse_function(source: QueryText, value: str, span: Span) -> NoReturn:
    near = difflib.get_close_matches(value.upper(), [*BUILT_INS, *AGGREGATES, PREVIOUS], 1)
    hint = f"{_spell(near[0])}(...)" if near else "a function of SPARQL, or one named by its IRI"
    edits = (Edit(span.start, span.end, _spell(near[0])),) if near else ()
    raise SyntaxFault(f"there is no function {value}", span, source.text, hint, edits)


def _spell(name: str) -> str:
    times = {"GETDURATION": "getDURATION", "GETSTARTTIME": "getSTARTTIME", "GETENDTIME": "getENDTIME"}
    return times.get(name, name)


unknown_function = Terminal(
    f"(?!(?i:{'|'.join((*KEYWORDS, *BUILT_INS, *AGGREGATES, PREVIOUS))}){WORD_END})[A-Za-z][A-Za-z0-9_]*{WORD_END}(?={SKIP}\\()",
    refuse_function,
    None,
    f"[A-Za-z][A-Za-z0-9_]*+{SKIP}\\(",
)
bound_call = node(word("BOUND", expected=None) + Nested(open_paren + var + close_paren), nodes.build_bound)
previous_call = node(word(PREVIOUS, expected=None) + Nested(open_paren + expression + close_paren), nodes.build_from(ast.PreviousCall, 2))
named_call = node(  # [122] RegexExpression, [123] SubstringExpression, [124] StrReplaceExpression too: translate/ counts the arguments
    words(set(BUILT_INS) - {"BOUND"}, "a function call") + expression_list, nodes.build_built_in
)
built_in_call = named_call | bound_call | exists_func | aggregate | previous_call | unknown_function  # [121] BuiltInCall
iri_or_function = node(iri + Opt(expression_list), nodes.build_iri_or_function)  # [128] iriOrFunction
verb = Labelled(var | iri | a_, "a predicate")  # [78] Verb
var_or_iri = var | iri  # [107] VarOrIri
triple_value = Forward()
triple_value <<= node(  # ExprTripleTerm
    Nested(
        open_triple
        + Labelled(var | iri, "a variable or an IRI")
        + verb
        + Labelled(var | iri | rdf_literal | numeric_literal | boolean_literal | triple_value, "an object")
        + close_triple
    ),
    nodes.build_triple_value,
)
primary_expression = (  # [119] PrimaryExpression
    triple_value | var | numeric_literal | bracketted_expression | rdf_literal | boolean_literal | built_in_call | iri_or_function
)
unary_sign = Terminal(f"!|[+-](?!{NUMBER[5:]})", make_sign, None)
unary_expression = Labelled(node(unary_sign[...] + primary_expression, nodes.build_signed), "an expression")  # [118] UnaryExpression
operator = Terminal(rf"(?!{IRIREF})(?:\|\||&&|!=|[<>]=|[=<>+\-*/])", lambda source, value, span: Sign(value, span), "an operator")
in_operator = Terminal(f"(?i:NOT{SKIP}IN|IN){WORD_END}", lambda source, value, span: Sign("NOT IN" if len(value) > 3 else "IN", span), None)
expression <<= (
    node(  # [110] Expression, [111]-[117] ConditionalOrExpression to MultiplicativeExpression, which `fold_operators` tells apart by strength
        unary_expression + (operator + unary_expression | in_operator + expression_list)[...], nodes.fold_operators
    )
)
constraint = bracketted_expression | built_in_call | function_call  # [69] Constraint

# ---------------------------------------------------------------- triples
bar, hat = sign("|", expected=None), sign("^", expected=None)
path_one_in_property_set = node(Opt(hat) + (iri | a_), nodes.build_inverse_path)  # [96] PathOneInPropertySet
path_negated_property_set = node(  # [95] PathNegatedPropertySet
    sign("!", expected=None)
    + (path_one_in_property_set | Nested(open_paren + Opt(path_one_in_property_set + (bar + path_one_in_property_set)[...]) + close_paren)),
    nodes.build_list(ast.NegatedPath),
)
path_in_brackets = node(Nested(open_paren + path + close_paren), lambda source, found: found[1])
path_primary = Labelled(  # [94] PathPrimary
    iri | a_ | path_negated_property_set | path_in_brackets, "the next part of the path, which is no variable"
)
path_mod = Terminal(f"\\*|\\?(?!\\w)|\\+(?!{NUMBER[5:]})", make_sign, None)  # [93] PathMod
path_elt = node(path_primary + Opt(path_mod), nodes.build_repeated_path)  # [91] PathElt
path_elt_or_inverse = node(Opt(hat) + path_elt, nodes.build_inverse_path)  # [92] PathEltOrInverse
path_sequence = node(  # [90] PathSequence
    path_elt_or_inverse + (sign("/", expected=None) + path_elt_or_inverse)[...], nodes.build_path_sequence
)
path <<= node(path_sequence + (bar + path_sequence)[...], nodes.build_path_alternative)  # [88] Path, [89] PathAlternative
NO_PATH = f"(?!{SKIP}(?:[/|*]|\\?(?!\\w)|\\+(?!{NUMBER[5:]})))"
lone_iri = Terminal(
    f"(?>{IRIREF}|{PNAME}){NO_PATH}", build_iri_name, None, FIRST_OF_IRI
)  # a path of one link, the common case, without the way through [88] to [94]
lone_a = Terminal(f"a{WORD_END}{NO_PATH}", lambda source, value, span: ast.TypeVerb(span), None)
verb_path = Labelled(var | lone_iri | lone_a | path, "a predicate")  # [84] VerbPath, [85] VerbSimple
reifier = node(sign("~", expected=None) + Opt(var | iri | blank_node_label | anon), nodes.build_reifier)
annotation_block = Forward()
object_path = node(Labelled(graph_node, "an object") + (reifier | annotation_block)[...], nodes.build_annotated)  # [80] Object, [87] ObjectPath
object_list_path = object_path + (comma + object_path)[...]  # [79] ObjectList, [86] ObjectListPath
property_path = node(verb_path + object_list_path, nodes.build_property)
semicolon = Terminal(f";(?:{SKIP};)*+", make_sign, "';'")
property_list_path_not_empty = property_path + (semicolon + Opt(property_path))[...]  # [77] PropertyListNotEmpty, [83] PropertyListPathNotEmpty
property_list_path = Opt(property_list_path_not_empty)  # [76] PropertyList, [82] PropertyListPath
annotation_block <<= node(Nested(sign("{|", expected=None) + property_list_path_not_empty + sign("|}")), nodes.build_list(ast.AnnotationBlock))
blank_node_property_list_path = node(  # [99] BlankNodePropertyList, [101] BlankNodePropertyListPath
    Nested(sign("[", expected=None) + property_list_path_not_empty + close_bracket), nodes.build_list(ast.BlankProperties)
)
collection_path = node(  # [102] Collection, [103] CollectionPath
    Nested(sign("(", expected=None) + graph_node + graph_node[...] + close_paren), nodes.build_list(ast.Collection)
)
atom = var | iri | rdf_literal | numeric_literal | boolean_literal | blank_node_label | anon
triple_term, reified_triple = Forward(), Forward()
triple_part = triple_term | atom
triple_term <<= node(  # TripleTerm
    Nested(open_triple + Labelled(triple_part, "a subject") + verb + Labelled(triple_part, "an object") + close_triple), nodes.build_triple_node
)
reified_part = triple_term | reified_triple | atom
reified_triple <<= node(  # ReifiedTriple
    Nested(sign("<<", expected=None) + Labelled(reified_part, "a subject") + verb + Labelled(reified_part, "an object") + Opt(reifier) + sign(">>")),
    nodes.build_reified,
)
var_or_term = (  # [106] VarOrTerm, [109] GraphTerm, [138] BlankNode
    var | iri | rdf_literal | numeric_literal | triple_term | boolean_literal | blank_node_label | anon | nil
)
triples_node_path = blank_node_property_list_path | collection_path | reified_triple  # [98] TriplesNode, [100] TriplesNodePath
graph_node <<= var_or_term | triples_node_path  # [104] GraphNode, [105] GraphNodePath
triples_same_subject_path = Labelled(  # [75] TriplesSameSubject, [81] TriplesSameSubjectPath
    node(var_or_term + property_list_path_not_empty | triples_node_path + property_list_path, nodes.build_triples), "a triple pattern"
)
triples_block = triples_same_subject_path + (dot + triples_same_subject_path)[...] + Opt(dot)  # [52] TriplesTemplate, [55] TriplesBlock

# ---------------------------------------------------------------- patterns
bare_duration = Terminal(r"[+-]?[Pp][0-9A-Za-z]*(?:\.[0-9A-Za-z]+)*", lambda source, value, span: Sign(value, span), None)
duration = Labelled(  # Dur
    node(string + Opt(datatype) | numeric_literal | bare_duration, nodes.build_duration),
    'a duration such as "PT10S"^^xsd:duration, or a number of seconds',
)
chain_step = (
    node(words(OPERATOR_NAMES, "an operator such as SEQ") + braces, nodes.build_combine)
    | node(counting("WITHIN") + duration, nodes.build_from(ast.WithinStep, 1))
    | node(word("WITHOUT") + braces + Opt(word("FOR") + duration), nodes.build_without)
    | refused(f"(?i:SEQOPTIONAL){WORD_END}", lambda value: SEQOPTIONAL, "OPTIONALSEQ")
)
chain = node(group_graph_pattern + chain_step[...], nodes.build_chain)  # [67] GroupOrUnionGraphPattern, Chain
filter_ = node(
    word("FILTER") + Labelled(constraint, "a condition in brackets or a function call"), nodes.build_from(ast.FilterElement, 1)
)  # [68] Filter
bind = node(word("BIND") + Nested(open_paren) + expression + word("AS") + var + close_paren, nodes.build_from(ast.BindElement, 2, 4))  # [60] Bind
optional_graph_pattern = node(word("OPTIONAL") + braces, nodes.build_from(ast.OptionalElement, 1))  # [57] OptionalGraphPattern
minus_graph_pattern = node(word("MINUS") + braces, nodes.build_from(ast.MinusElement, 1))  # [66] MinusGraphPattern
applied = filter_ | optional_graph_pattern | bind | minus_graph_pattern
name = Labelled(var_or_iri, "a variable or an IRI")
graph_graph_pattern = node(word("GRAPH") + name + braces, nodes.build_from(ast.GraphElement, 1, 2))  # [58] GraphGraphPattern
service_graph_pattern = node(  # [59] ServiceGraphPattern
    word("SERVICE", expected=None) + Opt(word("SILENT", expected=None)) + name + braces, nodes.build_service
)
window_graph_pattern = node(word("WINDOW", expected=None) + name + braces, nodes.build_from(ast.WindowElement, 1, 2))
triple_data = Forward()
triple_data <<= node(  # TripleTermData
    Nested(
        open_triple
        + Labelled(iri, "the IRI of a subject")
        + Labelled(iri | a_, "a predicate")
        + Labelled(iri | rdf_literal | numeric_literal | boolean_literal | triple_data, "an object without variables")
        + close_triple
    ),
    nodes.build_triple_node,
)
data_block_value = Labelled(  # [65] DataBlockValue
    numeric_literal | triple_data | iri | rdf_literal | boolean_literal | word("UNDEF"), "a value (an IRI, a literal or UNDEF)"
)
inline_data_one_var = node(var + open_brace + data_block_value[...] + close_brace, nodes.build_values_of_one)  # [63] InlineDataOneVar
row = node(Nested(open_paren + data_block_value[...] + close_paren), nodes.build_values_row)
inline_data_full = node(  # [64] InlineDataFull
    open_paren + var[...] + close_paren + open_brace + row[...] + close_brace, nodes.build_values_of_many
)
data_block = inline_data_one_var | inline_data_full  # [62] DataBlock
inline_data = node(word("VALUES") + data_block, nodes.build_values)  # [61] InlineData
graph_pattern_not_triples = Labelled(  # [56] GraphPatternNotTriples
    chain | applied | graph_graph_pattern | inline_data | window_graph_pattern | service_graph_pattern,
    "a group, FILTER, BIND, OPTIONAL, MINUS, GRAPH, VALUES",
)
group_graph_pattern_sub = (  # [54] GroupGraphPatternSub
    Opt(triples_block) + (graph_pattern_not_triples + Opt(dot) + Opt(triples_block))[...]
)
sub_select = Forward()
group_graph_pattern <<= node(  # [53] GroupGraphPattern
    Nested(open_brace + (sub_select | group_graph_pattern_sub) + close_brace), nodes.build_list(ast.GroupGraphPattern)
)

# ---------------------------------------------------------------- queries
base_decl = node(word("BASE") + iri_ref, nodes.build_from(ast_queries.BaseDeclaration, 1))  # [5] BaseDecl
prefix_decl = node(word("PREFIX") + pname_ns + iri_ref, nodes.build_prefix)  # [6] PrefixDecl
version_decl = word("VERSION") + short_string  # VersionDecl, from which nothing follows
prologue = (base_decl | prefix_decl | version_decl)[...]  # [4] Prologue
stream_name = node(Labelled(iri | word("default"), "the IRI of a stream"), nodes.build_stream_name)
in_stream = node(word("STREAM") + stream_name, lambda source, found: found[1])
window_length = Labelled(  # Dur
    node(string + Opt(datatype) | bare_duration, nodes.build_duration), 'a duration such as "PT10S"^^xsd:duration'
)
sliding_window = open_bracket + word("RANGE") + window_length + word("STEP") + window_length + close_bracket
source_selector = Labelled(iri, "the IRI of a graph")  # [16] SourceSelector
dataset_clause = (  # [13] DatasetClause
    node(word("FROM") + in_stream, nodes.build_from(ast_queries.FromStream, 1))
    | node(word("FROM", expected=None) + word("NAMED") + word("WINDOW") + iri + word("ON") + stream_name + sliding_window, nodes.build_from_window)
    | node(  # [14] DefaultGraphClause, [15] NamedGraphClause
        word("FROM", expected=None) + Opt(word("NAMED")) + source_selector, nodes.build_from_graph
    )
)
parameters = node(  # Parameters
    word("PARAMETERS", expected=None) + open_paren + var + Labelled(var, "another variable")[...] + close_paren, nodes.build_parameters
)
sources = dataset_clause[...] + Opt(parameters)
into = node(word("INTO") + in_stream, lambda source, found: found[1]) | node(
    word("INTO", expected=None) + word("BACKGROUND") + Labelled(iri, "the IRI of a graph"), nodes.build_from(ast_queries.GraphName, -1)
)
select_item = node(var | Nested(open_paren + expression + word("AS") + var + close_paren), nodes.build_select_item)
select_items = Labelled(sign("*") | select_item + Labelled(select_item, "another variable")[...], "variables, '*' or (expression AS ?variable)")
where_clause = (  # [17] WhereClause
    word("WHERE") + node(Labelled(chain, "a pattern in braces") + Labelled(applied, "FILTER")[...], nodes.build_where)
    | Labelled(group_graph_pattern, "a pattern in braces")
)
group_condition = node(  # [20] GroupCondition
    var | Nested(open_paren + expression + Opt(word("AS") + var) + close_paren) | built_in_call | function_call, nodes.build_group_key
)
group_clause = node(  # [19] GroupClause
    word("GROUP", expected="a solution modifier such as GROUP BY or LIMIT")
    + word("BY")
    + Labelled(group_condition, "a variable, a function call or (expression AS ?variable)")
    + group_condition[...],
    nodes.build_clause,
)
having_clause = node(  # [21] HavingClause, [22] HavingCondition
    word("HAVING", expected=None) + Labelled(constraint, "a condition in brackets or a function call") + constraint[...], nodes.build_clause
)
run_part = (  # RunPart
    node(word("WHILE") + Labelled(bracketted_expression, "a condition in brackets"), nodes.build_clause)
    | node(word("GAP") + window_length, nodes.build_clause)
    | node(word("UNTIL") + braces, nodes.build_clause)
    | node(counting("WITHIN") + duration, nodes.build_clause)
)
run_report = Opt(words(("EACH", "CLOSED"), "EACH or CLOSED"))  # Report
window_body = (  # WindowBody
    word("RANGE") + window_length + Opt(word("STEP") + window_length)
    | counting("ROWS") + integer
    | word("SESSION") + window_length + run_report
    | word("RUN") + run_part + run_part[...] + run_report
)
window_clause = node(word("WINDOW", expected=None) + open_bracket + window_body + close_bracket, nodes.build_window_clause)  # WindowClause
once_key = var | Nested(open_paren + var + var[...] + close_paren)
once_end = counting("WITHIN") + duration | word("UNTIL") + braces
once_clause = node(  # OnceClause
    word("ONCE", expected=None) + word("PER") + Labelled(once_key, "a variable, or variables in brackets") + once_end, nodes.build_once_clause
)
order_condition = node(  # [24] OrderCondition
    var | words(("ASC", "DESC"), None) + Labelled(bracketted_expression, "an expression in brackets") | constraint, nodes.build_order_condition
)
order_clause = node(  # [23] OrderClause
    word("ORDER", expected=None)
    + word("BY")
    + Labelled(order_condition, "a variable, a function call, ASC(...) or DESC(...)")
    + order_condition[...],
    nodes.build_clause,
)
limit_clause = node(counting("LIMIT", expected=None) + integer, nodes.build_clause)  # [26] LimitClause
offset_clause = node(counting("OFFSET", expected=None) + integer, nodes.build_clause)  # [27] OffsetClause
limit_offset_clauses = limit_clause + Opt(offset_clause) | offset_clause + Opt(limit_clause)  # [25] LimitOffsetClauses
solution_modifier = node(  # [18] SolutionModifier
    Opt(group_clause) + Opt(having_clause) + Opt(window_clause) + Opt(once_clause) + Opt(order_clause) + Opt(limit_offset_clauses),
    nodes.build_modifier,
)
values_clause = Opt(inline_data)  # [28] ValuesClause
body = node(where_clause + solution_modifier + values_clause, nodes.build_body)
select_clause = word("SELECT") + Opt(words(("DISTINCT", "REDUCED"), None)) + select_items  # [9] SelectClause
sub_select <<= node(  # [8] SubSelect
    word("SELECT", expected=None) + Opt(words(("DISTINCT", "REDUCED"), None)) + select_items + body, nodes.build_sub_select
)
select_query = node(select_clause + sources + body, nodes.build_select)  # [7] SelectQuery
construct_template = Labelled(  # [73] ConstructTemplate, [74] ConstructTriples
    node(open_brace + Opt(triples_block) + close_brace, nodes.build_list(ast.GroupGraphPattern)), "a template in braces"
)
template_body = node(word("WHERE") + construct_template + solution_modifier + values_clause, nodes.build_body)
construct_query = node(  # [10] ConstructQuery
    word("CONSTRUCT") + (construct_template + Opt(into) + sources + body | Opt(into) + sources + template_body),
    nodes.build_construct,
)
no_pattern = Terminal("", lambda source, value, span: ast.GroupGraphPattern((), span), None)
described = Labelled(sign("*") | name + name[...], "variables, IRIs or '*'")
optional_body = node((where_clause | no_pattern) + solution_modifier + values_clause, nodes.build_body)
describe_query = node(word("DESCRIBE") + described + sources + optional_body, nodes.build_describe)  # [11] DescribeQuery
ask_query = node(word("ASK") + sources + body, nodes.build_ask)  # [12] AskQuery
register = node(
    word("REGISTER", expected=None) + words(("RSTREAM", "ISTREAM", "DSTREAM"), "RSTREAM, ISTREAM or DSTREAM") + stream_name + word("AS"),
    nodes.build_registration,
)
update = refused_words(  # [3] UpdateUnit, [29]-[51]
    {
        name: f"{name} is SPARQL Update: a continuous query changes no data; load background through the server's interface"
        for name in ("INSERT", "DELETE", "LOAD", "CLEAR", "DROP", "CREATE", "ADD", "MOVE", "COPY", "WITH")
    }
)
start, end = Terminal("", make_sign, None), Terminal("\\Z", make_sign, "the end of the query")
query = prologue + Opt(register + prologue) + (select_query | construct_query | ask_query | describe_query | update)  # [2] Query
query_unit = node(start + query + end, nodes.build_document).parse_with_tabs()  # [1] QueryUnit
autoname_elements()
predict(query_unit)


def parse_document(text: str) -> ast_queries.Document:
    """Parse a query's text. Raises `QueryError`."""

    def explain_fault(source: QueryText) -> QueryError:
        from epsparql.parser import faults  # most texts have none

        return faults.explain_fault(source)

    parsed: ast_queries.Document = parse_text(query_unit, text, explain_fault)
    return parsed
