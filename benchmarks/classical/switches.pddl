; Lamps on a line: one can be switched if the one before it is lit; nothing is said of a lamp that is dark.
(define (domain switches)
  (:requirements :strips :typing :negative-preconditions)
  (:types lamp)
  (:predicates (lit ?l - lamp) (before ?one ?next - lamp) (first ?l - lamp) (broken ?l - lamp))
  (:action start
    :parameters (?l - lamp)
    :precondition (and (first ?l) (not (lit ?l)))
    :effect (lit ?l))
  (:action light
    :parameters (?one ?next - lamp)
    :precondition (and (before ?one ?next) (lit ?one) (not (lit ?next)) (not (broken ?next)))
    :effect (lit ?next))
  (:action darken
    :parameters (?one ?next - lamp)
    :precondition (and (before ?one ?next) (lit ?one) (not (lit ?next)))
    :effect (not (lit ?one))))
