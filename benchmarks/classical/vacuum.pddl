; A vacuum cleaner that may fail to clean, may spread dirt, and has a battery; it charges at its dock only.
(define (domain vacuum)
  (:requirements :strips :typing :negative-preconditions :non-deterministic)
  (:types room)
  (:predicates (in ?r - room) (dirty ?r - room) (door ?from ?to - room) (dock ?r - room) (low) (off))
  (:action move
    :parameters (?from ?to - room)
    :precondition (and (in ?from) (door ?from ?to) (not (off)))
    :effect (and (in ?to) (not (in ?from)) (oneof (and) (low))))
  (:action clean
    :parameters (?r - room)
    :precondition (and (in ?r) (dirty ?r) (not (low)) (not (off)))
    :effect (oneof (not (dirty ?r)) (and (not (dirty ?r)) (low)) (and)))
  (:action charge
    :parameters (?r - room)
    :precondition (and (in ?r) (dock ?r) (low))
    :effect (not (low)))
  (:action switch
    :parameters ()
    :precondition (not (off))
    :effect (off))
  (:action wake
    :parameters (?r - room)
    :precondition (and (off) (in ?r) (dock ?r))
    :effect (not (off))))
