"""CloudFormation of the embedded AWS: moto's, made strict, and taught the resource types of `infra/aws/lake.yaml`.

moto alone passes over a type or property it does not know and says CREATE_COMPLETE all the same. Here each type is a class
(`resource.py`) with three lists of properties: those that take effect, those that knowingly don't (each with its reason), and
everything else, which is refused by name before anything is created.

- `moto_parts.py`  imports moto's CloudFormation without the services nobody here asks for
- `template.py`    text to values; `checks.py` what a template and its parameters must hold to
- `resource.py`    what a resource type is; `of_*.py` the types, one file per family; `types.py` the list of them
- `stack_map.py`   the resources of one stack: their order, the difference of two templates, deploying, taking back
- `stacks.py`      stacks, change sets and events, put into moto
"""
