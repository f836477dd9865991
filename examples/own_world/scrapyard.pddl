(define (domain scrapyard)
  (:requirements :strips :typing)
  (:types scrap pond bin)
  (:predicates (free) (lying ?s - scrap) (holding ?s - scrap) (in ?s - scrap ?b - bin) (dirty ?s - scrap) (clean ?s - scrap))

  (:action grab
    :parameters (?s - scrap)
    :precondition (and (free) (lying ?s))
    :effect (and (holding ?s) (not (free)) (not (lying ?s))))

  (:action wash
    :parameters (?s - scrap ?p - pond)
    :precondition (and (holding ?s) (dirty ?s))
    :effect (and (clean ?s) (not (dirty ?s))))

  (:action drop
    :parameters (?s - scrap ?b - bin)
    :precondition (and (holding ?s) (clean ?s))
    :effect (and (in ?s ?b) (free) (not (holding ?s)))))
