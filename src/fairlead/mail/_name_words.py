"""The words that generated names are made of: short, easy to say, easy to tell apart, and friendly."""

from __future__ import annotations

from typing import Final

ADJECTIVES: Final = tuple(
    """
    able agile airy alert alpine amber ample apt arctic autumn azure balmy bold brave breezy brief bright brisk broad
    bronze calm candid cedar cheery civil clear clever cobalt copper coral cosy crimson crisp curious dapper daring deft
    dusky eager early earnest easy elated ember even fabled fair faithful fancy fine fleet fluent fond frank fresh
    frosty gentle giddy glad gleaming golden grand green handy happy hardy hazel hearty honest humble indigo ivory jade
    jaunty jolly jovial keen kind lilac lively loyal lucid lucky lunar maple mellow merry mild minty misty modest mossy
    neat nimble noble olive opal patient pearly plucky polite proud quick quiet quirky rapid ready royal ruby rustic
    sage sandy scarlet serene sharp shiny silent silken silver simple sleek smooth snowy solar solid spry stable steady
    sturdy subtle sunny swift tame teal tender thrifty tidy tranquil trusty upbeat velvet vivid warm wise witty woven
    young zesty
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)

NOUNS: Final = tuple(
    """
    acorn alder anchor antler apple arbor aspen aster atlas badger barley basin beacon beaver birch bison bloom breeze
    bridge brook canyon canoe cactus candle castle cedar cliff clover comet compass condor cove crane creek cricket
    crystal cypress daisy dawn delta dolphin dove dune eagle elk elm falcon fern ferry finch fjord flute forest fox
    garden geyser glacier glade grove gull harbor hare harp hawk hazel heron hill island iris ivy jasmine kestrel kite
    koala lagoon lake lantern lark laurel lemur lily linden lotus lynx magnolia mango maple marlin marten meadow mesa
    meteor mill moon moose moth nectar newt oak oasis ocean orbit orchid oriole osprey otter owl panda parrot pebble
    pelican pepper petal pine planet plum pond poplar prairie puffin quail quartz rabbit raven reef ridge river robin
    rocket rowan sail salmon seal shore sparrow spring spruce star stream summit sunset swan thistle tiger trail tulip
    turtle valley violet walnut walrus willow wren zebra
    """.split()  # noqa: SIM905 - a list would take a hundred lines
)
