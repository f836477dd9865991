; Discs on pegs, none on a smaller one; no types.
(define (domain hanoi)
  (:requirements :strips)
  (:predicates (clear ?x) (on ?x ?y) (smaller ?x ?y))
  (:action move
    :parameters (?disc ?from ?to)
    :precondition (and (smaller ?disc ?to) (on ?disc ?from) (clear ?disc) (clear ?to))
    :effect (and (on ?disc ?to) (clear ?from) (not (on ?disc ?from)) (not (clear ?to)))))
