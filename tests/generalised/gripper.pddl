; A robot with two grippers carries balls between rooms; what is what, facts say instead of types.
(define (domain gripper)
  (:requirements :strips)
  (:predicates (room ?r) (ball ?b) (gripper ?g) (robot-at ?r) (at ?b ?r) (free ?g) (carries ?g ?b))
  (:action move
    :parameters (?from ?to)
    :precondition (and (room ?from) (room ?to) (robot-at ?from))
    :effect (and (robot-at ?to) (not (robot-at ?from))))
  (:action pick
    :parameters (?b ?r ?g)
    :precondition (and (ball ?b) (room ?r) (gripper ?g) (at ?b ?r) (robot-at ?r) (free ?g))
    :effect (and (carries ?g ?b) (not (at ?b ?r)) (not (free ?g))))
  (:action drop
    :parameters (?b ?r ?g)
    :precondition (and (ball ?b) (room ?r) (gripper ?g) (carries ?g ?b) (robot-at ?r))
    :effect (and (at ?b ?r) (free ?g) (not (carries ?g ?b)))))
