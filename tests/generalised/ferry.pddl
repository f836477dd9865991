; A ferry carries one car at a time from any place to any other.
(define (domain ferry)
  (:requirements :strips :typing :negative-preconditions)
  (:types car place)
  (:predicates (ferry-at ?p - place) (at ?c - car ?p - place) (aboard ?c - car) (ferry-empty))
  (:action sail
    :parameters (?from ?to - place)
    :precondition (and (ferry-at ?from) (not (ferry-at ?to)))
    :effect (and (ferry-at ?to) (not (ferry-at ?from))))
  (:action board
    :parameters (?c - car ?p - place)
    :precondition (and (at ?c ?p) (ferry-at ?p) (ferry-empty))
    :effect (and (aboard ?c) (not (at ?c ?p)) (not (ferry-empty))))
  (:action debark
    :parameters (?c - car ?p - place)
    :precondition (and (aboard ?c) (ferry-at ?p))
    :effect (and (at ?c ?p) (ferry-empty) (not (aboard ?c)))))
