; Blocks and Factory: every block belongs on its own place.
; `clear` says of a block that it stands free, of a place that nothing is on it.
(define (domain blocks)
  (:requirements :strips :typing)
  (:types block place - item)
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

  (:action place
    :parameters (?x - block ?l - place)
    :precondition (and (holding ?x) (clear ?l))
    :effect (and (at ?x ?l) (clear ?x) (gripper-free)
                 (not (holding ?x)) (not (clear ?l)))))
