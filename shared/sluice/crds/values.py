"""What several kinds are made of: amounts, conditions, selectors, and the CEL rules that guard them."""

from typing import Annotated, Any, Final, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    WithJsonSchema,
    model_validator,
)
from pydantic.alias_generators import to_camel

from sluice.quantities import QuantityError, is_percent, parse_percent, parse_quantity

# What a rule iterates over must have a bound: the API server refuses a schema whose rules may cost too much.
RESOURCES_MAX: Final = 32
QUANTITY_LENGTH_MAX: Final = 40
LABEL_PATTERN: Final = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?$"
#: What may stand as a label's value: so operators tell an application's groups of pods apart.
LABEL_VALUE_PATTERN: Final = r"^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$"


class Rule(BaseModel):
    """One CEL rule of a schema: an entry of x-kubernetes-validations."""

    rule: str
    message: str
    reason: Literal["FieldValueInvalid", "FieldValueForbidden"] = "FieldValueInvalid"
    fieldPath: str = ""  # noqa: N815 - as in the schema
    """Where the mistake is, if not in what the rule stands on."""


def rules(*all_of: Rule) -> dict[str, Any]:
    """Schema extras that put CEL rules on a model or field."""
    return {"x-kubernetes-validations": [rule.model_dump(exclude_defaults=True) for rule in all_of]}


def keyed_by(field: str) -> dict[str, Any]:
    """Schema extras of a list that is a map in truth, so that server-side apply merges it entry by entry."""
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [field]}


class Model(BaseModel):
    """The base of all: camelCase outside, immutable, docstrings as descriptions."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, use_attribute_docstrings=True
    )


def _as_text(value: object) -> object:
    """YAML reads `cpu: 8` as a number, which means what "8" means."""
    return str(value) if isinstance(value, int) and not isinstance(value, bool) else value


def _check_quantity(text: str) -> str:
    if parse_quantity(text) < 0:
        raise QuantityError(f"{text!r} is negative: write 0 or more")
    return text


def _check_amount(text: str) -> str:
    if is_percent(text):
        parse_percent(text)
        return text
    return _check_quantity(text)


# isQuantity alone would take "Mi" and "." for 0.
_CEL_QUANTITY: Final = "isQuantity(string(self)) && string(self).matches('^[+]?[.]?[0-9]')"
_CEL_PERCENT: Final = r"string(self).matches('^(100([.]0*)?|[0-9]?[0-9]([.][0-9]*)?)%$')"


def _int_or_string(rule: Rule) -> WithJsonSchema:
    return WithJsonSchema(
        {"x-kubernetes-int-or-string": True, "maxLength": QUANTITY_LENGTH_MAX, **rules(rule)}
    )


Quantity = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_check_quantity),
    _int_or_string(
        Rule(rule=_CEL_QUANTITY, message="must be a quantity of 0 or more, such as 4, 500m or 16Gi")
    ),
]
Amount = Annotated[
    str,
    BeforeValidator(_as_text),
    AfterValidator(_check_amount),
    _int_or_string(
        Rule(
            rule=f"({_CEL_QUANTITY}) || {_CEL_PERCENT}",
            message="must be a quantity of 0 or more, such as 4, 500m or 16Gi, or a percentage of the pool "
            "from 0% to 100%",
        )
    ),
]
Requests = Annotated[dict[str, Quantity], Field(max_length=RESOURCES_MAX)]
Amounts = Annotated[dict[str, Amount], Field(max_length=RESOURCES_MAX)]
#: Amounts in a status, by resource. Before it stands the pool or supply that is meant, where there is a choice.
Shown = dict[str, str]

Cell = Annotated[str, Field(max_length=63, pattern=LABEL_PATTERN)]
Name = Annotated[str, Field(min_length=1, max_length=253)]
Count = Annotated[int, Field(ge=0, le=1_000_000)]
Seconds = Annotated[int, Field(ge=0, le=31_536_000)]
#: Running time of many pods together.
WorkSeconds = Annotated[int, Field(ge=0, le=1_000_000_000_000)]


class Condition(Model):
    """One aspect of the object's state, as Kubernetes' own objects report it."""

    type: Annotated[str, Field(max_length=316)]
    """What the condition is about, such as Ready."""
    status: Literal["True", "False", "Unknown"]
    """Whether it holds."""
    reason: str
    """Why, in one word for programs."""
    message: str
    """Why, in a sentence for people; where something is wrong it says what to do."""
    last_transition_time: Annotated[str, Field(json_schema_extra={"format": "date-time"})]
    """When `status` last changed."""
    observed_generation: int | None = None
    """The metadata.generation that was judged."""


class Status(Model):
    conditions: Annotated[
        list[Condition],
        Field(json_schema_extra=keyed_by("type")),
    ] = []
    """What is true of the object, one entry per type."""
    observed_generation: int | None = None
    """The metadata.generation that this status judges."""
    decision: str | None = None
    """The record among the decisions that states this: `<epoch>.<offset>`."""


class LabelRequirement(Model):
    """A condition on one label."""

    model_config = ConfigDict(
        json_schema_extra=rules(
            Rule(
                rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",
                message="In and NotIn need values, Exists and DoesNotExist take none",
            )
        )
    )

    key: Annotated[str, Field(min_length=1, max_length=317)]
    """The label."""
    operator: Literal["In", "NotIn", "Exists", "DoesNotExist"]
    """How the label's value relates to `values`."""
    values: Annotated[list[Annotated[str, Field(max_length=63)]], Field(max_length=256)] = []
    """The values, for In and NotIn."""

    @model_validator(mode="after")
    def _values_fit_the_operator(self) -> Self:
        if (self.operator in ("In", "NotIn")) != bool(self.values):
            raise ValueError("In and NotIn need values, Exists and DoesNotExist take none")
        return self


class LabelSelector(Model):
    """Objects whose labels meet every condition; an empty selector selects all."""

    match_labels: Annotated[dict[str, str], Field(max_length=64)] = {}
    """Labels that must have exactly these values."""
    match_expressions: Annotated[list[LabelRequirement], Field(max_length=64)] = []
    """Further conditions."""
