"""Finds the code of a project: files, classes, functions and methods, parsed with tree-sitter.

A node is named `path:qualified.name`, a file by its `path`. Ownership of lines:

- Functions and methods own their lines, from the first decorator to the end of the body, except those of functions
  inside them. A file owns every line outside functions and methods. So among these nodes each line has one owner.
- A class owns its lines outside its methods and inner classes. Those lines also belong to the enclosing file or
  function: do not run one operation on both a file and its classes.
"""

from remora.discovery._code import PythonCode
from remora.discovery._discovery import TreeSitterDiscovery, whole_file
from remora.discovery._extract import FileFacts, NodeFacts, extract
from remora.discovery._files import MAX_FILE, CodeFiles
from remora.discovery._languages import Mapped, language_of, languages, load_language
from remora.discovery._literal import python_tree

__all__ = [
    "MAX_FILE",
    "CodeFiles",
    "FileFacts",
    "Mapped",
    "NodeFacts",
    "PythonCode",
    "TreeSitterDiscovery",
    "extract",
    "language_of",
    "languages",
    "load_language",
    "python_tree",
    "whole_file",
]
