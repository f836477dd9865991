; Pick and place with a robot that moves: Example 1 of the paper.
(define (domain pick-place)
  (:requirements :strips :typing)
  (:types item location)
  (:predicates
    (robot-at ?l - location)
    (at ?x - item ?l - location)
    (hold ?x - item)
    (free))

  (:action pick
    :parameters (?x - item ?l - location)
    :precondition (and (robot-at ?l) (at ?x ?l) (free))
    :effect (and (hold ?x)
                 (not (at ?x ?l)) (not (free))))

  (:action move
    :parameters (?from - location ?to - location)
    :precondition (robot-at ?from)
    :effect (and (robot-at ?to)
                 (not (robot-at ?from))))

  (:action place
    :parameters (?x - item ?l - location)
    :precondition (and (robot-at ?l) (hold ?x))
    :effect (and (at ?x ?l) (free)
                 (not (hold ?x)))))
