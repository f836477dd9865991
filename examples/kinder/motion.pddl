; Motion2D: go through all gates, one after the other, into the region behind the last.
(define (domain motion)
  (:requirements :strips :typing)
  (:types gate rectangle target_region)
  (:predicates
    (followed-by ?g - gate ?next - gate)
    (last ?g - gate)
    (before ?g - gate)
    (passed ?g - gate)
    (facing ?r - target_region)
    (reached ?r - target_region))

  (:action pass
    :parameters (?g - gate ?next - gate)
    :precondition (and (before ?g) (followed-by ?g ?next))
    :effect (and (passed ?g) (before ?next) (not (before ?g))))

  (:action leave
    :parameters (?g - gate ?r - target_region)
    :precondition (and (before ?g) (last ?g))
    :effect (and (passed ?g) (facing ?r) (not (before ?g))))

  (:action enter
    :parameters (?r - target_region)
    :precondition (facing ?r)
    :effect (reached ?r)))
