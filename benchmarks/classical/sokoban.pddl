; A player pushes boxes over a grid; never two at once.
(define (domain sokoban)
  (:requirements :strips :typing)
  (:types cell box direction)
  (:predicates (player-at ?c - cell) (at ?b - box ?c - cell) (free ?c - cell)
               (beside ?from ?to - cell ?d - direction))
  (:action walk
    :parameters (?from ?to - cell ?d - direction)
    :precondition (and (player-at ?from) (free ?to) (beside ?from ?to ?d))
    :effect (and (player-at ?to) (free ?from) (not (player-at ?from)) (not (free ?to))))
  (:action push
    :parameters (?b - box ?here ?from ?to - cell ?d - direction)
    :precondition (and (player-at ?here) (at ?b ?from) (free ?to) (beside ?here ?from ?d) (beside ?from ?to ?d))
    :effect (and (player-at ?from) (at ?b ?to) (free ?here)
                 (not (player-at ?here)) (not (at ?b ?from)) (not (free ?to)))))
