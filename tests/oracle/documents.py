"""Changes one thing in a document: a value of another kind, a field too many or too few, another name."""

from __future__ import annotations

import copy
import random
from typing import Any

from tests.oracle.yaml_texts import odd_value

__all__ = ["changed"]

_FIELDS_TEXT = (
    "apiVersion kind jwt anonymous issuer url audiences audienceMatchPolicy certificateAuthority discoveryURL "
    "egressSelectorType claimMappings username groups uid extra claim prefix expression key valueExpression "
    "claimValidationRules requiredValue message userValidationRules enabled conditions path metadata status foo "
)
_FIELDS = _FIELDS_TEXT.split()


def changed(source: random.Random, document: Any) -> Any:
    """A copy of the document with one change."""
    document = copy.deepcopy(document)
    holder = source.choice(list(_containers(document)))
    action = source.random()
    if isinstance(holder, list):
        _change_list(source, holder, action)
    else:
        _change_mapping(source, holder, action)
    return document


def _change_list(source: random.Random, holder: list[Any], action: float) -> None:
    if not holder or action < 0.3:
        holder.insert(source.randint(0, len(holder)), odd_value(source))
        return
    place = source.randrange(len(holder))
    if action < 0.6:
        holder[place] = odd_value(source)
    elif action < 0.8:
        holder.append(copy.deepcopy(holder[place]))
    else:
        del holder[place]


def _change_mapping(source: random.Random, holder: dict[str, Any], action: float) -> None:
    if not holder or action < 0.2:
        holder[source.choice(_FIELDS)] = odd_value(source)
        return
    name = source.choice(list(holder))
    if action < 0.55:
        holder[name] = odd_value(source)
    elif action < 0.7:
        del holder[name]
    elif action < 0.8:
        holder[name] = source.choice(([holder[name]], {name: holder[name]}, str(holder[name])))
    else:
        other = source.choice(
            (name.upper(), name.capitalize(), name + "s", name[:-1], f" {name}", source.choice(_FIELDS))
        )
        value = holder[name] if source.random() < 0.5 else holder.pop(name)
        holder[other] = value


def _containers(value: Any) -> list[Any]:
    found = []
    if isinstance(value, dict):
        found.append(value)
        for member in value.values():
            found += _containers(member)
    elif isinstance(value, list):
        found.append(value)
        for member in value:
            found += _containers(member)
    return found
