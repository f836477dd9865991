; Tiles on a board with one blank cell.
(define (domain sliding-tiles)
  (:requirements :strips :typing)
  (:types tile cell)
  (:predicates (at ?t - tile ?c - cell) (blank ?c - cell) (beside ?one ?other - cell))
  (:action slide
    :parameters (?t - tile ?from ?to - cell)
    :precondition (and (at ?t ?from) (blank ?to) (beside ?from ?to))
    :effect (and (at ?t ?to) (blank ?from) (not (at ?t ?from)) (not (blank ?to)))))
