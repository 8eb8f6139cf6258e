; What the index takes from a Python file: one pass, each capture given to the innermost definition around it.

(function_definition) @function
(class_definition) @class
(decorated_definition definition: (_) @definition) @decorated
(decorator (_) @decorator)

; Documentation: a string that is the first statement.
(module . (expression_statement . [(string) (concatenated_string)] @doc .))
(function_definition body: (block . (expression_statement . [(string) (concatenated_string)] @doc .)))
(class_definition body: (block . (expression_statement . [(string) (concatenated_string)] @doc .)))

; Parameters with and without a type.
(function_definition
  parameters: (parameters [(typed_parameter) (typed_default_parameter)] @parameter.typed))
(function_definition
  parameters: (parameters
    [(identifier) (default_parameter) (list_splat_pattern) (dictionary_splat_pattern)] @parameter.plain))

; What is called and raised.
(call function: [(identifier) (attribute)] @call)
(raise_statement . [(identifier) (attribute)] @raise)
(raise_statement . (call function: [(identifier) (attribute)] @raise))

; One more way through the code, each.
[
  (if_statement) (elif_clause) (for_statement) (while_statement) (except_clause)
  (conditional_expression) (boolean_operator) (case_clause) (for_in_clause) (if_clause)
] @branch

; Imports: a statement, whence, what, and under which name.
(import_statement) @import
(import_statement name: (dotted_name) @import.name)
(import_statement name: (aliased_import name: (dotted_name) @import.name alias: (identifier) @import.alias))
(import_from_statement) @import
(import_from_statement module_name: (_) @import.from)
(import_from_statement name: (dotted_name) @import.name)
(import_from_statement name: (aliased_import name: (dotted_name) @import.name alias: (identifier) @import.alias))

; Names whose class stands beside them.
(assignment left: (identifier) @typed.name right: (call function: [(identifier) (attribute)] @typed.type))
(assignment left: (identifier) @typed.name type: (type [(identifier) (attribute)] @typed.type))
(typed_parameter . (identifier) @typed.name type: (type [(identifier) (attribute)] @typed.type))
(typed_default_parameter name: (identifier) @typed.name type: (type [(identifier) (attribute)] @typed.type))
