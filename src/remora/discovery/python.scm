; What discovery looks for in a Python file. Methods are functions whose nearest definition is a class.

(function_definition name: (identifier) @name) @function

(class_definition name: (identifier) @name) @class

; A definition with decorators begins at the first of them.
(decorated_definition definition: (_) @definition) @decorated
