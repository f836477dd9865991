; Planes carry people; a flight takes one level of fuel, a fast one two.
(define (domain zenotravel)
  (:requirements :strips :typing)
  (:types plane person city level)
  (:predicates (plane-at ?a - plane ?c - city) (at ?p - person ?c - city) (in ?p - person ?a - plane)
               (fuel ?a - plane ?l - level) (next ?low ?high - level))
  (:action board
    :parameters (?p - person ?a - plane ?c - city)
    :precondition (and (at ?p ?c) (plane-at ?a ?c))
    :effect (and (in ?p ?a) (not (at ?p ?c))))
  (:action leave
    :parameters (?p - person ?a - plane ?c - city)
    :precondition (and (in ?p ?a) (plane-at ?a ?c))
    :effect (and (at ?p ?c) (not (in ?p ?a))))
  (:action fly
    :parameters (?a - plane ?from ?to - city ?high ?low - level)
    :precondition (and (plane-at ?a ?from) (fuel ?a ?high) (next ?low ?high))
    :effect (and (plane-at ?a ?to) (fuel ?a ?low) (not (plane-at ?a ?from)) (not (fuel ?a ?high))))
  (:action fly-fast
    :parameters (?a - plane ?from ?to - city ?high ?middle ?low - level)
    :precondition (and (plane-at ?a ?from) (fuel ?a ?high) (next ?middle ?high) (next ?low ?middle))
    :effect (and (plane-at ?a ?to) (fuel ?a ?low) (not (plane-at ?a ?from)) (not (fuel ?a ?high))))
  (:action refuel
    :parameters (?a - plane ?c - city ?low ?high - level)
    :precondition (and (plane-at ?a ?c) (fuel ?a ?low) (next ?low ?high))
    :effect (and (fuel ?a ?high) (not (fuel ?a ?low)))))
