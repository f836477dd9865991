; KinematicShelf3D: bring all cubes from the floor to the shelf.
(define (domain shelf)
  (:requirements :strips :typing)
  (:types kinematic3dcuboid kinematic3dfixture gap)
  (:predicates (free) (lying ?c - kinematic3dcuboid) (holding ?c - kinematic3dcuboid) (shelved ?c - kinematic3dcuboid))

  (:action pick
    :parameters (?c - kinematic3dcuboid)
    :precondition (and (free) (lying ?c))
    :effect (and (holding ?c) (not (free)) (not (lying ?c))))

  (:action place
    :parameters (?c - kinematic3dcuboid ?g - gap)
    :precondition (holding ?c)
    :effect (and (shelved ?c) (free) (not (holding ?c)))))
