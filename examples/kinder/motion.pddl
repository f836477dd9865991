; Motion2D: go through all gates, each between a wall below and one above it, into the region behind the last.
(define (domain motion)
  (:requirements :strips :typing)
  (:types rectangle target_region)
  (:predicates
    (gate ?below - rectangle ?above - rectangle)
    (followed-by ?below - rectangle ?next - rectangle)
    (last ?below - rectangle)
    (before ?below - rectangle)
    (passed ?below - rectangle)
    (facing ?r - target_region)
    (reached ?r - target_region))

  (:action pass
    :parameters (?below - rectangle ?above - rectangle ?next - rectangle)
    :precondition (and (before ?below) (gate ?below ?above) (followed-by ?below ?next))
    :effect (and (passed ?below) (before ?next) (not (before ?below))))

  (:action leave
    :parameters (?below - rectangle ?above - rectangle ?r - target_region)
    :precondition (and (before ?below) (gate ?below ?above) (last ?below))
    :effect (and (passed ?below) (facing ?r) (not (before ?below))))

  (:action enter
    :parameters (?r - target_region)
    :precondition (facing ?r)
    :effect (reached ?r)))
