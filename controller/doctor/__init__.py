"""`dmslake doctor`: looks at an installation and says what is wrong with it, each finding with the line that mends it. Writes nothing.

finding.py   what a check found, and how bad that is
looks.py     requests that may be refused, and the clients they need
*_facts      in each module: IO, no decisions; *_findings: decisions, no IO
examine.py   all checks in their order
"""
