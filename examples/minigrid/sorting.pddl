(define (domain sorting)
  (:requirements :strips :typing)
  (:types ball box wall)
  (:predicates (free) (holding ?b - ball) (lying ?b - ball) (at ?b - ball ?w - wall) (blocks ?x - box ?w - wall) (clear ?w - wall))

  (:action take
    :parameters (?b - ball)
    :precondition (and (free) (lying ?b))
    :effect (and (holding ?b) (not (free)) (not (lying ?b))))

  (:action unblock
    :parameters (?x - box ?w - wall)
    :precondition (blocks ?x ?w)
    :effect (and (clear ?w) (not (blocks ?x ?w))))

  (:action put
    :parameters (?b - ball ?w - wall)
    :precondition (and (holding ?b) (clear ?w))
    :effect (and (at ?b ?w) (free) (not (holding ?b)) (not (clear ?w)))))
