"""Finds the code of a project: files, classes, functions and methods, read with tree-sitter.

A node is named `path:qualified.name`, a file by its `path`. Who owns a line:

- Functions and methods own their lines, from the first decorator to the end of the body, less those of functions
  inside them. A file owns every line outside functions and methods. So among these nodes each line has one owner.
- A class owns its lines outside its methods and outside classes inside it. Those lines belong to the file (or the
  function) around it as well: do not run one operation on both a file and its classes.
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
