; Blocks and Factory: every block belongs on its own place.
; `clear` says of a block that it stands on the table, on no place, and of a place that nothing is on it.
; A block in the way can be taken off its place and put aside on the table; there is always room there.
(define (domain blocks)
  (:requirements :strips :typing)
  (:types
    block place - item
    table)
  (:predicates
    (at ?x - block ?l - place)
    (holding ?x - block)
    (clear ?i - item)
    (gripper-free))

  (:action pick
    :parameters (?x - block)
    :precondition (and (clear ?x) (gripper-free))
    :effect (and (holding ?x)
                 (not (clear ?x)) (not (gripper-free))))

  (:action take
    :parameters (?x - block ?l - place)
    :precondition (and (at ?x ?l) (gripper-free))
    :effect (and (holding ?x) (clear ?l)
                 (not (at ?x ?l)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?l - place)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (at ?x ?l) (gripper-free)
                 (not (holding ?x)) (not (clear ?l))))

  (:action put-aside
    :parameters (?x - block ?t - table)
    :precondition (holding ?x)
    :effect (and (clear ?x) (gripper-free)
                 (not (holding ?x)))))
