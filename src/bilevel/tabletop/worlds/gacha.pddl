; Gacha: a box with a lid makes, when it is closed and empty and its button is pressed, a new block of a random colour.
; Each target colour wants a block on its tray; a block of another colour is put away on its own tray.
(define (domain gacha)
  (:requirements :strips :typing :non-deterministic)
  (:types block colour tray box button)
  (:predicates
    (holding ?x - block)
    (gripper-free)
    (in ?x - block ?d - box)
    (clear ?d - box)
    (opened ?d - box)
    (closed ?d - box)
    (colour-of ?x - block ?c - colour)
    (tray-colour ?t - tray ?c - colour)
    (achieved-goal ?c - colour))

  (:action place-goal
    :parameters (?x - block ?t - tray ?c - colour)
    :precondition (and (holding ?x) (colour-of ?x ?c) (tray-colour ?t ?c))
    :effect (and (achieved-goal ?c) (gripper-free)
                 (not (holding ?x))))

  (:action pick
    :parameters (?x - block ?d - box)
    :precondition (and (in ?x ?d) (opened ?d) (gripper-free))
    :effect (and (holding ?x) (clear ?d)
                 (not (in ?x ?d)) (not (gripper-free))))

  (:action open
    :parameters (?d - box)
    :precondition (and (closed ?d) (gripper-free))
    :effect (and (opened ?d) (not (closed ?d))))

  (:action roll
    :parameters (?d - box ?b - button)
    :precondition (and (clear ?d) (closed ?d) (gripper-free))
    :effect (and (not (clear ?d))
                 (exists (?x - block ?c - colour)
                   (and (new ?x) (in ?x ?d) (colour-of ?x ?c)))))

  (:action close
    :parameters (?d - box)
    :precondition (and (opened ?d) (gripper-free))
    :effect (and (closed ?d) (not (opened ?d)))))
