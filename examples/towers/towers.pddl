; Towers: blocks on places and on each other; only what nothing stands on can be taken or built on.
; A block that stands on no place and on no other block stands on the table, where there is always room.
(define (domain towers)
  (:requirements :strips :typing)
  (:types
    block place - support
    support table - surface)
  (:predicates
    (on ?x - block ?s - surface)
    (holding ?x - block)
    (clear ?s - surface)
    (gripper-free))

  (:action pick
    :parameters (?x - block ?s - surface)
    :precondition (and (on ?x ?s) (clear ?x) (gripper-free))
    :effect (and (holding ?x) (clear ?s)
                 (not (on ?x ?s)) (not (clear ?x)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?s - support)
    :precondition (and (holding ?x) (clear ?s))
    :effect (and (on ?x ?s) (clear ?x) (gripper-free)
                 (not (holding ?x)) (not (clear ?s))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (holding ?x)
    :effect (and (on ?x ?t) (clear ?x) (gripper-free)
                 (not (holding ?x)))))
