(define (domain pick-place)
  (:requirements :strips :typing)
  (:types item bin)
  (:predicates (free) (lying ?i - item) (holding ?i - item) (in ?i - item ?b - bin) (bin-of ?i - item ?b - bin))

  (:action pick
    :parameters (?i - item)
    :precondition (and (free) (lying ?i))
    :effect (and (holding ?i) (not (free)) (not (lying ?i))))

  (:action place
    :parameters (?i - item ?b - bin)
    :precondition (and (holding ?i) (bin-of ?i ?b))
    :effect (and (in ?i ?b) (free) (not (holding ?i)))))
