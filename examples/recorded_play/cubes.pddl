(define (domain cubes)
  (:requirements :strips :typing)
  (:types cube spot)
  (:predicates (free) (lying ?c - cube) (holding ?c - cube) (at ?c - cube ?s - spot) (open ?s - spot))

  (:action pick
    :parameters (?c - cube)
    :precondition (and (free) (lying ?c))
    :effect (and (holding ?c) (not (free)) (not (lying ?c))))

  (:action place
    :parameters (?c - cube ?s - spot)
    :precondition (and (holding ?c) (open ?s))
    :effect (and (at ?c ?s) (lying ?c) (free) (not (holding ?c)) (not (open ?s)))))
