(define (domain gacha)
  (:requirements :strips :typing :non-deterministic)
  (:types
    block colour tray box button - object)
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
    :precondition (and (colour-of ?x ?c) (holding ?x) (tray-colour ?t ?c))
    :effect (and (achieved-goal ?c) (gripper-free) (not (holding ?x))))

  (:action pick
    :parameters (?x - block ?d - box)
    :precondition (and (gripper-free) (in ?x ?d) (opened ?d))
    :effect (and (clear ?d) (holding ?x) (not (gripper-free)) (not (in ?x ?d))))

  (:action open
    :parameters (?d - box)
    :precondition (and (closed ?d) (gripper-free))
    :effect (and (opened ?d) (not (closed ?d))))

  (:action roll
    :parameters (?d - box ?b - button)
    :precondition (and (clear ?d) (closed ?d) (gripper-free))
    :effect (exists (?x - block ?c - colour) (and (new ?x) (colour-of ?x ?c) (in ?x ?d) (not (clear ?d)))))

  (:action close
    :parameters (?d - box)
    :precondition (and (gripper-free) (opened ?d))
    :effect (and (closed ?d) (not (opened ?d)))))
