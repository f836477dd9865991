; Blocks that may slip onto the table when they are put on another or taken from it; the table is a constant.
(define (domain slippery-blocks)
  (:requirements :strips :typing :equality :negative-preconditions :non-deterministic)
  (:types block support - object)
  (:constants table - support)
  (:predicates (on ?x - block ?y - object) (clear ?x - block) (holding ?x - block) (free) (cracked ?x - block))
  (:action take
    :parameters (?x - block ?y - block)
    :precondition (and (on ?x ?y) (clear ?x) (free) (not (cracked ?x)))
    :effect (oneof (and (holding ?x) (clear ?y) (not (on ?x ?y)) (not (clear ?x)) (not (free)))
                   (and (on ?x table) (clear ?y) (not (on ?x ?y)))))
  (:action pick
    :parameters (?x - block)
    :precondition (and (on ?x table) (clear ?x) (free))
    :effect (and (holding ?x) (not (on ?x table)) (not (clear ?x)) (not (free))))
  (:action put-on
    :parameters (?x ?y - block)
    :precondition (and (holding ?x) (clear ?y))
    :effect (oneof (and (on ?x ?y) (clear ?x) (free) (not (clear ?y)) (not (holding ?x)))
                   (and (on ?x table) (clear ?x) (free) (not (holding ?x)))
                   (and (on ?x table) (cracked ?x) (clear ?x) (free) (not (holding ?x)))))
  (:action put-down
    :parameters (?x - block)
    :precondition (holding ?x)
    :effect (and (on ?x table) (clear ?x) (free) (not (holding ?x)))))
