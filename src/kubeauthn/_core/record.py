"""Frozen records that cost nothing to define.

`dataclasses` imports `inspect` and compiles source text for every class. Together that is a third of the start-up of
`kubeauthn credential`, and start-up is a feature. To a type checker these *are* dataclasses: it sees the import below.
What is left out is what the core does not use: mutable records, ordering, inheritance, keyword-only fields.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from dataclasses import dataclass as record
    from dataclasses import field, replace
else:

    class _Field:
        """A field whose default is made anew for each record, or that `repr` leaves out."""

        def __init__(self, default, default_factory, shown):
            self.default = default
            self.default_factory = default_factory
            self.shown = shown

    _MISSING = object()

    def field(*, default=_MISSING, default_factory=None, repr=True):
        return _Field(default, default_factory, repr)

    def record(*, frozen, slots):
        """In place of `dataclass(frozen=True, slots=True)`; the arguments are said for the type checker."""
        if not (frozen and slots):
            raise TypeError("a record is frozen and has slots")
        return _with_methods

    def replace(instance, /, **changes):
        """A copy with some fields changed."""
        values = {name: getattr(instance, name) for name in instance.__match_args__}
        return type(instance)(**(values | changes))

    def _with_methods(cls):
        names = tuple(cls.__annotations__)
        body = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *names)}
        fields = {name: vars(cls)[name] for name in names if name in vars(cls)}
        factories = {
            name: f.default_factory for name, f in fields.items() if isinstance(f, _Field) and f.default_factory
        }
        defaults = {
            name: f.default if isinstance(f, _Field) else f for name, f in fields.items() if name not in factories
        }
        hidden = {name for name, f in fields.items() if isinstance(f, _Field) and not f.shown}
        defaults = {name: value for name, value in defaults.items() if value is not _MISSING}
        put = object.__setattr__

        def __init__(self, *args, **kwargs):
            if len(args) > len(names):
                raise TypeError(f"{cls.__name__} takes {len(names)} arguments, not {len(args)}")
            for name, value in zip(names, args):  # noqa: B905  the rest of the names comes next
                put(self, name, value)
            for name in names[len(args) :]:
                if name in kwargs:
                    put(self, name, kwargs.pop(name))
                elif name in defaults:
                    put(self, name, defaults[name])
                elif name in factories:
                    put(self, name, factories[name]())
                else:
                    raise TypeError(f"{cls.__name__} needs {name}")
            if kwargs:
                raise TypeError(f"{cls.__name__} has no {sorted(kwargs)[0]}, or has it twice")

        def values(self):
            return tuple([getattr(self, name) for name in names])

        def __eq__(self, other):
            return values(self) == values(other) if type(other) is type(self) else NotImplemented

        def __hash__(self):
            return hash((cls.__name__, values(self)))

        def __repr__(self):
            shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in names if name not in hidden)
            return f"{cls.__name__}({shown})"

        def __setattr__(self, name, value):
            raise AttributeError(f"{cls.__name__} is frozen: {name} cannot be set")

        def __delattr__(self, name):
            raise AttributeError(f"{cls.__name__} is frozen: {name} cannot be deleted")

        def __reduce__(self):
            return type(self), values(self)

        methods = (__init__, __eq__, __hash__, __repr__, __setattr__, __delattr__, __reduce__)
        body = {method.__name__: method for method in methods} | {"__match_args__": names, "__slots__": names} | body
        return type(cls.__name__, cls.__bases__, body)


__all__ = ["field", "record", "replace"]
