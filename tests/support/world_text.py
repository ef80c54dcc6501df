"""Sentences of the ledger world. Written for this package; places are invented."""

from __future__ import annotations

PLACES = (
    *("Aldermoor", "Brackwell", "Caldmere", "Dunsholt", "Eastrigg", "Fennick", "Garrowby"),
    *("Hexwold", "Inglemoss", "Jarnwick", "Kelbrook", "Lostrand", "Marfield", "Northgill"),
    *("Oxenby", "Pellworth", "Quarnford", "Redmire", "Saltholm", "Thornlea", "Ulverby"),
    *("Varnholt", "Westerdale", "Yarlside"),
)

OPENING = (
    "The ledger begins with a stock of {n} crates.",
    "The day starts with {n} crates in the store.",
    "Before the bookings the stock starts at {n} crates.",
)

# The only numbers of a step are those of its equation {e}.
RECEIVED = (
    "The delivery from {p} comes in, and the stock is now {e} crates.",
    "With the crates received from {p} the stock becomes {e} crates.",
    "What {p} delivers is added to the stock, so we have {e} crates.",
    "The receipt from {p} is entered next to the others, giving {e} crates.",
    "Adding the shipment that {p} sent us, the ledger shows {e} crates.",
)
SENT = (
    "The order for {p} goes out, and the stock is now {e} crates.",
    "With the crates sent to {p} the stock becomes {e} crates.",
    "What {p} ordered is taken from the stock, so we have {e} crates.",
    "The dispatch to {p} is entered next to the others, giving {e} crates.",
    "Taking off the shipment that {p} asked for, the ledger shows {e} crates.",
)

# In the place of a step that is left out: the amount, as long as a step, but no balance.
VAGUE = (
    "A booking of {n} crates on the list is dealt with here in the same way as the others.",
    "Another entry of {n} crates is taken into account at this place, without any trouble.",
    "The booking of {n} crates is handled just as one would expect it to be handled.",
    "A further movement of {n} crates is worked into the stock here in the usual way.",
    "An entry over {n} crates needs no more words here, since it works like the others.",
    "There is one slip over {n} crates on the pile, and it goes into the ledger as well.",
)

FILLER = (
    "This keeps the ledger tidy and easy to read for everyone involved.",
    "Each entry matters, because the stock has to agree with the shelves.",
    "It helps to work with care and to keep an eye on the whole picture.",
    "The store keeps its ledger in this form for very good reasons.",
    "So far the work goes along smoothly and the method is sound.",
    "Such bookings are the daily bread of every well run store.",
    "A clear record of the movements is always worth the small effort.",
    "Everything up to this place has been verified with great care.",
    "We can be fully confident in the way the entries are made.",
    "Clearly the approach is correct and leaves no room for doubt.",
    "It is also worth noting that the goods are stored in a dry place.",
    "The people at the gate count the crates before a truck may leave.",
)

CLOSING = (
    "The closing balance is therefore {n} crates.",
    "After all the bookings the closing balance is {n} crates.",
    "So the closing balance of the day comes to {n} crates.",
)

PROBLEM = (
    "A store opens the day with {n} crates. Its bookings, in order: {bookings}. Show every booking "
    "with the balance after it, in this order, and state the closing balance."
)
