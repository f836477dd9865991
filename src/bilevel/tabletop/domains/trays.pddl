; Trays: coloured blocks, each wanted on a tray of its colour; a tray takes one block.
(define (domain trays)
  (:requirements :strips :typing)
  (:types block tray colour)
  (:predicates
    (on-table ?x - block)
    (holding ?x - block)
    (gripper-free)
    (colour-of ?x - block ?c - colour)
    (tray-colour ?t - tray ?c - colour)
    (empty ?t - tray)
    (sorted ?x - block))

  (:action pick
    :parameters (?x - block)
    :precondition (and (on-table ?x) (gripper-free))
    :effect (and (holding ?x)
                 (not (on-table ?x)) (not (gripper-free))))

  (:action place
    :parameters (?x - block ?t - tray ?c - colour)
    :precondition (and (holding ?x) (colour-of ?x ?c) (tray-colour ?t ?c) (empty ?t))
    :effect (and (sorted ?x) (gripper-free)
                 (not (holding ?x)) (not (empty ?t)))))
