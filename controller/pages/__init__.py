"""The tables to look at in a browser: what `dmslake report` writes to a file and `dmslake serve` shows live. Reads only.

views.py has the pages as values, pages.py reads them, render.py makes HTML of them. Needs the extra `cli` (jinja2).
"""
