(define (domain first-cubes)
  (:requirements :strips :typing)
  (:types cube spot)
  (:predicates (free) (lying ?c - cube) (holding ?c - cube) (on ?c - cube ?s - spot))

  (:action pick
    :parameters (?c - cube)
    :precondition (and (free) (lying ?c))
    :effect (and (holding ?c) (not (free)) (not (lying ?c))))

  (:action take  ; what is on a spot, which may be the wrong one
    :parameters (?c - cube ?s - spot)
    :precondition (and (free) (on ?c ?s))
    :effect (and (holding ?c) (not (free)) (not (on ?c ?s))))

  (:action place
    :parameters (?c - cube ?s - spot)
    :precondition (holding ?c)
    :effect (and (on ?c ?s) (free) (not (holding ?c)))))
