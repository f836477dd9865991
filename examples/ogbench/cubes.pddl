(define (domain cubes)
  (:requirements :strips :typing)
  (:types cube spot table - place)
  (:predicates (free) (holding ?c - cube) (on ?c - cube ?p - place) (clear ?p - place)
               (belongs ?c - cube ?p - place) (settled ?p - place))  ; settled: a spot, or what is where it belongs

  (:action pick
    :parameters (?c - cube ?p - place)
    :precondition (and (free) (clear ?c) (on ?c ?p))
    :effect (and (holding ?c) (clear ?p) (not (free)) (not (clear ?c)) (not (on ?c ?p)) (not (settled ?c))))

  (:action place
    :parameters (?c - cube ?p - place)
    :precondition (and (holding ?c) (belongs ?c ?p) (settled ?p) (clear ?p))
    :effect (and (on ?c ?p) (settled ?c) (clear ?c) (free) (not (holding ?c)) (not (clear ?p))))

  (:action put-aside
    :parameters (?c - cube ?t - table)
    :precondition (holding ?c)
    :effect (and (on ?c ?t) (clear ?c) (free) (not (holding ?c)))))
