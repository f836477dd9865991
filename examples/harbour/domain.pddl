; Harbour: a boat brings parcels from its home port to islands. The wind may blow it onto a sandbank, from where only a
; high tide brings it back home.
(define (domain harbour)
  (:requirements :strips :typing :negative-preconditions :non-deterministic)
  (:types port)
  (:constants home - port)
  (:predicates
    (at ?p - port)
    (aground)
    (loaded)
    (parcel-at ?p - port))

  (:action load
    :parameters ()
    :precondition (and (at home) (not (loaded)))
    :effect (loaded))

  (:action sail
    :parameters (?from - port ?to - port)
    :precondition (at ?from)
    :effect (and (not (at ?from)) (oneof (at ?to) (aground))))

  (:action wait-for-tide
    :parameters ()
    :precondition (aground)
    :effect (oneof (and (at home) (not (aground))) (and)))

  (:action unload
    :parameters (?p - port)
    :precondition (and (at ?p) (loaded))
    :effect (and (parcel-at ?p) (not (loaded)))))
