"""Files as DMS writes them, of a table that is made up: `dmslake feed`.

A `Simulation` is a source table and what happens in it. `make_rounds` cuts that into files and says what arrives when: doubled, late,
reloaded. A `Layout` names the files, a `Format` makes their bytes. The `Oracle` says what the lake must hold after each round; it knows
nothing of the code that makes lakes.
"""
